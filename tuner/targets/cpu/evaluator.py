"""Verifies and times kernels on this machine's processor; verifies code for others where possible.

``CpuEvaluator`` implements the evaluator's port by the JIT; a CrossCompiledEvaluator verifies code for
another processor, and never times it.
"""

import os
import time
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from tuner.core.errors import CandidateError, Stage, TunerError, failing_as_member
from tuner.core.fusions import FUSION_ENTRY
from tuner.core.interfaces import AbstractBaselineSource, AbstractEvaluator, Artifact, Effort, LoadedLibrary
from tuner.core.machine import Machine
from tuner.core.packings import packings_in, threads_in
from tuner.core.problem import Problem
from tuner.core.processors import missing_on, refusal
from tuner.core.progress import KERNEL, step
from tuner.core.quantization import CONSTANT
from tuner.core.records import Measurement, OffsetTime, Verdict
from tuner.mlir.cpu.needed_instructions import instructions_needed
from tuner.payload.cpu import element_offsets
from tuner.payload.reference import NUMPY_DTYPES
from tuner.runtime import timing
from tuner.runtime.cpu.cold_caches import EVICTING_L2S, EVICTING_L3S
from tuner.runtime.cpu.host import describe_machine
from tuner.runtime.cpu.jit import JittedModule
from tuner.runtime.cpu.memory import keep_freed_memory
from tuner.runtime.cpu.roofline import flop_per_s
from tuner.runtime.cpu.stack_overflow import report_stack_overflows
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.runtime.cpu.timing_conditions import HostWatch
from tuner.targets.arrays import KernelArrays, ProblemArrays
from tuner.targets.cpu import placed_operands
from tuner.targets.cpu.baseline import InterleavedBaseline
from tuner.targets.cpu.baseline_libraries import chosen_libraries
from tuner.targets.cpu.loaded_kernel import LoadedKernel, ThreadPart
from tuner.targets.cpu.processor_peak import ProcessorPeak
from tuner.targets.cpu.side_effects import no_thread_started, same_float_mode
from tuner.targets.cpu.timing_checks import PartitionCalls, TimingChecks

DRAWS = 8  # inputs that a kernel is verified on, if VERIFY_S allows; more where special numbers need them
# The first, and those with special numbers, are drawn always; each second one has flipped signs.
# draws in which no two operands lie at the same offset in a page
USUAL_DRAWS = 2  # at least, the first and the last, of matrices so small that there is time for all
UNEVEN_DRAW = 2
UNEVEN_EVERY = 4
VERIFY_S = 0.03
KEPT_ARRAYS = 16  # of fusions: a program's fusions are tuned in any order
KEPT_BYTES = 2**28  # of their operands: above, all are dropped before others are allocated
PROBE_SAMPLES = 60  # of 0.15 ms: the best of them is within some percent of the best of many
SECOND_LOOK = Effort(budget_s=0.02)  # of a kernel that is faster than what was seen here
EXTREME_DRAWS = 2  # that top-k candidates are verified on in addition
VERIFIED = (
    "verified is the code as compiled for this processor, with vectors in place of AMX tiles and dot "
    "products that it does not have; the code for the other one did not run"
)
NO_CLOCK = "code for another processor is not timed"


