"""Memory that nobody frees lives as long as something holds its address, and all work on it is ordered."""

import pytest

from tests.programs.payload_rows import one_order
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.programs.request import ProgramOptions, ProgramReport, ProgramRequest

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.mlir.bindings")

# Way of the address -> what the kernel loads from; the text of the way makes that of the memory %d.
WAYS = {
    "unranked": "FROM_MEMREF",
    "metadata": "FROM_VIEW",
    "arithmetic": "FROM_NUMBER",
    "vector": "FROM_NUMBER",
    "double": "FROM_NUMBER",
    "struct": "FROM_NUMBER",
    "descriptor": "FROM_POINTER",
    "branch": "FROM_NUMBER",
    "loop": "FROM_NUMBER",
    "while": "FROM_NUMBER",
    "blocks": "FROM_NUMBER",
    "memory": "FROM_NUMBER",
    "device memory": "FROM_KEPT",
    "kernel": "FROM_KEPT",  # another kernel stores where the memory is
    "yielded": "FROM_NUMBER",
    "token": "FROM_MEMREF",
}


def program(way: str, load: str) -> str:
    text = text_beside(__file__, "PROGRAM").replace("LOAD", text_beside(__file__, load))
    return text.replace("WAY", text_beside(__file__, way.replace(" ", "_")))


def ran(text: str, order: str) -> ProgramReport:
    from tuner.programs.service import run_program

    options = ProgramOptions(order=order, seed=3)
    target = TargetName.parse("simulator:sm_90")
    return run_program(ProgramRequest(text, target, is_timed=False, options=options))


def require_right(report: ProgramReport) -> None:
    assert report.printed.endswith("data = \n[0,  1,  2,  3]\n")
    assert not report.reports


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("way", "order"), [(way, order) for way in WAYS for order in one_order(way)])
def test_memory_lives_until_the_kernel_has_read_it(way: str, order: str) -> None:
    require_right(ran(program(way, WAYS[way]), order))


def test_memory_of_each_iteration_lives_until_its_kernel_has_ended() -> None:
    text = program("of_each_iteration", "FROM_NUMBER").replace("  gpu.memcpy %out", "  }\n  gpu.memcpy %out")
    require_right(ran(text, "lifo"))


def test_memory_that_the_program_frees_too_early_is_found_by_its_stored_address() -> None:
    report = ran(program("freed_too_early", "FROM_KEPT"), "fifo")
    assert ["d1 is freed before" in each for each in report.reports] == [True]
