"""The half of the CUDA target that runs programs: needs a driver, no compiler."""

from collections.abc import Callable
from dataclasses import replace
from typing import final

import numpy as np

from tuner.chips import chip_of
from tuner.conditions import GpuState
from tuner.device import DeviceError
from tuner.errors import CandidateError, Stage
from tuner.problem import Problem
from tuner.record import Measurement, Verdict
from tuner.reference import compare
from tuner.runtime.cublas import Cublas, find_cublas
from tuner.runtime.gpu_probe import GpuHere, describe_gpu, require_chip
from tuner.target import AbstractJudge, AbstractVendorSource, Artifact, Effort
from tuner.targets.cublas import LoadedCublas
from tuner.targets.gpu_failures import failing_as
from tuner.targets.gpu_here import Gpu, open_gpu
from tuner.targets.gpu_place import GpuPlace
from tuner.targets.gpu_program import LoadedProgram
from tuner.targets.gpu_timing import GpuTimer
from tuner.targets.place import Compare

COMPILED_ONLY = "compiled only: {}; verify with --target simulator, time elsewhere with tuner bundle export"


@final
class GpuJudge(AbstractJudge, AbstractVendorSource):
    """Verifies and times programs on the GPU of this machine; opens it when first asked, and keeps it."""

    def __init__(
        self,
        chip: str,
        describe: Callable[[], GpuHere] = describe_gpu,
        open_: Callable[[GpuHere], Gpu] = open_gpu,
        compare: Compare = compare,
        find_library: Callable[[], str] = find_cublas,
    ) -> None:
        """Takes the chip of the programs, what finds the GPU and cuBLAS, and how C is compared.

        Raises UsageError for a chip that is not known.
        """
        self._chip = chip_of(chip)
        self._describe = describe
        self._open = open_
        self._compare = compare
        self._find_library = find_library
        self._library: Cublas | None = None
        self._gpu: Gpu | None = None
        self._timer: GpuTimer | None = None
        self._place: GpuPlace | None = None

    def usable(self) -> GpuHere:
        """Returns the GPU here. Raises DeviceError where there is none that runs the chip's code."""
        here = self._describe()
        require_chip(self._chip, here.facts)
        return here

    def load(self, problem: Problem, artifact: Artifact) -> LoadedProgram:
        """Loads the code and allocates its scratch memory."""
        assert artifact.program is not None
        with failing_as(Stage.LOAD):
            return LoadedProgram(self._opened().device, artifact.program)

    def load_vendor(self, problem: Problem, rng: np.random.Generator) -> tuple[str, LoadedCublas]:
        """Loads cuBLAS and compares its answer as a program's; without an epilogue, which it does not do."""
        bare = replace(problem, epilogue="none")
        with failing_as(Stage.VERIFY):
            self._library = self._library or Cublas(self._opened().device, self._find_library())
            library = LoadedCublas(self._library, bare)
            place = self._place_of(bare, rng)
            place.fill(rng)
            library.work(place.addresses)(0)
            place.judge()
        return library.name, library

    def verify(self, problem: Problem, loaded: object, rng: np.random.Generator) -> Verdict:
        """Runs once on fresh inputs into a poisoned, guarded C and compares every element."""
        assert isinstance(loaded, LoadedProgram)
        with failing_as(Stage.RUN):
            place = self._place_of(problem, rng)
            place.fill(rng)
            loaded.poison()
            loaded.work(place.addresses)(0)
            return place.judge()

    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        """Times runs on inputs that stay in place, between two looks at the sensors; judges the last one."""
        assert isinstance(loaded, LoadedProgram)
        with failing_as(Stage.MEASURE):
            place, gpu = self._place_of(problem, rng), self._opened()
            place.poison()
            before = gpu.read_sensors()
            measurement = self._timer_of(gpu).measure(loaded.work(place.addresses), effort, rng)
            conditions = gpu.conditions_since(before)
            place.judge_again()
        return replace(measurement, conditions=conditions)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        """Times programs, or cuBLAS, on the same arrays in turns; reads the sensors between rounds."""
        programs = [one for one in loaded if isinstance(one, LoadedProgram | LoadedCublas)]
        with failing_as(Stage.MEASURE):
            place, gpu = self._place_of(problem, rng), self._opened()
            place.fill(rng)  # a fresh process has verified nothing: what lies there would be timed
            works = tuple(program.work(place.addresses) for program in programs)
            between: list[GpuState] = []

            def read_sensors() -> None:
                between.extend(filter(None, [gpu.read_sensors()]))

            before = gpu.read_sensors()
            measurements = self._timer_of(gpu).measure_together(works, effort, rng, read_sensors)
            conditions = gpu.conditions_since(before, between)
        return tuple(replace(each, conditions=conditions) for each in measurements)

    def _opened(self) -> Gpu:
        if self._gpu is None:
            try:
                self._gpu = self._open(self.usable())
            except DeviceError as error:
                raise CandidateError(Stage.LOAD, COMPILED_ONLY.format(error)) from error
        return self._gpu

    def _timer_of(self, gpu: Gpu) -> GpuTimer:
        self._timer = self._timer or GpuTimer(gpu.device, gpu.cache_bytes)
        return self._timer

    def _place_of(self, problem: Problem, rng: np.random.Generator) -> GpuPlace:
        if self._place is None or self._place.problem != problem:
            if self._place is not None:
                self._place.close()  # before the next is allocated
            self._place = None
            self._place = GpuPlace(self._opened().device, problem, rng, self._compare)
        return self._place
