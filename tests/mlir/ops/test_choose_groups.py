"""``tuner.choose_groups``: blocks find their group of rows, and blocks beyond the last tile end."""

from tests.mlir.ops.one_op import apply, line_of
from tests.texts import filled, text_beside

LINE = line_of("choose_groups", block_m=32)


def payload(blocks: str = "%c4", rows: str = "%c50", **changes: str) -> str:
    """Returns a launch that reads elements of A and B, and stores to C, in blocks of 32 of 50 rows."""
    values = {"flat": "%a", "block": "%block_id_y", "right": "%b[%c0, %c0]"} | changes
    return filled(__file__, "LAUNCH", blocks=blocks, rows=rows, **values)


PAYLOAD = payload()
UNMARKED = PAYLOAD.replace("tuner.of_groups", "tuner.of_others")
PART = PAYLOAD.replace("      %tile = memref.alloc()", text_beside(__file__, "PART").rstrip())
UNGUARDED = PAYLOAD.replace("slt, %row, %c50", "ult, %row, %c50")
BECOMES = {"choose_groups": (LINE, PAYLOAD)}
REFUSED = [
    (LINE, UNMARKED, "found 1 launches, allowed one, of a function with groups set aside"),
    (LINE, payload(blocks="%c2"), r"found a grid of \(2, 2\), allowed 4 blocks or more along y"),
    (LINE, payload(rows="%c4"), "found 1 comparisons of rows, allowed some, all with 50"),
    (LINE, UNGUARDED, "found 0 comparisons of rows, allowed some, all with 50"),
    (LINE, PART, "found memref.subview of an argument, allowed accesses"),
]


def test_shared_memory_stays_outside_of_the_branch_and_rows_follow_from_the_tile() -> None:
    before, inside = apply(LINE, PAYLOAD).split("scf.if")[:2]
    assert before.count("memref.alloc") == 1
    assert before.count("memref.load") == 2  # the first offset, and the end of each group
    assert "gpu.block_id" in before
    assert "gpu.block_id" not in inside
    assert "%c50" not in inside
