"""Work of child processes on whole programs: compile, lower, find what can be tuned or is missing."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tuner.core.candidate import CUDA, TargetName
from tuner.core.device_programs import LoweringStep
from tuner.core.errors import (
    CandidateError,
    DeviceError,
    Stage,
    failing_at,
)
from tuner.core.fusions import QUANTIZED, Fusion
from tuner.core.gpu import chip_of
from tuner.core.problem import Problem
from tuner.core.programs import FusionSchedule, KnownSchedules, Schedules, TunedKernel
from tuner.core.progress import CompileObserver, ignore_compile_event
from tuner.core.queries import TaskQuery
from tuner.mlir import bindings, transform
from tuner.mlir.ir.resources import Data, without_data
from tuner.models.compiler import TOO_DEEP, CompiledProgram, ProgramCompiler, problems_in
from tuner.models.fusion_schedules import fusion_schedules, matmul_schedules
from tuner.models.fusions.payload import Constants, NotFused
from tuner.models.fusions.pipeline import fuse_program
from tuner.models.request import ProgramRequest
from tuner.models.tunable_fusions import TunableFusions, tunable_fusions
from tuner.runtime.programs.devices import device_compiler, device_runtime
from tuner.runtime.programs.machine_code import check_host_code
from tuner.targets.backends import Backends
from tuner.targets.registry import real_backends

if TYPE_CHECKING:
    from tuner.core.problem_classes import TextProblem
    from tuner.db.store import Store
    from tuner.models.fusions.pipeline import FormedText
    from tuner.models.linked_programs import CompileTask, LinkedProgram, PackedWeights


@dataclass(frozen=True)
class LoweredText:
    """The text of a program after a lowering step, with the name of the lowered function and the chip."""

    entry: str
    chip: str
    text: str  # MLIR, or PTX
    tuned: tuple[TunedKernel, ...] = ()  # matmuls whose scripts stored trials suggest


@contextlib.contextmanager
def as_failures() -> Iterator[None]:
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


@as_failures()
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
    with as_failures():
        compiler = compiler_of(request)
        compiled = compiled_program(compiler, request, is_checked=False, as_fusions=True, has_data=has_data)
    if compiled.image is None and not compiled.object_code:  # else the machine code is made already
        support = compiler.support
        functions = device_runtime().host_functions if support.has_device else ()
        check_host_code(compiled.code, is_checked=support.is_simulated, functions=functions)
    return compiled


@as_failures()
def find_fusions(request: ProgramRequest, cache: str) -> TunableFusions:
    """Returns the tunable fusions of a program, to be timed with CPU caches as ``cache`` says.

    ``cache``: "warm", "weights-cold" or "cold". Raises CandidateError(BIND) for text that does not parse.
    """
    threads = min(request.options.threads, real_backends().processors().usable)
    return tunable_fusions(request.text, request.entry, cache, compiler_of(request).machine, threads)


@as_failures()
def formed_fusions(text: str) -> tuple[Fusion, ...]:
    """Returns the fusions of a payload on this processor; () for a payload that is compiled as a whole.

    Raises CandidateError(BIND) for text that does not parse.
    """
    machine = real_backends().machine()
    formed = fuse_program(
        text, multiplies_pairs=machine.multiplies_pairs, multiplies_bytes=machine.multiplies_bytes
    )
    if isinstance(formed, NotFused):
        return ()
    return formed.program.fusions


@as_failures()
def find_problems(text: str, entry: str | None) -> tuple[Problem, ...]:
    """Returns the distinct matmuls in a function of MLIR text.

    ``entry``: name of the function; None: ``main``, or the only public one. Raises CandidateError(BIND) for
    text that is not a valid program.
    """
    return problems_in(text, entry)


def compiler_of(request: ProgramRequest) -> ProgramCompiler:
    """Returns the compiler for the request's target, a real one: a child process has no fakes."""
    return _compiler_by(request, real_backends())


def _compiler_by(request: ProgramRequest, backends: Backends) -> ProgramCompiler:
    return replace(ProgramCompiler.of(request.target, backends), math=request.options.math)


