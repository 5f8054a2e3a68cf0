"""The work of child processes on whole programs: run, time, lower, check, find what can be tuned.

A crash or hang of a compiler or of a program then does not end the caller's process.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tuner.core.candidate import CUDA, TargetName
from tuner.core.device_programs import DeviceProgram, LoweringStep
from tuner.core.errors import (
    CandidateError,
    DeviceError,
    Failure,
    Refusal,
    Stage,
    TunerError,
    UsageError,
    failing_at,
)
from tuner.core.fusions import NEW_VALUE, QUANTIZED, Fusion
from tuner.core.gpu import chip_of
from tuner.core.problem import Problem
from tuner.core.programs import FusionSchedule, KnownSchedules, Schedules, TunedKernel
from tuner.core.progress import CompileObserver, ignore_compile_event
from tuner.core.queries import TaskQuery
from tuner.mlir import bindings, transform
from tuner.mlir.ir.resources import Data, constants_bytes, mapped_payload, split_payload, without_data
from tuner.programs.arguments import make_arguments, type_text
from tuner.programs.children import CompilingChildren, called, shown_progress
from tuner.programs.comparison import compare, compare_printed
from tuner.programs.compiler import TOO_DEEP, CompiledProgram, ProgramCompiler, problems_in
from tuner.programs.execution import ProgramRun, copies, run_on_device, run_on_host
from tuner.programs.fusion_schedules import fusion_schedules, matmul_schedules
from tuner.programs.fusions.payload import Constants, NotFused
from tuner.programs.fusions.pipeline import fuse_program
from tuner.programs.lowering.device import text_after
from tuner.programs.reference import Reference, interpreted_reference, reference_of
from tuner.programs.report import Comparison, ProgramReport
from tuner.programs.request import ProgramRequest
from tuner.programs.run.host_function import HostFunction, check_host_code
from tuner.programs.run.runner_functions import discard
from tuner.programs.speedup import (
    TimedFusions,
    TimedPair,
    timed_next_to_untuned,
    timed_on_device,
    timed_on_host,
)
from tuner.programs.tunable_fusions import TunableFusions, tunable_fusions
from tuner.runtime.workers.worker import call_in_child
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file
from tuner.targets.backends import Backends
from tuner.targets.registry import real_backends

if TYPE_CHECKING:
    from tuner.core.problem_classes import TextProblem
    from tuner.db.store import Store
    from tuner.programs.fusions.pipeline import FormedText
    from tuner.programs.linked_programs import CompileTask, LinkedProgram, PackedWeights

NAME = "program"
Value = TypeVar("Value")
# Indices, and offsets that are values: a program of fusions without them is in bounds by its static shapes
INDEXED = re.compile(
    r'"tensor\.|tensor\.(extract|insert|gather|scatter)\b|tensor\.(extract|insert)_slice[^:]*\[[^\]:]*%'
)


@dataclass(frozen=True)
class LoweredText:
    """The text of a program after a lowering step, with the name of the lowered function and the chip."""

    entry: str
    chip: str
    text: str  # MLIR, or PTX
    tuned: tuple[TunedKernel, ...] = ()  # matmuls whose scripts stored trials suggest


@dataclass(frozen=True)
class RunAndTimes:
    """The outcome of a run of a tuned program, and its times next to the untuned program."""

    report: ProgramReport
    times: TimedFusions | None  # None: the target has no times, or ``why_untimed``
    why_untimed: str = ""


@dataclass(frozen=True)
class _StoppedRun:
    failure: Failure
    printed: str


@contextlib.contextmanager
def _as_failures() -> Iterator[None]:
    """Context manager.

    Raises as CandidateError user errors (BIND), device errors (RUN), RecursionError (COMPILE).
    """
    try:
        with failing_at(Stage.BIND):
            yield
    except DeviceError as error:
        raise CandidateError(Stage.RUN, str(error)) from error
    except RecursionError as error:
        raise CandidateError(
            Stage.COMPILE, f"payload: {TOO_DEEP}; divide it into several programs"
        ) from error


def run_in_child(
    request: ProgramRequest, timeout_s: float, show: Callable[[str], object] | None = None
) -> ProgramReport:
    """Compiles and runs a program in a child process; returns its report.

    ``show`` receives what the program printed if it then fails; not after a crash or a timeout. Raises
    UsageError for mistakes of the user, TunerError where the program fails, crashes or exceeds ``timeout_s``.
    """
    outcome = in_compiling_child(_run_or_stop, request, timeout_s)
    if isinstance(outcome, ProgramReport):
        return outcome
    if show is not None:
        show(outcome.printed)
    raise TunerError(f"{NAME}: {outcome.failure.reason}")


def _run_or_stop(request: ProgramRequest) -> "ProgramReport | _StoppedRun":
    printed: list[str] = []
    try:
        return run_program(request, printed)
    except CandidateError as error:
        if not printed:
            raise
        return _StoppedRun(error.failure, "".join(printed))


def in_child(work: Callable[..., Value], *arguments: object, timeout_s: float) -> Value:
    """Calls an importable function in a child process and returns its result.

    Requests and texts among ``arguments`` are sent without the data of their constants, which the child maps
    (``mapped_payload``). Raises UsageError for mistakes of the user, TunerError where it fails, crashes or
    exceeds ``timeout_s``.
    """
    with contextlib.ExitStack() as files:
        sent = [_with_mapped_data(argument, files) for argument in arguments]
        return call_in_child(NAME, partial(work, *sent), timeout_s, data_bytes=_data_bytes(sent))


def _with_mapped_data(argument: Any, files: contextlib.ExitStack) -> Any:
    """Returns a request or MLIR text whose data a child maps, and any other argument as it is.

    ``files``: the context that closes the files.
    """
    if isinstance(argument, str):
        return files.enter_context(mapped_payload(split_payload(argument)))
    if isinstance(argument, ProgramRequest):
        text = _with_mapped_data(argument.text, files)
        written = text if argument.written == argument.text else _with_mapped_data(argument.written, files)
        return replace(argument, text=text, written=written)
    return argument


def _data_bytes(arguments: Sequence[object]) -> int:
    """Returns the bytes of the constants of the requests and texts among the arguments of a call."""
    texts = [argument.text for argument in arguments if isinstance(argument, ProgramRequest)]
    texts += [argument for argument in arguments if isinstance(argument, str)]
    return sum(map(constants_bytes, texts))


def loaded_service() -> Callable[[Callable[[], Value]], Value]:
    """Loads the compilers and returns ``called``, the service of child processes that are started early."""
    bindings.execution_engine()
    transform.new_context()
    load_space_file(default_space_file())
    return called


def in_compiling_child(
    work: Callable[[ProgramRequest], Value],
    request: ProgramRequest,
    timeout_s: float,
    *,
    is_timed: bool = False,
) -> Value:
    """Calls a function of this module in a child process; on a CPU, other children first compile the fusions.

    ``is_timed``: the fusions of the untuned program, which is timed next to the tuned one, are compiled too.
    Raises UsageError for mistakes of the user, TunerError where the work fails, crashes or exceeds
    ``timeout_s``.
    """
    if not request.target.is_on_cpu:
        return in_child(work, request, timeout_s=timeout_s)
    with contextlib.ExitStack() as files:
        sent = _with_mapped_data(request, files)
        children = files.enter_context(contextlib.closing(CompilingChildren(NAME)))
        try:
            with shown_progress() as observe:
                missing = work_of_missing_fusions(request, is_timed=is_timed)
                children.compile_fusions(missing, timeout_s, observe)
            return children.call(partial(work, sent), Stage.RUN, timeout_s, _data_bytes([sent]))
        except CandidateError as error:
            kind = UsageError if error.stage is Stage.BIND else TunerError
            raise kind(f"{NAME}: {error.reason}") from error


def lower_in_child(request: ProgramRequest, step: LoweringStep, timeout_s: float) -> LoweredText:
    """Lowers a payload up to a step in a child process; returns the text after it.

    Raises UsageError for mistakes of the user, TunerError where lowering fails, crashes or exceeds
    ``timeout_s``.
    """
    return in_child(lower, request, step, timeout_s=timeout_s)


def run_and_time_in_child(request: ProgramRequest, timeout_s: float) -> RunAndTimes:
    """Runs and times a program of fusions, tuned and untuned, in a child process (``run_and_time``).

    Raises UsageError for mistakes of the user, TunerError where it fails, crashes or exceeds ``timeout_s``.
    """
    return in_compiling_child(run_and_time, request, timeout_s, is_timed=True)


@_as_failures()
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
        compiler = _compiler(request)
        rng = np.random.default_rng(request.options.seed)
        untuned = _compile(compiler, replace(request, database=""), as_fusions=True)
        arguments = make_arguments(tuned.code.arguments, request.arguments, rng)
        return RunAndTimes(report, timed_next_to_untuned(tuned, untuned, arguments, request.options))
    except TunerError as error:
        return RunAndTimes(report, None, str(error))


@_as_failures()
def run_program(request: ProgramRequest, printed: list[str] | None = None) -> ProgramReport:
    """Compiles and runs a program; compares and times it if the request asks for it; returns the report.

    What the program prints is appended to ``printed`` too, also if the program fails later. The results are
    compared with ``reference_of``: the payload interpreted, or run as loops on the host. The simulator has no
    times. Raises CandidateError: BIND for the user's mistakes, RUN for device errors.
    """
    return _run(request, [] if printed is None else printed)[1]


def _run(request: ProgramRequest, printed: list[str]) -> tuple[CompiledProgram, ProgramReport]:
    compiler = _compiler(request)
    compiled = _compile(compiler, request, as_fusions=True)
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
            checked = _compile(compiler, request, is_checked=True).code
            HostFunction(checked, printed.append)(*copies(arguments))
            printed.clear()
        ran = run_on_host(request, compiled, arguments, printed)
    else:
        ran = run_on_device(request, support, code, arguments, printed)
    work_without_fusions = None
    if code.fusions:
        with _with_schedules(compiler, request) as scheduled:
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


@_as_failures()
def time_pair(request: ProgramRequest) -> TimedPair:
    """Times a program with its scripts, and with loops in place of scripts; calls are interleaved.

    Raises CandidateError: BIND for the user's mistakes, RUN for device errors, else the stage that failed.
    """
    compiler = _compiler(request)
    seed = request.options.seed
    bound = _compile(compiler, request).code
    plain = _compile(compiler, replace(request, scripts=None)).code
    arguments = make_arguments(bound.arguments, request.arguments, np.random.default_rng(seed))
    if not compiler.support.has_device:
        functions = [HostFunction(code, discard) for code in (bound, plain, bound)]
        return timed_on_host(functions, arguments, seed)
    device = compiler.support.open_device(request.target.detail, request.options.order, seed)
    return timed_on_device(device, bound, plain, arguments, seed)


@_as_failures()
def lower(request: ProgramRequest, step: LoweringStep) -> LoweredText:
    """Lowers a payload, with scripts of the request's database or default scripts, up to a step.

    Returns the text after the step. Raises CandidateError: BIND for mistakes of the user, else the stage that
    failed.
    """
    return lowered(request, step, real_backends())


def compile_and_check(request: ProgramRequest, *, has_data: bool = True) -> CompiledProgram:
    """Compiles a program, checks that its host code compiles to machine code, and returns it.

    ``has_data``: whether memory that stays from call to call has its contents, as of
    ``ProgramCompiler.compile``. Raises CandidateError: BIND for mistakes of the user, LOAD if the host code
    does not compile, else the stage that failed.
    """
    with _as_failures():
        compiler = _compiler(request)
        compiled = _compile(compiler, request, is_checked=False, as_fusions=True, has_data=has_data)
    if compiled.image is None and not compiled.object_code:  # else the machine code is made already
        check_host_code(compiled.code, is_checked=compiler.support.is_simulated)
    return compiled


@_as_failures()
def find_fusions(request: ProgramRequest, cache: str) -> TunableFusions:
    """Returns the tunable fusions of a program, to be timed with CPU caches as ``cache`` says.

    ``cache``: "warm", "weights-cold" or "cold". Raises CandidateError(BIND) for text that does not parse.
    """
    threads = min(request.options.threads, real_backends().processors().usable)
    return tunable_fusions(request.text, request.entry, cache, _compiler(request).machine, threads)


@_as_failures()
def formed_fusions(text: str) -> tuple[Fusion, ...]:
    """Returns the fusions of a payload on this processor; () for a payload that is compiled as a whole.

    Raises CandidateError(BIND) for text that does not parse.
    """
    formed = fuse_program(text, multiplies_pairs=real_backends().machine().multiplies_pairs)
    if isinstance(formed, NotFused):
        return ()
    return formed.program.fusions


@_as_failures()
def find_problems(text: str, entry: str | None) -> tuple[Problem, ...]:
    """Returns the distinct matmuls in a function of MLIR text.

    ``entry``: name of the function; None: ``main``, or the only public one. Raises CandidateError(BIND) for
    text that is not a valid program.
    """
    return problems_in(text, entry)


def _compiler(request: ProgramRequest) -> ProgramCompiler:
    """Returns the compiler for the request's target, a real one: a child process has no fakes."""
    return _compiler_by(request, real_backends())


