"""The arrays of a matmul problem and a program's loaded kernels on a GPU.

``GpuProblemArrays`` draws inputs and compares C; ``LoadedKernels`` runs a program on them. DeviceErrors
become CandidateErrors with a stage.
"""

import contextlib
import ctypes
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import final

import numpy as np

from tuner.core.compiled_code import KernelBuffer, KernelCode, Launch
from tuner.core.device import AbstractDevice, Extent, KernelLaunch
from tuner.core.errors import CandidateError, DeviceError, Stage
from tuner.core.problem import Problem
from tuner.core.records import Verdict
from tuner.payload.comparison import compare
from tuner.payload.reference import Array
from tuner.runtime.cpu.memory import GUARD_BYTES
from tuner.targets.arrays import Compare, ProblemArrays

OUT_OF_MEMORY = "CUDA_ERROR_OUT_OF_MEMORY"
# in every floating-point type; all bytes are equal
NAN = 0xFFFFFFFF
NUMBER = 0x3F3F3F3F
SLOT_BYTES = 128  # of an argument: a tensor map, which must be aligned to 64 bytes
TOP_BIT = 0x80  # of the highest byte of a number: its sign, see ``Flip`` of ``tuner.payload.reference``
LEAST = 0x80000000  # of i32, which has no NaN


@contextlib.contextmanager
def failing_as(stage: Stage) -> Iterator[None]:
    """Context manager: turns a DeviceError into CandidateError(``stage``), or RUN if the context is lost."""
    try:
        yield
    except DeviceError as error:
        raise CandidateError(Stage.RUN if error.is_sticky else stage, str(error)) from error


@contextlib.contextmanager
def allocating(what: str, size_bytes: int, stage: Stage) -> Iterator[None]:
    """Context manager: turns the driver's out-of-memory error into CandidateError(``stage``).

    ``what`` and ``size_bytes``, what the memory is for and how much, are in the reason.
    """
    try:
        yield
    except DeviceError as error:
        if error.error_name != OUT_OF_MEMORY:
            raise
        needed = f"{size_bytes / 2**30:.2f} GiB of GPU memory for {what} are not free"
        raise CandidateError(stage, f"{needed}: {OUT_OF_MEMORY}") from error


