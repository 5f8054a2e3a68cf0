"""The reference of ``--compare``: the payload interpreted as written, or else run as loops on the host."""

from dataclasses import dataclass
from typing import Any

from tuner.core.device_programs import DeviceProgram
from tuner.core.errors import Refusal
from tuner.mlir.bindings import ir
from tuner.mlir.ir.resources import joined_payload, split_payload
from tuner.mlir.transform import new_context, parse, without_schedules
from tuner.models.comparison import outputs
from tuner.models.compiler import ProgramCompiler
from tuner.models.execution import copies
from tuner.models.request import ProgramRequest
from tuner.models.run.host_function import HostFunction
from tuner.runtime.programs.devices import device_runtime
from tuner.targets.backends import Backends
from tuner.targets.target import HostPrograms

AS_WRITTEN = "the text as written, before any pass"
AS_LOOPS = "the payload as loops on the host, by MLIR's passes"


@dataclass(frozen=True, eq=False)
class Reference:
    """The expected outcome of a program: results, written arguments and text; and what computed them."""

    outputs: tuple[Any, ...]  # results, then written arguments
    printed: str
    name: str  # of what computed them, as ``tuner run`` prints it after ``against``


def reference_of(
    request: ProgramRequest, code: DeviceProgram, arguments: tuple[Any, ...], backends: Backends
) -> Reference:
    """Computes the expected outputs of the request's payload on copies of ``arguments``.

    The text is interpreted if it has little work and known operations. Else the text, without the schedules
    in its file, is compiled to loops, by passes that the code under test goes through too, and the name of
    the reference says why. Raises CandidateError(RUN) for a call whose result the text leaves undefined, such
    as an access out of bounds.
    """
    interpreted = interpreted_reference(request, code, arguments)
    if isinstance(interpreted, Reference):
        return interpreted
    printed: list[str] = []
    own = copies(arguments)
    text = request.text
    if request.has_schedule:  # which may be wrong
        with new_context(), ir.Location.unknown():
            split = split_payload(request.written)
            text = joined_payload(str(without_schedules(parse(split.text, "payload"))), split.resources)
    compiler = ProgramCompiler(backends.machine(), HostPrograms())
    plain = HostFunction(compiler.compile(text, request.entry, None, is_checked=True).code, printed.append)
    results_as_loops = outputs(code, plain(*own), own)
    return Reference(results_as_loops, "".join(printed), f"{AS_LOOPS} (not as written: {interpreted.text})")


def interpreted_reference(
    request: ProgramRequest, code: DeviceProgram, arguments: tuple[Any, ...]
) -> Reference | Refusal:
    """Interprets the request's payload as written on copies of ``arguments``: no pass has a part in it.

    Returns a Refusal for a text with too much work or unknown operations. Raises CandidateError(RUN) for a
    call whose result the text leaves undefined, such as an access out of bounds.
    """
    printed: list[str] = []
    own = copies(arguments)
    text = request.written or request.text
    results = device_runtime().interpreted(text, code.entry, own, printed.append)
    if isinstance(results, Refusal):
        return results
    listed = results[0] if len(results) == 1 else results  # as a call of compiled code returns
    return Reference(outputs(code, listed, own), "".join(printed), AS_WRITTEN)