def _compiler_by(request: ProgramRequest, backends: Backends) -> ProgramCompiler:
    return replace(ProgramCompiler.of(request.target, backends), math=request.options.math)


def _comparisons(
    compiled: CompiledProgram, ran: ProgramRun, reference: Reference | None
) -> tuple[Comparison, ...]:
    if reference is None:
        return ()
    code = compiled.code
    multiplied = frozenset(problem.dtype for problem in compiled.problems)
    numbers = compare(code, ran.outputs, reference.outputs, multiplied)
    return (*numbers, *compare_printed(code, ran.printed, reference.printed))


def _compile(
    compiler: ProgramCompiler,
    request: ProgramRequest,
    *,
    is_checked: bool | None = None,
    as_fusions: bool = False,
    has_data: bool = True,
) -> CompiledProgram:
    if is_checked is None:  # not on a real device, where host code is timed
        is_checked = compiler.support.is_simulated
    with _with_schedules(compiler, request) as compiler:
        return compiler.compile(
            request.text,
            request.entry,
            request.bound,
            request.options.device,
            keeps_kernels=bool(request.options.sample),
            is_checked=is_checked,
            as_fusions=as_fusions,
            threads=request.options.threads,
            has_data=has_data,
        )


@contextlib.contextmanager
def _with_schedules(compiler: ProgramCompiler, request: ProgramRequest) -> Iterator[ProgramCompiler]:
    if request.schedules is not None:
        yield replace(compiler, schedules=request.schedules)
        return
    if not request.database:
        yield compiler
        return
    from tuner.db.store import Store  # loads SQLAlchemy

    with Store.open_or_empty(request.database) as store:
        yield replace(compiler, schedules=_schedules_of(store, compiler, request))


