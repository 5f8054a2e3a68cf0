"""``tuner.balance_tiles`` and ``tuner.shorten_parts``: tiles of the last wave are summed in parts of K."""

from tests.mlir.ops.one_op import apply, line_of
from tests.texts import filled


def payload(columns: str = "%c3", upper: str = "%c64", depth: str = "%c1") -> str:
    """Returns a launch of 3 x 1 blocks, each with a loop along K that copies ahead."""
    return filled(__file__, "LAUNCH", columns=columns, upper=upper, depth=depth)


def line(whole: int = 2, parts: int = 2, group: int = 1) -> str:
    return line_of("balance_tiles", whole=whole, parts=parts, group=group)


SHORTEN = line_of("shorten_parts", whole=2, length=64, part_length=32)


def test_the_grid_has_whole_tiles_and_parts_of_the_others() -> None:
    text = apply(line(whole=1, parts=4), payload())
    assert "%c9 = arith.constant 9 : index" in text  # 1 + 2 * 4 blocks
    assert "tuner.tile_grid = array<i32: 3, 1>" in text


def test_what_is_copied_ahead_ends_as_far_before_the_bound_of_the_block_as_before_the_constant() -> None:
    text = apply(SHORTEN, payload())
    assert text.count("arith.subi") == 1
    assert "%c16" in text


BECOMES = {"balance_tiles": (line(), payload()), "shorten_parts": (SHORTEN, payload())}
REFUSED = [
    (line(whole=-1), payload(), "whole: found a negative number: the target's multiprocessors are not known"),
    (line(whole=3), payload(), "whole: found 3, allowed 0 to 2 of 3 tiles"),
    (line(parts=3), payload(), "parts: found 3, allowed 2 or more that divide 8 steps"),
    (line(parts=1), payload(), "parts: found 1, allowed 2 or more that divide 8 steps"),
    (line(), payload(columns="%i"), "found 1 launches, allowed one, of constant size"),
    (line(), payload(depth="%c3"), "found 1 launches, allowed one, of constant size, with one block along z"),
    (line(), payload(upper="%i"), "found a loop from 0 to None by 8, allowed constants, from 0"),
    (SHORTEN, payload(upper="%i"), "found 1 loops in launches, allowed one, of constant bounds"),
]