@final
class LoadedKernels:
    """The loaded kernels and scratch memory of a compiled program on a device; freed with this object."""

    def __init__(self, device: AbstractDevice, program: KernelCode) -> None:
        """Loads the program's cubin, else its PTX, and allocates its scratch memory.

        Raises DeviceError if the driver rejects the code, CandidateError(LOAD) if device memory is missing.
        """
        self._device = device
        self._program = program
        self._scratch: dict[str, int] = {}
        module = device.load_module(program.binary or program.text.encode())
        forget = weakref.finalize(self, _give_back, device, module, self._scratch)
        forget.atexit = False  # the driver and its memory are gone by then
        self._functions = {
            launch.kernel: device.function(module, launch.kernel) for launch in program.launches
        }
        own = [buffer for buffer in program.buffers if buffer.role == "scratch"]
        with allocating("scratch", sum(buffer.bytes for buffer in own), Stage.LOAD):
            for buffer in own:
                self._scratch[buffer.name] = device.allocate(buffer.bytes, 0)
        self._zero_once()

    def _zero_once(self) -> None:
        """Fills with zeros the scratch memory that runs leave zeroed.

        Waits for the device: runs may be on streams that do not wait for the default stream.
        """
        buffers = self._program.buffers
        kept = [buffer for buffer in buffers if buffer.keeps_zeros and buffer.name in self._scratch]
        for buffer in kept:
            self._fill(buffer, self._scratch[buffer.name], 0, 0)
        if kept:
            self._device.synchronize_stream(0)

    def poison(self) -> None:
        """Sets all bits of scratch memory (NaN or -1), so that reads of unwritten elements show in C.

        Memory that runs leave zeroed is not changed.
        """
        for buffer in self._program.buffers:
            if buffer.name in self._scratch and not buffer.keeps_zeros:
                self._fill(buffer, self._scratch[buffer.name], NAN, 0)

    def work(self, addresses: Mapping[str, int]) -> Callable[[int], None]:
        """Returns a function that enqueues one run of the program on a stream.

        ``addresses``: device addresses of the program's buffers by name, without scratch.
        """
        every = {**addresses, **self._scratch}
        zeroed = [
            (buffer, every[buffer.name])
            for buffer in self._program.buffers
            if buffer.is_zeroed and not buffer.keeps_zeros
        ]
        launches = [self._prepared(launch, every) for launch in self._program.launches]

        def enqueue(stream: int) -> None:
            for buffer, address in zeroed:
                self._fill(buffer, address, 0, stream)
            for launch, _ in launches:
                self._device.launch(launch, stream)

        return enqueue

    def _prepared(self, launch: Launch, addresses: Mapping[str, int]) -> tuple[KernelLaunch, "Arguments"]:
        arguments = Arguments(launch, addresses, self._device)  # must stay alive as long as the launch
        ready = KernelLaunch(
            self._functions[launch.kernel],
            Extent(*launch.grid),
            Extent(*launch.block),
            launch.dynamic_shared_bytes,
            arguments.address,
            len(launch.arguments),
        )
        return ready, arguments

    def _fill(self, buffer: KernelBuffer, address: int, value: int, stream: int) -> None:
        item_bytes = 4 if buffer.bytes % 4 == 0 else 1
        low = value & (1 << 8 * item_bytes) - 1
        self._device.fill(address, low, item_bytes, buffer.bytes // item_bytes, stream)


@final
class Arguments:
    """The arguments of a kernel launch, pointers and tensor maps, in memory as CUDA reads them."""

    def __init__(self, launch: Launch, addresses: Mapping[str, int], device: AbstractDevice) -> None:
        """Places pointers and tensor maps in memory.

        Raises DeviceError for a tensor map that the driver rejects.
        """
        values = []
        for name in launch.arguments:
            map_ = launch.tensor_map(name)
            if map_ is None:
                values.append(addresses[name].to_bytes(8, "little"))
            else:
                values.append(device.tensor_map(addresses[map_.buffer], map_.layout))
        self._values = (ctypes.c_uint8 * (SLOT_BYTES * (len(values) + 1)))()  # one more: the start moves
        start = -(-ctypes.addressof(self._values) // SLOT_BYTES) * SLOT_BYTES
        slots = [start + SLOT_BYTES * number for number in range(len(values))]
        for slot, value in zip(slots, values, strict=True):
            ctypes.memmove(slot, value, len(value))
        self._pointers = (ctypes.c_uint64 * len(slots))(*slots)

    @property
    def address(self) -> int:
        """Returns the address of the launch's ``void*[]``, whose entries point to the arguments."""
        return ctypes.addressof(self._pointers)


def _give_back(device: AbstractDevice, module: int, scratch: dict[str, int]) -> None:
    with contextlib.suppress(DeviceError):  # of a context that is lost
        for address in scratch.values():
            device.free(address, 0)
        device.unload_module(module)


@final
class GpuProblemArrays:
    """The arrays of a problem in device memory, with host copies: inputs, and C between guard bands."""

    def __init__(
        self, device: AbstractDevice, problem: Problem, rng: np.random.Generator, compare: Compare = compare
    ) -> None:
        """Draws inputs and allocates device memory.

        Raises CandidateError(RUN) if device memory is missing.
        """
        self.problem = problem
        self._device = device
        self._host = ProblemArrays(problem, rng, compare)
        self._addresses: list[int] = []  # on the device, of the copy of each host allocation
        self._before: int | None = None  # on the device, C before a run; None where no program reads C
        self._right: Array | None = None  # C with its guard bands as last verified, for the current inputs
        self._flipped: tuple[int, int] | None = None  # operand and index of the number that is flipped
        self._written: Array | None = None  # that number
        needed = sum(array.nbytes for array in self._host.allocations)
        try:
            with allocating(problem.key, needed, Stage.RUN):
                for array in self._host.allocations:
                    self._addresses.append(device.allocate(array.nbytes, 0))
                if problem.after_product.reads_output:
                    self._before = device.allocate(self._host.allocations[-1].nbytes, 0)
        except BaseException:
            self.close()
            raise

    @property
    def addresses(self) -> Mapping[str, int]:
        """Returns the device address of each argument of the problem, by name: "a", "b", ..., "c"."""
        names = (argument.name for argument in self.problem.arguments)
        addresses = dict(zip(names, self._addresses, strict=True))
        return addresses | {"c": addresses["c"] + GUARD_BYTES}

    def fill(self, rng: np.random.Generator) -> None:
        """Draws new inputs and fills C with NaN (integers: the smallest number), on host and device.

        Where programs read C, this and the other methods that fill C write the numbers that the expected
        result begins with.
        """
        self._right = None
        self._host.fill(rng)
        self._upload(0)

    def flip_signs(self) -> None:
        """Changes the inputs to others with a known result, and fills C with ones, on host and device.

        If programs read C, it gets the numbers that the expected result begins with instead.
        """
        self._right = None
        self._host.flip_signs()
        self._upload(0)

    @property
    def special_draws(self) -> int:
        """Returns how many different sets of special numbers ``use_special_numbers`` has."""
        return self._host.special_draws

    def use_special_numbers(self, rng: np.random.Generator, draw: int) -> None:
        """Flips signs as ``flip_signs`` does, and puts NaN, infinity and extreme bytes into the inputs.

        ``draw``: which set of special numbers, from 0 to ``special_draws`` - 1.
        """
        self._right = None
        self._host.flip_signs()
        self._host.add_special_numbers(rng, draw)
        self._upload(0)

    def poison(self) -> None:
        """Fills C with NaN (integers: the smallest number), and its guard bands, on host and device.

        If programs read C, it gets the numbers that the expected result begins with instead.
        """
        self._host.poison()
        self._upload(len(self._addresses) - 1)

    def prepare_sample(self, rng: np.random.Generator, stream: int) -> None:
        """Enqueues on ``stream``: overwrite C, and flip the sign of a random number of A or B.

        If programs read C, it is restored instead of overwritten.
        """
        self._flipped = self._host.expect_flip(rng)
        self._write_flipped(TOP_BIT, stream)
        self._cover(rng, stream)

    def restore_output(self, stream: int) -> None:
        """Enqueues on ``stream``: give C what it holds before a run of a program that reads C."""
        assert self._before is not None
        self._device.copy(self._addresses[-1], self._before, self._host.allocations[-1].nbytes, stream)

    def _cover(self, rng: np.random.Generator, stream: int) -> None:
        """Enqueues on ``stream``: overwrite C, at random with NaN (i32: LEAST) or a number like a result.

        For programs that read C, it restores C instead.
        """
        if self._before is not None:
            self.restore_output(stream)
            return
        c = self._host.operands[-1]
        value = (LEAST if c.dtype.kind == "i" else NAN, NUMBER)[int(rng.integers(2))]
        item_bytes = 4 if c.nbytes % 4 == 0 else 1
        self._device.fill(
            self.addresses["c"], value & (1 << 8 * item_bytes) - 1, item_bytes, c.nbytes // item_bytes, stream
        )

    def end_sample(self, rng: np.random.Generator, stream: int, *, is_evaluated: bool) -> None:
        """Enqueues on ``stream``: restore the number that ``prepare_sample`` flipped; waits for the stream.

        ``is_evaluated``: also compare random rows of C; raises CandidateError(VERIFY) for a wrong element.
        """
        self._write_flipped(0, stream)
        self._device.synchronize_stream(stream)
        if is_evaluated:
            self._download(len(self._addresses) - 1)
            self._host.check_rows(rng)
        self._flipped = None
        self._host.expect_no_flip()

    def evaluate(self) -> Verdict:
        """Downloads all arrays and compares every element of C; returns the verdict.

        Raises CandidateError(VERIFY) for a wrong element, changed guard bands or a changed input.
        """
        self._right = None
        self._download(0)
        verdict = self._host.evaluate()
        self._right = self._host.allocations[-1].copy()
        return verdict

    def verify_run(self, run: Callable[[int], None], rng: np.random.Generator) -> None:
        """Overwrites C, or restores it if programs read C, and runs a program once more, by ``run(stream)``.

        Compares C with the last verified one. If C or an input differs, all of C is verified. Raises
        CandidateError(VERIFY) for a wrong result.
        """
        self._cover(rng, 0)
        run(0)
        *inputs, c = self._host.allocations
        actual = list(map(np.empty_like, inputs))
        self._copy_back((*actual, c), 0)
        pairs = [*zip(inputs, actual, strict=True), (self._right, c)]
        if any(was is None or not np.array_equal(was, now) for was, now in pairs):
            self.evaluate()

    def close(self) -> None:
        """Frees the device memory of the arrays; errors of a lost context are ignored."""
        with contextlib.suppress(DeviceError):
            while self._addresses:
                self._device.free(self._addresses.pop(), 0)
            if self._before is not None:
                self._device.free(self._before, 0)

    def _download(self, first: int) -> None:
        self._copy_back(self._host.allocations[first:], first)

    def _copy_back(self, arrays: tuple[Array, ...], first: int) -> None:
        for array, address in zip(arrays, self._addresses[first:], strict=True):
            self._device.copy(array.ctypes.data, address, array.nbytes, 0)
        self._device.synchronize_stream(0)

    def _write_flipped(self, bit: int, stream: int) -> None:
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
        if self._before is not None:
            array, address = pairs[-1]
            self._device.copy(self._before, address, array.nbytes, 0)
        self._device.synchronize_stream(0)