def _schedules_of(store: "Store", compiler: ProgramCompiler, request: ProgramRequest) -> Schedules:
    machine = compiler.machine
    target = request.target
    if not compiler.support.has_device:
        stored = partial(fusion_schedules, store, machine, undecided=request.campaign)
        return _without({problem.computed for problem in request.kept}, stored)
    timed_on = TaskQuery(target=target.text, machine=machine.name)
    if compiler.support.is_simulated:  # the code that GPUs with this chip run, whichever timed it
        timed_on = TaskQuery(target=TargetName(CUDA, target.detail).text)
    return partial(matmul_schedules, store, timed_on, machine)


def _without(kept: AbstractSet[str], schedules: Schedules) -> Schedules:
    """Returns ``schedules`` that give nothing for fusions whose text is in ``kept``."""
    if not kept:
        return schedules

    def of_others(problem: Problem, threads: int) -> Iterator[FusionSchedule]:
        if problem.computed not in kept:
            yield from schedules(problem, threads)

    return of_others


def may_be_fused(request: ProgramRequest) -> bool:
    """Returns whether a request is for a program of fusions on the host.

    Scripts are for matmuls of a program that is compiled as a whole; None: all matmuls become loops.
    """
    return request.target.is_on_cpu and request.scripts == ()


def kept_program(
    request: ProgramRequest,
    resources: Mapping[str, Data],
    observe: CompileObserver = ignore_compile_event,
) -> CompiledProgram | None:
    """Returns a program on the host from the cache of compiled parts; None where a part has to be compiled.

    Also None for a device, for a request with scripts, and where all matmuls become loops. The request's text
    is the payload without the data of its constants, which ``resources`` has by name. ``observe``: called
    when a weight is packed. Compiles nothing, so it needs no child process.
    """
    if not may_be_fused(request):
        return None
    with _with_schedules(_compiler(request), request) as compiler:
        threads = request.options.threads
        return compiler.kept_program(request.text, request.entry, threads, resources, observe)