def compiled_program(
    compiler: ProgramCompiler,
    request: ProgramRequest,
    *,
    is_checked: bool | None = None,
    as_fusions: bool = False,
    has_data: bool = True,
) -> CompiledProgram:
    """Compiles a request's program with the schedules of its database.

    ``is_checked``: host code checks bounds; None: it does so for the simulator alone. ``as_fusions``,
    ``has_data``: as of ``ProgramCompiler.compile``, which also says what is raised.
    """
    if is_checked is None:  # not on a real device, where host code is timed
        is_checked = compiler.support.is_simulated
    with with_schedules(compiler, request) as compiler:
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
def with_schedules(compiler: ProgramCompiler, request: ProgramRequest) -> Iterator[ProgramCompiler]:
    """Context manager: gives the compiler with the request's schedules, or those of its database."""
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
    with with_schedules(compiler_of(request), request) as compiler:
        threads = request.options.threads
        return compiler.kept_program(request.text, request.entry, threads, resources, observe)


@as_failures()
def packed_ahead(
    request: ProgramRequest, formed: "FormedText", constants: Constants, observe: CompileObserver
) -> "PackedWeights | None":
    """Packs the weights of a program whose fusions are compiled, while another process links it.

    ``formed``: the program as fusions, after ``with_facts_of_data``; ``observe``: called when a weight is
    packed. Returns None where some part is not in the cache. Raises CandidateError: BIND for a wrong database
    or wrong data.
    """
    with with_schedules(compiler_of(request), request) as compiler:
        return compiler.packed_ahead(formed, request.options.threads, constants, observe)


@as_failures()
def formed_program(request: ProgramRequest) -> "FormedText | None":
    """Returns a program on the host as fusions; the request's text is without the data of its constants.

    None for a device, for a request with scripts or with loops for all matmuls, for a program that does not
    parse, and for one that is compiled as a whole. Raises CandidateError(BIND) for a wrong target.
    """
    if not may_be_fused(request):
        return None
    return compiler_of(request).formed_text(request.text, request.entry)


@as_failures()
def linked_program(request: ProgramRequest, formed: "FormedText") -> "LinkedProgram | None":
    """Compiles a program for the CPU: its fusions, and the code that computes its weights.

    ``formed``: the program as fusions, after ``with_facts_of_data``; the data of its constants is not read
    here. Returns None for a program that must be compiled as a whole. Raises CandidateError: BIND for a
    database that cannot be used, else the stage at which the code of a fusion or of the weights fails.
    """
    with with_schedules(compiler_of(request), request) as compiler:
        made = compiler.linked_program(formed, request.options.threads)
    if made is not None:
        for code in made.init:
            if code.program is not None and not code.is_compiled:
                check_host_code(code.program, is_checked=False)
    return made


@as_failures()
def tuned_problems(request: ProgramRequest, formed: "FormedText") -> "tuple[tuple[TextProblem, int], ...]":
    """Returns what the schedules of a program's fusions are stored for: problems, each with its threads.

    ``formed``: the program as fusions, after ``with_facts_of_data``.
    """
    return compiler_of(request).tuned_problems(formed, request.options.threads)


@as_failures()
def with_schedules_read(
    request: ProgramRequest, problems: "Sequence[tuple[TextProblem, int]]"
) -> ProgramRequest:
    """Returns a request that has the schedules of ``problems``, so that no other process reads the database.

    ``problems``: of ``tuned_problems``. Raises CandidateError(BIND) for a database that cannot be used.
    """
    with with_schedules(compiler_of(request), request) as compiler:
        stored: dict[tuple[Problem, int], tuple[FusionSchedule, ...]] = {}
        for problem, threads in problems:
            stored[problem, threads] = tuple(compiler.schedules(problem, threads))
    return replace(request, schedules=KnownSchedules(stored))


def work_of_missing_fusions(
    request: ProgramRequest, *, is_timed: bool = False
) -> "Callable[[], tuple[CompileTask, ...]]":
    """Returns a call of ``missing_in_text`` for a child process, with the text without data of constants."""
    return partial(missing_in_text, replace(request, text=without_data(request.text)), is_timed=is_timed)


@as_failures()
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


@as_failures()
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
        with with_schedules(compiler_of(variant), variant) as compiler:
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
        with_schedules(compiler, request) as scheduled,
        transform.new_context(),
        bindings.ir.Location.unknown(),
    ):
        made = scheduled.kernels(request.text, request.entry, {})
        text = device_compiler().text_after(step, made.payload, chip, request.options.device)
        return LoweredText(made.payload.entry, chip.name, text, made.tuned)
