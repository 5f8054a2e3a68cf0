import pytest

from tuner.simulator.ptx.defects import SimulationError
from tuner.simulator.ptx.layout import Flow, flow_of
from tuner.simulator.ptx.parser import parse

HEADER = ".version 8.3\n.target sm_90a\n.address_size 64\n"


def flow(code: str) -> Flow:
    source = f"{HEADER}.entry k() {{ .reg .b32 %r<9>; .reg .pred %p<9>; {code} }}"
    return flow_of(parse(source).kernels[0])


def texts(found: Flow) -> list[list[str]]:
    return [[instruction.text for instruction in block.instructions] for block in found.blocks]


def test_a_loop_stands_before_what_follows_it_wherever_it_is_written() -> None:
    code = """bra HEAD; AFTER: mov.u32 %r3, 3; ret;
      HEAD: mov.u32 %r1, 1; @%p1 bra AFTER; BODY: mov.u32 %r2, 2; bra HEAD;"""
    found = flow(code)
    first = [block[0] for block in texts(found) if block]
    assert first.index("mov.u32 %r2, 2") < first.index("mov.u32 %r3, 3")


def test_both_sides_of_a_branch_stand_before_where_they_meet() -> None:
    code = "@%p1 bra LEFT; mov.u32 %r1, 1; bra MEET; LEFT: mov.u32 %r1, 2; MEET: ret;"
    found = flow(code)
    order = [block[0] for block in texts(found) if block]
    assert order[0] == "@%p1 bra LEFT"
    assert order[-1] == "ret"
    assert set(order[1:3]) == {"mov.u32 %r1, 1", "mov.u32 %r1, 2"}


def test_barriers_and_waits_cut_blocks() -> None:
    code = """mov.u32 %r1, 1; bar.sync 0; mov.u32 %r2, 2;
      mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2; mov.u32 %r3, 3; bar.warp.sync -1; ret;"""
    assert texts(flow(code)) == [
        ["mov.u32 %r1, 1", "bar.sync 0"],
        ["mov.u32 %r2, 2"],
        ["mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2"],
        ["mov.u32 %r3, 3", "bar.warp.sync -1", "ret"],
    ]


def test_what_cannot_be_reached_is_left_out() -> None:
    assert texts(flow("bra END; mov.u32 %r1, 1; END: ret;")) == [["bra END"], ["ret"]]


def test_blocks_know_what_follows() -> None:
    found = flow("@%p1 bra END; mov.u32 %r1, 1; END: ret;")
    assert [block.following for block in found.blocks] == [1, 2, None]
    assert found.labels == {"END": 2}


def test_a_body_may_end_without_ret() -> None:
    assert texts(flow("mov.u32 %r1, 1;")) == [["mov.u32 %r1, 1"], []]


def test_a_branch_to_nowhere_is_refused() -> None:
    with pytest.raises(SimulationError, match=r"line 4: bra NOWHERE: found no such label in k"):
        flow("bra NOWHERE;")