@_as_failures()
def packed_ahead(
    request: ProgramRequest, formed: "FormedText", constants: Constants, observe: CompileObserver
) -> "PackedWeights | None":
    """Packs the weights of a program whose fusions are compiled, while another process links it.

    ``formed``: the program as fusions, after ``with_facts_of_data``; ``observe``: called when a weight is
    packed. Returns None where some part is not in the cache. Raises CandidateError: BIND for a wrong database
    or wrong data.
    """
    with _with_schedules(_compiler(request), request) as compiler:
        return compiler.packed_ahead(formed, request.options.threads, constants, observe)


@_as_failures()
def formed_program(request: ProgramRequest) -> "FormedText | None":
    """Returns a program on the host as fusions; the request's text is without the data of its constants.

    None for a device, for a request with scripts or with loops for all matmuls, for a program that does not
    parse, and for one that is compiled as a whole. Raises CandidateError(BIND) for a wrong target.
    """
    if not may_be_fused(request):
        return None
    return _compiler(request).formed_text(request.text, request.entry)


@_as_failures()
def linked_program(request: ProgramRequest, formed: "FormedText") -> "LinkedProgram | None":
    """Compiles a program for the CPU: its fusions, and the code that computes its weights.

    ``formed``: the program as fusions, after ``with_facts_of_data``; the data of its constants is not read
    here. Returns None for a program that must be compiled as a whole. Raises CandidateError: BIND for a
    database that cannot be used, else the stage at which the code of a fusion or of the weights fails.
    """
    with _with_schedules(_compiler(request), request) as compiler:
        made = compiler.linked_program(formed, request.options.threads)
    if made is not None:
        for code in made.init:
            if code.program is not None and not code.is_compiled:
                check_host_code(code.program, is_checked=False)
    return made


