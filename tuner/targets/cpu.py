"""The CPU target: scripts to machine code of this processor, run by a crew of threads, really timed."""

import ctypes
import hashlib
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.errors import CandidateError, Stage, UsageError
from tuner.machine import Compiler, Machine
from tuner.mlir import bindings, guards, interpreter, lowering
from tuner.mlir.jit import JittedModule, PackedArguments
from tuner.payload import Panel, element_offsets, panels_in, payload_mlir
from tuner.problem import Problem
from tuner.record import Measurement, Verdict
from tuner.reference import Base, Inputs, compare, draw, draw_base, output_dtype
from tuner.runtime import timing
from tuner.runtime.allocation import GuardedArray, aligned_copy, keep_freed_memory
from tuner.runtime.crew import Crew
from tuner.runtime.host import describe_machine
from tuner.target import AbstractTarget, Artifact, Effort, Script

Array = npt.NDArray[Any]


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
        self._base: tuple[Problem, Base] | None = None
        self._context: bindings.ir.Context | None = None

    def machine(self) -> Machine:
        """Returns this machine."""
        return describe_machine()

    def compiler(self) -> Compiler:
        """Returns the pinned wheels and the lowering pipeline."""
        return Compiler(bindings.llvm_version(), bindings.packages(), lowering.pipeline_sha256())

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Transforms, lowers, and rejects what would crash the JIT."""
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
        inputs = draw(problem, self._base_of(problem, rng), rng)
        output = GuardedArray(inputs.expected.shape, output_dtype(problem))
        arrays = (*_input_arrays(inputs), output.array)
        self._repeat(loaded.calls(problem, arrays))(1)
        stray = output.stray_bytes()
        if stray:
            raise CandidateError(Stage.VERIFY, f"wrote {stray} bytes outside of C")
        verdict, worst = compare(inputs, output.array)
        if not verdict.max_error <= 1.0:
            raise CandidateError(Stage.VERIFY, worst)
        return verdict

    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        """Times calls on one set of random inputs that stays in place."""
        assert isinstance(loaded, LoadedKernel)
        return timing.measure(self._repeat(loaded.calls(problem, self._arrays(problem, rng))), effort, rng)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        """Times several kernels on the same arrays, sample by sample."""
        arrays = self._arrays(problem, rng)
        repeats = tuple(
            self._repeat(kernel.calls(problem, arrays))
            for kernel in loaded
            if isinstance(kernel, LoadedKernel)
        )
        return timing.measure_together(repeats, effort, rng)

    def _repeat(self, prepared: PreparedCall) -> timing.Repeat:
        crew = self._threads_crew()

        def repeat(times: int) -> None:
            crew.repeat(prepared.calls, times)

        return repeat

    def _arrays(self, problem: Problem, rng: np.random.Generator) -> tuple[Array, ...]:
        inputs = draw(problem, self._base_of(problem, rng), rng)
        output = GuardedArray(inputs.expected.shape, output_dtype(problem))
        return (*_input_arrays(inputs), output.array)

    def _base_of(self, problem: Problem, rng: np.random.Generator) -> Base:
        if self._base is None or self._base[0] != problem:
            self._base = (problem, draw_base(problem, rng))
        return self._base[1]

    def _threads_crew(self) -> Crew:
        if self._crew is None:
            keep_freed_memory()
            self._crew = Crew(self._threads)
            if self._pin_to:
                self._crew.pin(self._pin_to)
        return self._crew


def _input_arrays(inputs: Inputs) -> tuple[Array, ...]:
    bias = () if inputs.bias is None else (aligned_copy(inputs.bias),)
    return (aligned_copy(inputs.a), aligned_copy(inputs.b), *bias)
