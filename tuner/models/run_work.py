"""Work of child processes on whole programs: run, compare, time."""

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tuner.core.device_programs import DeviceProgram
from tuner.core.errors import (
    CandidateError,
    Refusal,
    TunerError,
)
from tuner.core.fusions import NEW_VALUE
from tuner.models.arguments import make_arguments, type_text
from tuner.models.comparison import compare, compare_printed
from tuner.models.compile_work import as_failures, compiled_program, compiler_of, with_schedules
from tuner.models.compiler import CompiledProgram
from tuner.models.execution import ProgramRun, copies, run_on_device, run_on_host
from tuner.models.reference import Reference, interpreted_reference, reference_of
from tuner.models.report import Comparison, ProgramReport
from tuner.models.request import ProgramRequest
from tuner.models.run.host_function import HostFunction
from tuner.models.speedup import (
    TimedFusions,
    TimedPair,
    timed_next_to_untuned,
    timed_on_device,
    timed_on_host,
)
from tuner.runtime.programs.runner_functions import discard
from tuner.targets.registry import real_backends

if TYPE_CHECKING:
    pass

# Indices, and offsets that are values: a program of fusions without them is in bounds by its static shapes
INDEXED = re.compile(
    r'"tensor\.|tensor\.(extract|insert|gather|scatter)\b|tensor\.(extract|insert)_slice[^:]*\[[^\]:]*%'
)


@dataclass(frozen=True)
class RunAndTimes:
    """The outcome of a run of a tuned program, and its times next to the untuned program."""

    report: ProgramReport
    times: TimedFusions | None  # None: the target has no times, or ``why_untimed``
    why_untimed: str = ""


@as_failures()
def run_and_time(request: ProgramRequest) -> RunAndTimes:
    """Runs a program of fusions with its database's schedules, then times it next to the untuned program.

    The timing of both is left out, with a reason, where it fails. Raises CandidateError where the run fails:
    BIND for the user's mistakes, RUN for device errors.
    """
    tuned, report = _run(request, [])
    if report.times is None:
        is_failing = request.is_timed and tuned.image is not None
        return RunAndTimes(report, None, "calls one after the other fail" if is_failing else "")
    try:
        compiler = compiler_of(request)
        rng = np.random.default_rng(request.options.seed)
        untuned = compiled_program(compiler, replace(request, database=""), as_fusions=True)
        arguments = make_arguments(tuned.code.arguments, request.arguments, rng)
        return RunAndTimes(report, timed_next_to_untuned(tuned, untuned, arguments, request.options))
    except TunerError as error:
        return RunAndTimes(report, None, str(error))


@as_failures()
def run_program(request: ProgramRequest, printed: list[str] | None = None) -> ProgramReport:
    """Compiles and runs a program; compares and times it if the request asks for it; returns the report.

    What the program prints is appended to ``printed`` too, also if the program fails later. The results are
    compared with ``reference_of``: the payload interpreted, or run as loops on the host. The simulator has no
    times. Raises CandidateError: BIND for the user's mistakes, RUN for device errors.
    """
    return _run(request, [] if printed is None else printed)[1]


def _run(request: ProgramRequest, printed: list[str]) -> tuple[CompiledProgram, ProgramReport]:
    compiler = compiler_of(request)
    compiled = compiled_program(compiler, request, as_fusions=True)
    support = compiler.support
    code = compiled.code
    rng = np.random.default_rng(request.options.seed)
    arguments = make_arguments(code.arguments, request.arguments, rng)
    if not support.has_device:
        is_indexed = (
            INDEXED.search(request.text) and NEW_VALUE not in request.text
        )  # which only fusions write
        if compiled.image is None or is_indexed:
            # first a run that checks bounds: if it fails, what it has printed stays in ``printed``
            checked = compiled_program(compiler, request, is_checked=True).code
            HostFunction(checked, printed.append)(*copies(arguments))
            printed.clear()
        ran = run_on_host(request, compiled, arguments, printed)
    else:
        ran = run_on_device(request, support, code, arguments, printed)
    work_without_fusions = None
    if code.fusions:
        with with_schedules(compiler, request) as scheduled:
            work_without_fusions = scheduled.work_without_fusions(
                request.text, request.entry, request.options.device
            )
    reference = _reference(request, code, arguments)
    not_compared = ""
    if isinstance(reference, Refusal):
        not_compared = reference.text
        reference = None
    report = ProgramReport(
        entry=code.entry,
        arguments=tuple(map(type_text, code.arguments)),
        results=tuple(map(type_text, code.results)),
        problems=compiled.problems,
        tuned=compiled.tuned,
        given_up=compiled.given_up,
        streams=code.stream_slots,
        trace=ran.trace,
        defects=ran.reports,
        comparisons=_comparisons(compiled, ran, reference),
        reference="" if reference is None else reference.name,
        not_compared=not_compared,
        times=ran.times,
        is_interpreted=bool(code.interpreted),
        printed=ran.printed,
        is_simulated=support.is_simulated,
        samples=ran.samples,
        work=ran.work,
        work_without_fusions=work_without_fusions,
        resident_bytes=sum(len(buffer.data) for buffer in code.resident if support.has_device),
        device_fusions=code.fusions,
        fusions=ran.fusions,
        why_no_fusions=compiled.why_no_fusions,
    )
    return compiled, report


def _reference(
    request: ProgramRequest, code: DeviceProgram, arguments: tuple[Any, ...]
) -> Reference | Refusal | None:
    """Returns what results are compared with; None unless that is asked for.

    A program with its own schedule, which may be wrong, is compared by default, where it has little work;
    else a Refusal says why it is not.
    """
    if request.is_compared:
        return reference_of(request, code, arguments, real_backends())
    if not request.has_schedule or request.options.sample:
        return None
    try:
        return interpreted_reference(request, code, arguments)
    except CandidateError as error:
        return Refusal(error.reason)


@as_failures()
def time_pair(request: ProgramRequest) -> TimedPair:
    """Times a program with its scripts, and with loops in place of scripts; calls are interleaved.

    Raises CandidateError: BIND for the user's mistakes, RUN for device errors, else the stage that failed.
    """
    compiler = compiler_of(request)
    seed = request.options.seed
    bound = compiled_program(compiler, request).code
    plain = compiled_program(compiler, replace(request, scripts=None)).code
    arguments = make_arguments(bound.arguments, request.arguments, np.random.default_rng(seed))
    if not compiler.support.has_device:
        functions = [HostFunction(code, discard) for code in (bound, plain, bound)]
        return timed_on_host(functions, arguments, seed)
    device = compiler.support.open_device(request.target.detail, request.options.order, seed)
    return timed_on_device(device, bound, plain, arguments, seed)


def _comparisons(
    compiled: CompiledProgram, ran: ProgramRun, reference: Reference | None
) -> tuple[Comparison, ...]:
    if reference is None:
        return ()
    code = compiled.code
    multiplied = frozenset(problem.dtype for problem in compiled.problems)
    numbers = compare(code, ran.outputs, reference.outputs, multiplied)
    return (*numbers, *compare_printed(code, ran.printed, reference.printed))