@_as_failures()
def tuned_problems(request: ProgramRequest, formed: "FormedText") -> "tuple[tuple[TextProblem, int], ...]":
    """Returns what the schedules of a program's fusions are stored for: problems, each with its threads.

    ``formed``: the program as fusions, after ``with_facts_of_data``.
    """
    return _compiler(request).tuned_problems(formed, request.options.threads)


@_as_failures()
def with_schedules_read(
    request: ProgramRequest, problems: "Sequence[tuple[TextProblem, int]]"
) -> ProgramRequest:
    """Returns a request that has the schedules of ``problems``, so that no other process reads the database.

    ``problems``: of ``tuned_problems``. Raises CandidateError(BIND) for a database that cannot be used.
    """
    with _with_schedules(_compiler(request), request) as compiler:
        stored: dict[tuple[Problem, int], tuple[FusionSchedule, ...]] = {}
        for problem, threads in problems:
            stored[problem, threads] = tuple(compiler.schedules(problem, threads))
    return replace(request, schedules=KnownSchedules(stored))


def work_of_missing_fusions(
    request: ProgramRequest, *, is_timed: bool = False
) -> "Callable[[], tuple[CompileTask, ...]]":
    """Returns a call of ``missing_in_text`` for a child process, with the text without data of constants."""
    return partial(missing_in_text, replace(request, text=without_data(request.text)), is_timed=is_timed)


@_as_failures()
def missing_in_text(request: ProgramRequest, *, is_timed: bool = False) -> "tuple[CompileTask, ...]":
    """Returns what is missing of a program on the host, as far as its text without data of constants says it.

    Returns () where ``formed_program`` returns None. Quantized matmuls are left out: how many bits their
    weights need is a fact of the data. ``is_timed``: as of ``missing_fusions``. Raises CandidateError(BIND)
    for a wrong target or database.
    """
    formed = formed_program(request)
    if formed is None:
        return ()
    formed = formed.with_facts_of_data({})
    known = tuple(fusion for fusion in formed.program.fusions if fusion.kind != QUANTIZED)
    formed = replace(formed, program=replace(formed.program, fusions=known))
    return missing_fusions(request, formed, is_timed=is_timed)


@_as_failures()
def missing_fusions(
    request: ProgramRequest, formed: "FormedText", *, is_timed: bool = False
) -> "tuple[CompileTask, ...]":
    """Returns the parts of a program of fusions on the host that are not in the cache, as tasks to compile.

    ``formed``: after ``with_facts_of_data``. ``is_timed``: also the parts of the untuned program, which is
    timed next to the tuned one. Returns () where the cache cannot be written. Raises CandidateError(BIND) for
    a database that cannot be used.
    """
    missing: dict[str, CompileTask] = {}
    for variant in (request, replace(request, database=""))[: 1 + is_timed]:
        with _with_schedules(_compiler(variant), variant) as compiler:
            tasks = compiler.missing_fusions(formed, variant.options.threads)
        missing.update((task.key, task) for task in tasks)
    return tuple(missing.values())


def lowered(request: ProgramRequest, step: LoweringStep, backends: Backends) -> LoweredText:
    """Lowers a payload, with scripts of the request's database or default scripts, up to a step.

    Returns the text after the step. Raises UsageError for mistakes of the user, CandidateError where lowering
    fails.
    """
    compiler = _compiler_by(request, backends)
    chip = chip_of(compiler.machine.chip)
    with (
        _with_schedules(compiler, request) as scheduled,
        transform.new_context(),
        bindings.ir.Location.unknown(),
    ):
        made = scheduled.kernels(request.text, request.entry, {})
        text = text_after(step, made.payload, chip, request.options.device)
        return LoweredText(made.payload.entry, chip.name, text, made.tuned)
