"""``tuner.add_parts``: parts of K are added by the warp that is last at its part of a tile."""

from tests.mlir.ops.one_op import apply, line_of
from tests.texts import filled

STORE = "vector.store %sums, %c[%i, %j] : memref<8x64xf32>, vector<2xf32>"


def payload(
    parts: str = "memref<3x8x64xf32>", words: int = 16, stores: str = STORE, blocks: str = "%c2"
) -> str:
    """Returns a launch of 2 x 2 x 3 blocks of four warps, which store to C."""
    return filled(__file__, "LAUNCH", parts=parts, words=str(words), stores=stores, blocks=blocks)


def line(slices: int = 3, **attributes: int) -> str:
    return line_of("add_parts", slices=slices, **attributes)


def test_all_stores_are_to_parts_before_one_arrival_and_to_c_after_it() -> None:
    more = STORE.replace("%j]", "%i]")
    text = apply(line(), payload(stores=f"{STORE}\n{more}"))
    before, after = text.split("atom.acq_rel")
    assert (before.count("vector.store"), after.count("vector.store")) == (2, 2)
    assert after.count("vector.load") == 2 * 3
    assert after.count("arith.addf") == 2 * 2
    assert "to_vector" not in text


def test_integers_are_added_as_integers() -> None:
    integers = payload().replace("xf32", "xi32")
    assert apply(line(), integers).count("arith.addi %") >= 2
    assert "arith.addf" not in apply(line(), integers)


BRANCH = f"scf.if %flag {{\n {STORE}\n }}\n{STORE}"
OTHER = f"{STORE}\n vector.store %sums, %other[%i, %j] : memref<8x64xf32>, vector<2xf32>"
BECOMES = {"add_parts": (line(), payload())}
REFUSED = [
    (
        line(),
        payload(parts="memref<2x8x64xf32>"),
        r"parts: found memref<2x8x64xf32>, allowed sizes of \[3, 8, 64\]",
    ),
    (line(1), payload(parts="memref<1x8x64xf32>"), "slices: found 1, allowed 2 or more"),
    (line(0, whole=0), payload(), "slices: found 0, allowed 2 or more"),
    (line(), payload(words=15), r"zeroed: found memref<15xi32>, allowed 16 words or more: one for each warp"),
    (line(), payload(stores=BRANCH), "found stores to 1 arguments in 2 blocks of code, allowed one of each"),
    (line(), payload(stores=OTHER), "found stores to 2 arguments in 1 blocks of code, allowed one of each"),
    (line(), payload(stores=""), "found stores to 0 arguments in 0 blocks of code, allowed one of each"),
    (line(), payload(blocks="%i"), "found a launch of sizes that are not constant"),
    (
        line(),
        payload().replace('"parts"', '"a"'),
        "found no arguments with tuner.buffer = 'parts' and 'zeroed'",
    ),
]
