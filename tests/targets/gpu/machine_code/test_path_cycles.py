import pytest

from tests.targets.gpu.machine_code.listings import Line, kernel_of
from tuner.simulator.ptx.races.access_sample import Access
from tuner.targets.gpu.machine_code.path_cycles import memory_cycles

LOADS = kernel_of(Line("LDS R0, [R1]"), Line("FFMA R0, R1, R2, R3"), Line("LDS.128 R4, [R1]"))
ROW = tuple(range(32))


def access(words: tuple[int, ...], width: int = 1, opcode: str = "ld.shared.b32") -> Access:
    return Access(opcode, 1, words, width)


def test_without_accesses_lanes_ask_for_words_in_a_row() -> None:
    assert memory_cycles(LOADS, (), 80) == {0: 1.0, 2: 4.0}
    assert memory_cycles(LOADS, (), 75) == {0: 2.0, 2: 8.0}


def test_an_access_costs_what_those_of_its_width_cost() -> None:
    conflict, broadcast = tuple(32 * lane for lane in range(32)), (0,) * 32
    seen = (access(ROW), access(conflict), access(broadcast, 4, "ld.shared.v4.b32"))
    assert memory_cycles(LOADS, seen, 80) == {0: (1 + 32) / 2, 2: 2.0}


def test_a_width_that_was_not_seen_costs_as_the_others() -> None:
    assert memory_cycles(LOADS, (access(tuple(2 * lane for lane in range(32))),), 80) == {0: 2.0, 2: 2.0}


@pytest.mark.parametrize(
    ("line", "opcode"),
    [
        ("LDSM.16.M88.4 R0, [R1]", "ldmatrix.sync.aligned.m8n8.x4.shared.b16"),
        ("LDGSTS.E.BYPASS.128 [R0], [R2]", "cp.async.cg.shared.global"),
        ("STS.128 [R0], R4", "st.shared.v4.b32"),
    ],
)
def test_rows_of_one_bank_are_served_one_by_one(line: str, opcode: str) -> None:
    kernel = kernel_of(Line(line))
    spread = access(tuple(32 * lane for lane in range(32)), 4, opcode)
    in_a_row = access(tuple(4 * lane for lane in range(32)), 4, opcode)
    assert memory_cycles(kernel, (in_a_row,), 80) == {0: 4.0}
    assert memory_cycles(kernel, (spread,), 80) == {0: 32.0}


def test_a_bulk_copy_is_no_access_of_lanes() -> None:
    kernel = kernel_of(Line("LDGSTS.E.BYPASS.128 [R0], [R2]"))
    bulk = access((0,) * 32, 4, "cp.async.bulk.tensor.2d.shared::cluster.global")
    assert memory_cycles(kernel, (bulk,), 80) == {0: 4.0}


def test_spills_go_to_the_second_level() -> None:
    spill = kernel_of(Line("LDL.64 R0, [R1]"), Line("STG.E.128 [R2], R4"))
    assert memory_cycles(spill, (), 80) == {0: pytest.approx(128 * 2 / 24), 1: 4.0}
