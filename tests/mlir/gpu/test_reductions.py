"""Reductions of blocks and subgroups: the ops they become; their results are in tests/programs."""

from collections.abc import Callable

import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.mlir.gpu import reductions

pytestmark = pytest.mark.mlir


ALL_REDUCE = text_beside(__file__, "ALL_REDUCE")
SUBGROUP = ALL_REDUCE.replace("all_reduce add %x uniform {\n    }", "subgroup_reduce add %x ")


def expand(text: str) -> str:
    with parsed(text) as module:
        reductions.expand_reductions(module)
        assert module.operation.verify()
        return str(module)


def test_a_block_reduces_its_warps_and_then_their_results(golden: Callable[[str, str], None]) -> None:
    golden("reductions.mlir", expand(ALL_REDUCE))


def test_threads_that_a_warp_may_lack_are_left_out() -> None:
    unknown = ALL_REDUCE.replace("attributes {known_block_size = array<i32: 64, 1, 1>}", "")
    assert expand(unknown).count("arith.select") == expand(ALL_REDUCE).count("arith.select") + 5
    assert expand(unknown).count("gpu.shuffle idx") == 1


@pytest.mark.parametrize(
    ("cluster", "shuffles"), [("", 5), ("cluster(size = 4)", 2), ("cluster(size = 1)", 0)]
)
def test_a_subgroup_reduces_by_halves(cluster: str, shuffles: int) -> None:
    text = expand(SUBGROUP.replace("add %x ", f"add %x {cluster} "))
    assert text.count("gpu.shuffle") == shuffles
    assert "gpu.barrier" not in text


def test_the_region_of_an_all_reduce_combines() -> None:
    body = "{\n    ^bb(%l: f32, %r: f32): %m = arith.maximumf %l, %r : f32 gpu.yield %m : f32 }"
    text = expand(ALL_REDUCE.replace("add %x uniform {\n    }", f"%x uniform {body}"))
    assert text.count("arith.maximumf") == 10
    assert "gpu.yield" not in text


def test_control_flow_in_the_region_is_refused() -> None:
    body = """{ ^bb(%l: f32, %r: f32): cf.br ^next(%l : f32) ^next(%m: f32): gpu.yield %m : f32 }"""
    message = r"^gpu.all_reduce at .*: found control flow in its region, allowed a region of one block$"
    with pytest.raises(CandidateError, match=message):
        expand(ALL_REDUCE.replace("add %x uniform {\n    }", f"%x uniform {body}"))
