"""The CPU target: scripts to machine code of this processor, run by a crew of threads, really timed."""

import hashlib
import time
from dataclasses import dataclass

import numpy as np

from tuner.errors import CandidateError, Stage, failing_at
from tuner.machine import Compiler, Machine
from tuner.mlir import bindings, guards, interpreter, lowering
from tuner.mlir.jit import JittedModule, PackedArguments
from tuner.payload import Panel, element_offsets, panels_in, payload_mlir
from tuner.problem import Problem
from tuner.record import Measurement, Verdict
from tuner.reference import Array
from tuner.runtime import timing
from tuner.runtime.allocation import keep_freed_memory
from tuner.runtime.crew import Crew
from tuner.runtime.host import describe_machine
from tuner.target import AbstractTarget, Artifact, Effort, Script
from tuner.targets.cpu_compiler import cpu_compiler
from tuner.targets.place import Place


@dataclass(frozen=True, eq=False)
class LoadedKernel:
    """Machine code of one artifact."""

    code: JittedModule
    panels: tuple[Panel, ...]

    def calls(self, problem: Problem, arrays: tuple[Array, ...]) -> "PreparedCall":
        """Returns the calls on these arrays: A, B[, bias], C."""
        packed = tuple(self._arguments(problem, panel, arrays) for panel in self.panels)
        addresses = tuple(self.code.addresses[panel.entry] for panel in self.panels)
        calls = tuple(zip(addresses, (arguments.address for arguments in packed), strict=True))
        return PreparedCall(calls, (arrays, packed))

    def _arguments(self, problem: Problem, panel: Panel, arrays: tuple[Array, ...]) -> PackedArguments:
        offsets = element_offsets(problem, panel)
        pairs = zip(arrays, offsets, strict=True)
        return PackedArguments(*(array.ctypes.data + offset * array.itemsize for array, offset in pairs))


@dataclass(frozen=True, eq=False)
class PreparedCall:
    """Function and argument addresses of every panel, and what must outlive them."""

    calls: tuple[tuple[int, int], ...]
    keeps: object


class CpuTarget(AbstractTarget):
    """This machine's processor. Compiling and running may happen in different processes."""

    name = "cpu"

    def __init__(self, threads: int, pin_to: tuple[int, ...] = ()) -> None:
        """Takes the number of threads that a kernel may use, and the processors to keep them on, if any."""
        self._threads = threads
        self._pin_to = pin_to
        self._crew: Crew | None = None
        self._place: Place | None = None
        self._context: bindings.ir.Context | None = None

    def machine(self) -> Machine:
        """Returns this machine."""
        return describe_machine()

    def compiler(self) -> Compiler:
        """Returns the pinned wheels and the lowering pipeline."""
        return cpu_compiler()

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Transforms, lowers, and rejects what would crash the JIT."""
        with failing_at(Stage.BIND):
            panels = panels_in(script.text, problem)
        start = time.perf_counter()
        self._context = self._context or interpreter.new_context()
        with self._context, bindings.ir.Location.unknown():
            module = interpreter.parse(payload_mlir(problem, panels), "payload")
            interpreter.apply_script(module, interpreter.parse(script.text, "script"))
            transformed = time.perf_counter()
            code = lowering.lower_to_llvm(module)
        guards.reject_what_crashes_the_jit(code)
        stages = (("transform", transformed - start), ("lower", time.perf_counter() - transformed))
        digest = hashlib.sha256((code + repr(panels)).encode()).hexdigest()
        return Artifact(code, digest, panels, stages)

    def load(self, problem: Problem, artifact: Artifact) -> LoadedKernel:
        """Compiles the LLVM dialect for this processor."""
        panels = artifact.panels
        if len(panels) > self._threads:
            raise CandidateError(Stage.LOAD, f"script wants {len(panels)} threads, allowed {self._threads}")
        return LoadedKernel(JittedModule(artifact.code, tuple({panel.entry for panel in panels})), panels)

    def verify(self, problem: Problem, loaded: object, rng: np.random.Generator) -> Verdict:
        """Runs once on fresh inputs into a poisoned, guarded C and compares every element."""
        assert isinstance(loaded, LoadedKernel)
        place = self._place_of(problem, rng)
        place.fill(rng)
        self._repeat(loaded.calls(problem, place.arrays))(1)
        return place.judge()

    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        """Times calls on one set of random inputs that stays in place, and judges what the last one left."""
        assert isinstance(loaded, LoadedKernel)
        place = self._place_of(problem, rng)
        place.poison()
        measurement = timing.measure(self._repeat(loaded.calls(problem, place.arrays)), effort, rng)
        place.judge()
        return measurement

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        """Times several kernels on the same arrays, sample by sample."""
        arrays = self._place_of(problem, rng).arrays
        kernels = (one for one in loaded if isinstance(one, LoadedKernel))
        repeats = tuple(self._repeat(kernel.calls(problem, arrays)) for kernel in kernels)
        return timing.measure_together(repeats, effort, rng)

    def _repeat(self, prepared: PreparedCall) -> timing.Repeat:
        crew = self._threads_crew()

        def repeat(times: int) -> None:
            crew.repeat(prepared.calls, times)

        return repeat

    def _place_of(self, problem: Problem, rng: np.random.Generator) -> Place:
        if self._place is None or self._place.problem != problem:
            self._place = None  # before the next is allocated
            self._place = Place(problem, rng)
        return self._place

    def _threads_crew(self) -> Crew:
        if self._crew is None:
            keep_freed_memory()
            self._crew = Crew(self._threads)
            if self._pin_to:
                self._crew.pin(self._pin_to)
        return self._crew
