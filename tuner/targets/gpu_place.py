"""The arrays of one problem on a GPU, where they stay: all candidates run on the same memory."""

import contextlib
from collections.abc import Mapping
from typing import final

import numpy as np

from tuner.device import AbstractDevice, DeviceError
from tuner.errors import Stage
from tuner.problem import Problem
from tuner.record import Verdict
from tuner.reference import Array, compare
from tuner.runtime.allocation import GUARD_BYTES
from tuner.targets.gpu_failures import allocating
from tuner.targets.place import Compare, Place


@final
class GpuPlace:
    """A, B[, bias] and a guarded C in device memory, and their likes on the host."""

    def __init__(
        self,
        device: AbstractDevice,
        problem: Problem,
        rng: np.random.Generator,
        compare: Compare = compare,
    ) -> None:
        """Draws inputs and allocates. Raises CandidateError(RUN) where the GPU lacks memory."""
        self.problem = problem
        self._device = device
        self._place = Place(problem, rng, compare)
        self._addresses: list[int] = []  # of the place's blocks
        self._right: Array | None = None  # C with its guards as it was judged, of the inputs that are there
        needed = sum(block.nbytes for block in self._place.blocks)
        try:
            with allocating(problem.key, needed, Stage.RUN):
                for block in self._place.blocks:
                    self._addresses.append(device.allocate(block.nbytes, 0))
        except BaseException:
            self.close()
            raise

    @property
    def addresses(self) -> Mapping[str, int]:
        """Returns where each buffer of the problem begins, by its name."""
        names = ("a", "b", "bias") if self.problem.epilogue == "bias_relu" else ("a", "b")
        return dict(zip(names, self._addresses, strict=False)) | {"c": self._addresses[-1] + GUARD_BYTES}

    def fill(self, rng: np.random.Generator) -> None:
        """Draws fresh inputs, poisons C and uploads all of it."""
        self._right = None
        self._place.fill(rng)
        self._upload(0)

    def poison(self) -> None:
        """Forgets what C holds, and fences it anew."""
        self._place.poison()
        self._upload(len(self._addresses) - 1)

    def judge(self) -> Verdict:
        """Downloads everything, compares every element of C and looks at all that must be as it was.

        Raises CandidateError(VERIFY) for the first harm found.
        """
        self._right = None
        self._download(self._place.blocks)
        verdict = self._place.judge()
        self._right = self._place.blocks[-1].copy()
        return verdict

    def judge_again(self) -> None:
        """Judges what later runs on the same inputs left: the bits that were right are right again."""
        *inputs, c = self._place.blocks
        found = [np.empty_like(block) for block in inputs]
        self._download((*found, c))
        pairs = [*zip(inputs, found, strict=True), (self._right, c)]
        if any(was is None or not np.array_equal(was, now) for was, now in pairs):
            self.judge()

    def close(self) -> None:
        """Frees the device memory; a context that an error has taken has none."""
        with contextlib.suppress(DeviceError):
            while self._addresses:
                self._device.free(self._addresses.pop(), 0)

    def _download(self, blocks: tuple[Array, ...]) -> None:
        for block, address in zip(blocks, self._addresses, strict=True):
            self._device.copy(block.ctypes.data, address, block.nbytes, 0)
        self._device.synchronize_stream(0)

    def _upload(self, first: int) -> None:
        pairs = list(zip(self._place.blocks, self._addresses, strict=True))
        for block, address in pairs[first:]:
            self._device.copy(address, block.ctypes.data, block.nbytes, 0)
        self._device.synchronize_stream(0)
