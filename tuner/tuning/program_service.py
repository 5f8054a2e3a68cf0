"""Runs a whole program in a child process, and reports: what crashes or hangs there ends nothing."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tuner.device import DeviceError
from tuner.device_program import DeviceProgram
from tuner.errors import CandidateError, Stage, failing_at
from tuner.problem import Problem
from tuner.program_run import Comparison, ProgramReport, ProgramRequest
from tuner.target import Script
from tuner.target_name import TargetName
from tuner.tuning.child_call import call_in_child
from tuner.tuning.program_arguments import make_arguments, spelled
from tuner.tuning.program_comparison import compare, outputs
from tuner.tuning.program_compiler import (
    CompiledProgram,
    ProgramCompiler,
    problems_in,
)
from tuner.tuning.program_execution import copies, run_on_device, run_on_host
from tuner.workers.protocol import Factory, ServiceSpec

NAME = "program"


def program_spec() -> ServiceSpec:
    """Describes the child."""
    return ServiceSpec(NAME, Factory("tuner.tuning.program_service:ProgramService"))


def run_in_child(request: ProgramRequest, timeout_s: float) -> ProgramReport:
    """Runs a program in a process of its own. Raises UsageError, TunerError."""
    report = call_in_child(program_spec(), "run", (request,), timeout_s)
    assert isinstance(report, ProgramReport)
    return report


def problems_in_child(text: str, entry: str | None, timeout_s: float) -> tuple[Problem, ...]:
    """Finds the matmuls of a payload in a process of its own. Raises UsageError, TunerError."""
    problems = call_in_child(program_spec(), "problems", (text, entry), timeout_s)
    assert isinstance(problems, tuple)
    return problems


class ProgramService:
    """Compiles, runs, compares and times programs, one at a time."""

    def __init__(self, announce: Callable[[str], None]) -> None:
        pass

    def run(self, request: ProgramRequest) -> ProgramReport:
        """Does all that is asked. Raises CandidateError: BIND for mistakes of the user, RUN of the device."""
        try:
            with failing_at(Stage.BIND):
                return _run(request)
        except DeviceError as error:
            raise CandidateError(Stage.RUN, str(error)) from error

    def problems(self, text: str, entry: str | None) -> tuple[Problem, ...]:
        """Returns the distinct matmuls of a payload. Raises CandidateError(BIND) where it does not parse."""
        with failing_at(Stage.BIND):
            return problems_in(text, entry)


def _run(request: ProgramRequest) -> ProgramReport:
    from tuner.tuning.parts import real_composition

    target = TargetName.parse(request.target)
    machine = real_composition().target_machine(target.text)
    compiled = _compile(ProgramCompiler(target, machine), request)
    rng = np.random.default_rng(request.seed)
    arguments = make_arguments(compiled.code.arguments, request.arguments, rng)
    if target.is_gpu:
        ran = run_on_device(request, target, compiled.code, arguments)
    else:
        ran = run_on_host(request, compiled.code, arguments)
    return ProgramReport(
        entry=compiled.code.entry,
        arguments=tuple(spelled(kind) for kind in compiled.code.arguments),
        results=tuple(spelled(kind) for kind in compiled.code.results),
        problems=compiled.problems,
        streams=compiled.code.stream_slots,
        trace=ran.trace,
        reports=ran.reports,
        comparisons=_comparisons(request, compiled.code, arguments, ran.outputs),
        times=ran.times,
    )


def _compile(compiler: ProgramCompiler, request: ProgramRequest) -> CompiledProgram:
    scripts = None if request.is_plain else {problem: Script.of(text) for problem, text in request.scripts}
    if not compiler.target.is_gpu:
        return compiler.compile(request.text, request.entry, scripts)
    from tuner.mlir.device_lowering import DeviceOptions

    options = DeviceOptions(form=request.form, pinned=request.is_pinned)
    return compiler.compile(request.text, request.entry, scripts, options)


def _comparisons(
    request: ProgramRequest, code: DeviceProgram, arguments: tuple[Any, ...], found: tuple[Any, ...]
) -> tuple[Comparison, ...]:
    """Runs the payload on the host, every op as loops, on the same arguments."""
    from tuner.runtime.host import describe_machine
    from tuner.runtime.host_function import HostFunction

    if not request.is_compared:
        return ()
    compiler = ProgramCompiler(TargetName("cpu"), describe_machine())
    plain = HostFunction(compiler.compile(request.text, request.entry, None).code)
    own = copies(arguments)
    return compare(code, found, outputs(code, plain(*own), own))
