"""The arrays of a problem at fixed addresses in GPU memory: all candidates run on the same memory."""

import contextlib
from collections.abc import Callable, Mapping
from typing import final

import numpy as np

from tuner.core.device import AbstractDevice, DeviceError
from tuner.core.errors import Stage
from tuner.core.problem import Problem
from tuner.core.record import Verdict
from tuner.payload.reference import Array, compare
from tuner.runtime.cpu.guarded_arrays import GUARD_BYTES
from tuner.targets.gpu.failures import allocating
from tuner.targets.problem_arrays import Compare, ProblemArrays

TOP_BIT = 0x80  # of the highest byte of a number: its sign, see ``Flip``
NAN, NUMBER = 0xFFFFFFFF, 0x3F3F3F3F  # in every floating-point type; all bytes are equal
LEAST = 0x80000000  # of i32, which has no NaN


@final
class GpuProblemArrays:
    """A problem's arrays in device memory: A, B[, bias], and C between guard bands; with host copies.

    A C of integers gets their smallest number instead of NaN.
    """

    def __init__(
        self,
        device: AbstractDevice,
        problem: Problem,
        rng: np.random.Generator,
        compare: Compare = compare,
    ) -> None:
        """Draws inputs and allocates device memory. Raises CandidateError(RUN) where the GPU lacks memory."""
        self.problem = problem
        self._device = device
        self._host = ProblemArrays(problem, rng, compare)
        self._addresses: list[int] = []  # on the device, of the copy of each host allocation
        self._right: Array | None = None  # C with its guard bands as last verified, for the current inputs
        self._flipped: tuple[int, int] | None = None  # operand and index of the number that is flipped
        self._written: Array | None = None  # that number
        needed = sum(array.nbytes for array in self._host.allocations)
        try:
            with allocating(problem.key, needed, Stage.RUN):
                for array in self._host.allocations:
                    self._addresses.append(device.allocate(array.nbytes, 0))
        except BaseException:
            self.close()
            raise

    @property
    def addresses(self) -> Mapping[str, int]:
        """Returns the device address of each array of the problem by its name: "a", "b"[, "bias"], "c"."""
        names = ("a", "b", "bias") if self.problem.epilogue == "bias_relu" else ("a", "b")
        return dict(zip(names, self._addresses, strict=False)) | {"c": self._addresses[-1] + GUARD_BYTES}

    def fill(self, rng: np.random.Generator) -> None:
        """Draws new inputs, fills C with NaN (integers: the smallest number), and uploads all arrays."""
        self._right = None
        self._host.fill(rng)
        self._upload(0)

    def flip_signs(self) -> None:
        """Negates A and B, fills C with ones, and uploads all arrays to the device."""
        self._right = None
        self._host.flip_signs()
        self._upload(0)

    def poison(self) -> None:
        """Resets C to NaN (integers: the smallest number) and its guard bands, on the host and the device."""
        self._host.poison()
        self._upload(len(self._addresses) - 1)

    def prepare_sample(self, rng: np.random.Generator, stream: int) -> None:
        """Overwrites C on the device and flips the sign of one number of A or B, chosen at random.

        C gets NaN (integers: the smallest number) or numbers; an i8 whose sign is flipped changes by 128.
        Enqueues this on ``stream`` and does not wait: the timed work is launched while the stream is busy.
        """
        self._flipped = self._host.expect_flip(rng)
        self._write_flipped(TOP_BIT, stream)
        self._cover(rng, stream)

    def _cover(self, rng: np.random.Generator, stream: int) -> None:
        """Fills C, without its guard bands, with NaN or with numbers, chosen at random."""
        c = self._host.operands[-1]
        value = (LEAST if c.dtype.kind == "i" else NAN, NUMBER)[int(rng.integers(2))]
        item_bytes = 4 if c.nbytes % 4 == 0 else 1
        self._device.fill(
            self.addresses["c"], value & (1 << 8 * item_bytes) - 1, item_bytes, c.nbytes // item_bytes, stream
        )

    def end_sample(self, rng: np.random.Generator, stream: int, *, is_evaluated: bool) -> None:
        """Undoes the sign flip of ``prepare_sample``; if ``is_evaluated``, also verifies C.

        Waits for ``stream``. Compares random rows of C, which must be finite everywhere. Raises
        CandidateError(VERIFY) for a wrong element.
        """
        self._write_flipped(0, stream)
        self._device.synchronize_stream(stream)
        if is_evaluated:
            self._download(len(self._addresses) - 1)
            self._host.check_rows(rng)
        self._flipped = None
        self._host.expect_no_flip()

    def evaluate(self) -> Verdict:
        """Downloads all arrays, compares every element of C, checks guard bands and inputs.

        Returns the verdict. Raises CandidateError(VERIFY) for the first check that fails, see
        ``ProblemArrays.evaluate``.
        """
        self._right = None
        self._download(0)
        verdict = self._host.evaluate()
        self._right = self._host.allocations[-1].copy()
        return verdict

    def verify_run(self, run: Callable[[int], None], rng: np.random.Generator) -> None:
        """Overwrites C, runs a program once more on the current inputs, and verifies C and inputs.

        ``run(stream)`` enqueues a run. A C with the bits of the last verified C is not compared again. The C
        of an earlier run proves nothing: it may belong to a sample whose inputs were changed. Raises
        CandidateError(VERIFY), also where a run since the last comparison changed an input or wrote outside
        of C.
        """
        self._cover(rng, 0)
        run(0)
        *inputs, c = self._host.allocations
        found = [np.empty_like(array) for array in inputs]
        self._copy_back((*found, c), 0)
        pairs = [*zip(inputs, found, strict=True), (self._right, c)]
        if any(was is None or not np.array_equal(was, now) for was, now in pairs):
            self.evaluate()

    def close(self) -> None:
        """Frees the arrays' device memory; errors of a lost context are ignored."""
        with contextlib.suppress(DeviceError):
            while self._addresses:
                self._device.free(self._addresses.pop(), 0)

    def _download(self, first: int) -> None:
        self._copy_back(self._host.allocations[first:], first)

    def _copy_back(self, arrays: tuple[Array, ...], first: int) -> None:
        for array, address in zip(arrays, self._addresses[first:], strict=True):
            self._device.copy(array.ctypes.data, address, array.nbytes, 0)
        self._device.synchronize_stream(0)

    def _write_flipped(self, bit: int, stream: int) -> None:
        """Writes the chosen number to the device: as drawn (``bit`` 0), or with flipped sign (TOP_BIT)."""
        assert self._flipped is not None
        which, index = self._flipped
        numbers = self._host.operands[which].reshape(-1)
        number = numbers[index : index + 1].copy()
        number.view(np.uint8)[-1] ^= bit
        address = self._addresses[which] + index * number.itemsize
        self._device.copy(address, number.ctypes.data, number.nbytes, stream)
        self._written = number  # kept alive until the stream has copied it

    def _upload(self, first: int) -> None:
        pairs = list(zip(self._host.allocations, self._addresses, strict=True))
        for array, address in pairs[first:]:
            self._device.copy(address, array.ctypes.data, array.nbytes, 0)
        self._device.synchronize_stream(0)
