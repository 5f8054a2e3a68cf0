"""Calls of child processes that work on whole programs: a crash or a hang ends the child alone."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from tuner.core.device_programs import LoweringStep
from tuner.core.errors import (
    CandidateError,
    Failure,
    Stage,
    TunerError,
    UsageError,
)
from tuner.mlir import bindings, transform
from tuner.mlir.ir.resources import constants_bytes, mapped_payload, split_payload
from tuner.models.children import CompilingChildren, called, shown_progress
from tuner.models.compile_work import LoweredText, lower, work_of_missing_fusions
from tuner.models.report import ProgramReport
from tuner.models.request import ProgramRequest
from tuner.models.run_work import RunAndTimes, run_and_time, run_program
from tuner.runtime.workers.worker import call_in_child
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file

NAME = "program"
Value = TypeVar("Value")


@dataclass(frozen=True)
class _StoppedRun:
    failure: Failure
    printed: str


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
