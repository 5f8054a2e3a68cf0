"""Programs that print by MLIR's runner functions, as those of upstream's integration tests do."""

import re
from collections.abc import Iterator

import pytest

from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.programs.request import DeviceOptions, ProgramOptions, ProgramReport, ProgramRequest
from tuner.simulator.device.streams import ORDERS

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.mlir.bindings")

SQUARES = text_beside(__file__, "SQUARES")
ROWS = "[[1,   4,   9], \n [4,   9,   16]]\n42\n"


def ran(text: str, target: str, **arguments: object) -> ProgramReport:
    from tuner.programs.service import run_program

    return run_program(ProgramRequest(text, TargetName.parse(target), **arguments))  # type: ignore[arg-type]


def targets() -> Iterator[tuple[str, dict[str, object]]]:
    yield "cpu", {"is_timed": False}
    for order in ORDERS:
        yield "simulator:sm_90", {"options": ProgramOptions(order=order)}
    for form in ("tokens", "sync"):
        yield "simulator:sm_90", {"options": ProgramOptions(DeviceOptions(form=form))}


@pytest.mark.parametrize(("target", "arguments"), [*targets()])
@pytest.mark.parametrize("interface", ["", "attributes {llvm.emit_c_interface}"])
def test_what_a_kernel_wrote_is_printed(target: str, arguments: dict[str, object], interface: str) -> None:
    report = ran(SQUARES.replace("INTERFACE", interface), target, **arguments)
    head, _, printed = report.printed.partition(" data = \n")
    assert re.fullmatch(r"Unranked Memref base@ = 0x[0-9a-f]+ rank = 2 offset = 0 sizes.*strides.*", head)
    assert printed == ROWS
    assert report.is_right


def test_a_program_that_prints_is_compared_without_printing_twice() -> None:
    report = ran(SQUARES.replace("INTERFACE", ""), "simulator:sm_90", is_compared=True)
    assert report.printed.count("Unranked") == 1
    assert [(one.name, one.verdict) for one in report.comparisons] == [("printed", "equal")]


def test_vectors_are_printed() -> None:
    assert (
        ran(text_beside(__file__, "VECTORS"), "cpu", is_timed=False).printed
        == "( ( 1.5, 2 ), ( 3, -4 ) )\n7\nend\n"
    )


def test_another_function_without_a_body_is_refused() -> None:
    from tuner.core.errors import CandidateError

    text = "func.func private @other()\nfunc.func @main() {\n  call @other() : () -> ()\n  return\n}"
    with pytest.raises(
        CandidateError, match=r"found a call of @other, which has no body, allowed .*@printMemref"
    ):
        ran(text, "cpu")
