"""The vendor library beside our GPU kernels: cuBLAS, checked and timed as they are."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import final

import numpy as np

from tuner.errors import CandidateError, TunerError
from tuner.problem import Problem
from tuner.runs import Vendor
from tuner.runtime.cublas import Cublas, find_cublas
from tuner.runtime.gpu_probe import describe_gpu
from tuner.target import Effort
from tuner.targets.gpu_here import Gpu, open_gpu
from tuner.targets.gpu_place import GpuPlace
from tuner.targets.gpu_timing import GpuTimer


def gpu_here() -> Gpu:
    """Opens the GPU of this machine. Raises DeviceError."""
    return open_gpu(describe_gpu())


@final
class LoadedCublas:
    """cuBLAS's matmul of one problem, to be run as a program is."""

    def __init__(self, library: Cublas, problem: Problem) -> None:
        self.name = library.name
        self._library = library
        self._problem = problem

    def work(self, addresses: Mapping[str, int]) -> Callable[[int], None]:
        """Returns what puts one run on a stream, given where A, B and C are."""
        a, b, c = (addresses[name] for name in "abc")
        return lambda stream: self._library.multiply(self._problem, a, b, c, stream)


@final
class CublasService:
    """Measures cuBLAS on one problem. Lives in a child process."""

    def __init__(
        self,
        problem: Problem,
        seed: int,
        open_: Callable[[], Gpu] = gpu_here,
        find: Callable[[], str] = find_cublas,
    ) -> None:
        """Draws inputs and checks the answer. Raises TunerError when there is no library, or it is wrong."""
        self._rng = np.random.default_rng(seed)
        self._problem = replace(problem, epilogue="none")
        path = find()  # first: without it no context need be made
        self._gpu = open_()
        self._library = LoadedCublas(Cublas(self._gpu.device, path), self._problem)
        try:
            self._place = GpuPlace(self._gpu.device, self._problem, self._rng)
            self._place.fill(self._rng)
            self._work = self._library.work(self._place.addresses)
            self._work(0)
            self._place.judge()
        except CandidateError as error:
            raise TunerError(f"{self._library.name}: {error.reason}") from error

    def measure(self, effort: Effort) -> Vendor:
        """Times the library's matmul, without an epilogue."""
        before = self._gpu.read_sensors()
        timer = GpuTimer(self._gpu.device, self._gpu.cache_bytes)
        measurement = timer.measure(self._work, effort, self._rng)
        timer.close()
        conditions = self._gpu.conditions_since(before)
        return Vendor(self._library.name, 0, replace(measurement, conditions=conditions))