@final
class CpuEvaluator(AbstractEvaluator, AbstractBaselineSource):
    """Loads artifacts by the JIT on this machine's processor, verifies and times them."""

    def __init__(self, threads: int, pin_to: tuple[int, ...] = (), choice: str = "") -> None:
        """``threads``: of each kernel; ``pin_to``: processors that the threads are pinned to, () for any.

        ``choice``: the user's choice of baseline libraries, as of ``chosen_libraries``.
        """
        self._threads = threads
        self._choice = choice
        self.baseline_threads = threads
        self._pin_to = pin_to
        self._team: ThreadTeam | None = None
        self._arrays: dict[Problem, KernelArrays] = {}
        self._watch: HostWatch | None = None
        self._baselines: dict[str, InterleavedBaseline] = {}  # by the name of the library
        self._processors = frozenset(os.sched_getaffinity(0))  # before this thread is pinned
        self._peak: ProcessorPeak | None = None
        self._machine: Machine | None = None  # described once code asks for instructions

    def load(self, problem: Problem, artifact: Artifact) -> LoadedKernel:
        """Compiles an artifact to machine code; returns the loaded kernel.

        Raises CandidateError(LOAD) for too many threads, and for instructions that this processor lacks.
        """
        code = artifact.code.text
        partitions = artifact.partitions
        # a text's code names its number of threads
        threads = len(partitions) or threads_in(code)
        if threads > self._threads:
            line = f"script wants {threads} threads, allowed {self._threads}"
            raise CandidateError(Stage.LOAD, line)
        needs = instructions_needed(code)  # to compile those that are missing would end the process
        reason = refusal(self._described_machine(), needs) if needs else None
        if reason is not None:
            raise CandidateError(Stage.LOAD, reason.text)
        functions = tuple({partition.called for partition in partitions}) or (FUSION_ENTRY,)
        module = JittedModule(code, functions)
        parts = []
        for partition in partitions:
            pairs = zip(element_offsets(problem, partition), problem.arguments, strict=True)
            offsets = tuple(offset * NUMPY_DTYPES[argument.dtype].itemsize for offset, argument in pairs)
            parts.append(ThreadPart(module.addresses[partition.called], offsets if any(offsets) else ()))
        for thread in range(0 if partitions else threads):
            share = (thread, threads) if threads > 1 else ()
            parts.append(ThreadPart(module.addresses[FUSION_ENTRY], share=share))
        return LoadedKernel(module, tuple(parts), packings_in(code))

    def verify(self, problem: Problem, loaded: object, rng: np.random.Generator) -> Verdict:
        """Runs a kernel on several draws of inputs; returns the worst verdict.

        Raises CandidateError for a wrong result, or for threads and float modes left behind. An access
        outside of the operands of a matmul may end the process.
        """
        assert isinstance(loaded, LoadedKernel)
        arrays = self._arrays_of(problem, rng)
        team = self._thread_team()
        prepared: dict[bool, PartitionCalls] = {}  # by whether the arrays lie before pages that fault
        worst = Verdict(0.0, 0)
        give_up = time.perf_counter() + VERIFY_S
        for draw in range(max(DRAWS, arrays.special_draws + USUAL_DRAWS)):
            if draw > arrays.special_draws and time.perf_counter() > give_up:
                break
            is_new = draw % 2 == 0
            is_uneven = draw % UNEVEN_EVERY == UNEVEN_DRAW
            with arrays.unevenly_placed(rng) if is_uneven else arrays.guarded(at_end=is_new):
                if is_new:
                    arrays.fill(rng)
                else:
                    arrays.flip_signs()
                if 0 < draw <= arrays.special_draws:
                    arrays.add_special_numbers(rng, draw - 1)
                calls = None if is_uneven else prepared.get(is_new)
                if calls is None:
                    calls = loaded.calls_on(arrays)
                    if not is_uneven:
                        prepared[is_new] = calls
                with step(KERNEL), no_thread_started(), same_float_mode():
                    team.repeat(calls.calls, 1)
                verdict = arrays.evaluate()
            worst = max(worst, verdict, key=lambda verdict: (verdict.elements, verdict.max_error))
        arrays.require_same_weights(loaded.packings)
        return worst

    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        assert isinstance(loaded, LoadedKernel)
        if effort.has_extremes:
            self.verify_on_extremes(problem, (loaded,), rng)
        watch = self._host_watch()
        before = watch.read()
        reference_kernel = watch.sample_reference()
        measurement = timing.measure_by(self._stopwatch(problem, loaded, rng), effort, rng)
        host = watch.conditions(before, watch.read(), (*reference_kernel, *watch.sample_reference()))
        self._require_possible(problem, loaded, measurement, rng)
        return replace(measurement, host=host)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        """Verifies kernels on extreme inputs, then times them and loaded baselines interleaved.

        Returns the measurements in the order of ``loaded``. Two kernels of fixed work are timed in each
        round, to tell how fast the machine was. Raises GroupMemberError for a kernel that fails.
        """
        began_s = time.perf_counter()
        self.verify_on_extremes(problem, loaded, rng)
        watch = self._host_watch()
        baselines = [code for code in loaded if isinstance(code, InterleavedBaseline)]
        processes = [baseline.process for baseline in baselines]
        stopwatches = tuple(self._stopwatch(problem, code, rng, index) for index, code in enumerate(loaded))
        before = watch.read(*processes)
        waited_s = sum(baseline.waited_s for baseline in baselines)
        surrounding_s = watch.sample_reference()
        # two kernels of fixed work, timed in each round: multiply-adds in registers, which drift with the
        # clock, and a product of small packed panels, which is slower when the host is (see
        # ``timing_conditions``)
        watching = (
            timing.with_untimed_calls(watch.reference_kernel),
            timing.with_untimed_calls(watch.panel_product),
        )
        left = effort.after(time.perf_counter() - began_s)
        *times, reference_kernel, product = timing.measure_together_by((*stopwatches, *watching), left, rng)
        surrounding_s += watch.sample_reference()
        after = watch.read(*processes)
        waited_s = sum(baseline.waited_s for baseline in baselines) - waited_s
        # a baseline's process sleeps between its samples on purpose
        after = replace(after, waited_s=after.waited_s - waited_s)
        host = watch.conditions(
            before, after, tuple(surrounding_s), product.samples_s, interleaved_s=reference_kernel.samples_s
        )
        for index, (measurement, code) in enumerate(zip(times, loaded, strict=True)):
            if isinstance(code, LoadedKernel):
                with failing_as_member(index):
                    self._require_possible(problem, code, measurement, rng)
        offsets: dict[int, tuple[OffsetTime, ...]] = {}
        if effort.has_offsets:
            left = effort.after(time.perf_counter() - began_s)
            offsets = self._offsets(problem, loaded, tuple(times), left, rng)
        return tuple(
            replace(measurement, host=host, offsets=offsets.get(index, ()))
            for index, measurement in enumerate(times)
        )

    def _offsets(
        self,
        problem: Problem,
        loaded: tuple[object, ...],
        times: tuple[Measurement, ...],
        effort: Effort,
        rng: np.random.Generator,
    ) -> dict[int, tuple[OffsetTime, ...]]:
        """Times the fastest kernels again with operands some bytes past a cache line; returns times by index.

        ``loaded``: all kernels and baselines of a round, ``times``: their times. Stops after
        ``effort.within_s``.
        """
        began_s = time.perf_counter()
        kernels = {index: code for index, code in enumerate(loaded) if isinstance(code, LoadedKernel)}
        if not kernels or not placed_operands.fits(problem):
            return {}
        chosen = placed_operands.fastest({index: times[index] for index in kernels})
        arrays = self._arrays_of(problem, rng)
        team = self._thread_team()
        arrays.fill(rng)
        placed = placed_operands.PlacedOperands(problem, arrays.operands)
        times_at: dict[int, tuple[OffsetTime, ...]] = {}
        for index in chosen:
            if effort.after(time.perf_counter() - began_s).within_s == 0.0:
                break
            calls = tuple(kernels[index].calls(operands) for operands in placed.operands)
            times_at[index] = placed.times(team, calls, effort, rng)
        return times_at

    def verify_on_extremes(
        self, problem: Problem, loaded: tuple[object, ...], rng: np.random.Generator
    ) -> None:
        """Verifies kernels on small and large inputs and signed zeros, which ``verify`` does not draw.

        Raises GroupMemberError, with the index of the kernel, for a wrong result.
        """
        arrays = self._arrays_of(problem, rng)
        team = self._thread_team()
        for _ in range(EXTREME_DRAWS):
            with arrays.unevenly_placed(rng):
                arrays.fill_with_extremes(rng)
                for index, kernel in enumerate(loaded):
                    if isinstance(kernel, LoadedKernel):
                        arrays.overwrite_output(rng)
                        prepared = kernel.calls_on(arrays)
                        with failing_as_member(index):
                            with same_float_mode():  # each sample that follows looks for threads
                                team.repeat(prepared.calls, 1)
                            arrays.check_rows(rng)

    def load_baselines(self, problem: Problem, rng: np.random.Generator) -> tuple[LoadedLibrary, ...]:
        if not problem.runs_alone:
            return ()  # no library computes a fusion
        seed = int(rng.integers(2**63))
        names = chosen_libraries(self._choice, problem)
        return tuple(self._loaded_library(name, problem, seed) for name in names)

    def _loaded_library(self, library: str, problem: Problem, seed: int) -> LoadedLibrary:
        baseline = self._baselines.pop(library, None)
        if baseline is None or baseline.problem != problem or baseline.has_ended:
            if baseline is not None:
                baseline.close()
            try:
                baseline = InterleavedBaseline(problem, self._threads, seed, self._processors, library)
            except TunerError as error:
                return LoadedLibrary(library, "", failure=str(error))
        kept = self._baselines[library] = baseline
        return LoadedLibrary(library, kept.name, kept, has_ended=lambda: kept.has_ended)

    def _stopwatch(
        self, problem: Problem, loaded: object, rng: np.random.Generator, index: int = 0
    ) -> timing.Stopwatch:
        """Returns the stopwatch of a kernel or baseline; ``index``: of a kernel among those of its round."""
        if isinstance(loaded, InterleavedBaseline):
            return loaded.take
        assert isinstance(loaded, LoadedKernel)
        arrays = self._arrays_of(problem, rng)
        checks = TimingChecks(self._thread_team(), loaded.calls_on(arrays), arrays, rng)

        def take(inner: int) -> float:
            with failing_as_member(index):
                return checks(inner)

        return take

    def _host_watch(self) -> HostWatch:
        if self._watch is None:
            self._watch = HostWatch(self._thread_team(), self._processors)
        return self._watch

    def _require_possible(
        self, problem: Problem, kernel: LoadedKernel, measurement: Measurement, rng: np.random.Generator
    ) -> None:
        """Raises CandidateError(VERIFY) for a time that no processor of this name can reach by its documents.

        A time above the measured peak is verified and timed once more, and then raises that peak.
        """
        if self._peak is None:
            team = self._thread_team()
            machine = self._described_machine()
            self._peak = ProcessorPeak(
                machine, self._threads, lambda dtype: flop_per_s(team, dtype, machine, PROBE_SAMPLES)
            )
        self._peak.require_possible(problem, measurement)
        if self._peak.is_exceeded(problem, measurement):
            self.verify(problem, kernel, rng)
            again = timing.measure_by(self._stopwatch(problem, kernel, rng), SECOND_LOOK, rng)
            self._peak.require_possible(problem, again)
            self._peak.rise(problem, measurement)

    def _arrays_of(self, problem: Problem, rng: np.random.Generator) -> KernelArrays:
        if problem not in self._arrays:
            kept = sum(array.bytes for array in self._arrays)
            if not problem.text or len(self._arrays) >= KEPT_ARRAYS or kept > KEPT_BYTES:
                self._arrays.clear()  # before the next are allocated
            self._arrays[problem] = self._new_arrays(problem, rng)
        return self._arrays[problem]

    def _new_arrays(self, problem: Problem, rng: np.random.Generator) -> KernelArrays:
        if not problem.text:
            return ProblemArrays(problem, rng)
        from tuner.targets.cpu.fusion_arrays import FusionArrays  # loads all of MLIR's transform ops

        machine = self._described_machine()
        evicting_bytes = EVICTING_L2S * machine.l2_bytes
        if problem.weights not in ("", CONSTANT):
            # read from memory: quantized weights of a model fit no cache
            evicting_bytes = max(evicting_bytes, EVICTING_L3S * machine.l3_bytes)
        return FusionArrays(problem, rng, evicting_bytes)

    def _described_machine(self) -> Machine:
        self._machine = self._machine or describe_machine()
        return self._machine

    def _thread_team(self) -> ThreadTeam:
        if self._team is None:
            keep_freed_memory()
            self._team = ThreadTeam(self._threads)
            if self._pin_to:
                self._team.pin(self._pin_to)
        return self._team


@dataclass(frozen=True)
class CompiledOnly:
    """Stands for code that was compiled, but that this processor cannot run; ``reason``: why it cannot."""

    reason: str


@final
class CrossCompiledEvaluator(AbstractEvaluator):
    """Verifies code for another processor, if this processor can run it; never times it."""

    is_timed = False

    def __init__(self, threads: int, pin_to: tuple[int, ...] = ()) -> None:
        self._inner = CpuEvaluator(threads, pin_to)

    def load(self, problem: Problem, artifact: Artifact) -> LoadedKernel | CompiledOnly:
        here = describe_machine()
        missing = missing_on(here, instructions_needed(artifact.code.text))
        if missing:
            return CompiledOnly(f"{here.processor} has no {' and no '.join(missing)}")
        return self._inner.load(problem, artifact)

    def verify(self, problem: Problem, loaded: object, rng: np.random.Generator) -> Verdict:
        if isinstance(loaded, CompiledOnly):
            return Verdict(0.0, 0, (f"compiled only, nothing was verified: {loaded.reason}",))
        verdict = self._inner.verify(problem, loaded, rng)
        self._inner.verify_on_extremes(problem, (loaded,), rng)  # here no final re-measurement does it
        return replace(verdict, notes=(*verdict.notes, VERIFIED))

    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        raise CandidateError(Stage.MEASURE, NO_CLOCK)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        raise CandidateError(Stage.MEASURE, NO_CLOCK)


def child_evaluator(threads: int, pin_to: tuple[int, ...], choice: str) -> CpuEvaluator:
    """Returns the CpuEvaluator of a child process, which prints to stderr if a kernel overflows its stack."""
    report_stack_overflows()
    return CpuEvaluator(threads, pin_to, choice)
