"""``tuner.bypass_l1``, ``tuner.flat_copies`` and ``tuner.insert_barriers``: copies to shared memory."""

import re

import pytest

from tests.mlir.ops.one_op import apply
from tests.texts import filled, text_beside

BYPASS_L1 = '"tuner.bypass_l1"(%func) : (!transform.any_op) -> ()'


def one_copy(dtype: str, elements: int) -> str:
    return text_beside(__file__, "ONE_COPY").replace("DTYPE", dtype).replace("ELEMENTS", str(elements))


@pytest.mark.parametrize(
    ("dtype", "elements", "bypasses"),
    [("f16", 8, True), ("f16", 4, False), ("f32", 4, True), ("f32", 1, False), ("f64", 2, True)],
)
def test_copies_of_sixteen_bytes_bypass(dtype: str, elements: int, bypasses: bool) -> None:
    assert ("bypassL1" in apply(BYPASS_L1, one_copy(dtype, elements))) == bypasses


# ``tuner.flat_copies``: flat views, one base for all that differ by constants, and where views are made.
FLAT_COPIES = '"tuner.flat_copies"(%func) : (!transform.any_op) -> ()'


def two_copies(inside: str = "") -> str:
    return text_beside(__file__, "TWO_COPIES").replace("INSIDE", inside)


@pytest.mark.parametrize("index", ["%row", "%row8", "%k16"])
def test_accesses_that_differ_by_constants_have_one_base(index: str) -> None:
    """Once common subexpressions are gone: the script cleans up behind the op."""
    others = [filled(__file__, "ANOTHER_READ", number=number, index=index) for number in (1, 2)]
    text = apply(f"{FLAT_COPIES}\n{text_beside(__file__, 'CLEAN_UP')}", two_copies("".join(others)))
    base_of = dict(re.findall(r"(%\w+) = arith\.addi (%\w+), %c\w+ : index", text))
    places = re.findall(r"nvgpu\.ldmatrix %\w+\[(%\w+)\]", text)
    assert len(places) == 2
    assert len({base_of[each] for each in places}) == 1


# ``tuner.insert_barriers``: where barriers go, and when it refuses.
INSERT_BARRIERS = '"tuner.insert_barriers"(%func) {{loop_top = {0} : i64}} : (!transform.any_op) -> ()'
TWO_LOOPS = text_beside(__file__, "TWO_LOOPS")
SHOWN = [(BYPASS_L1, one_copy("f16", 8))]
BECOMES = {f"insert_barriers_{top}": (INSERT_BARRIERS.format(top), TWO_LOOPS) for top in (1, 0)}
BECOMES["flat_copies"] = (FLAT_COPIES, two_copies())  # the view of %arg0: 63 rows of 60, and 64
UNCHANGED = [(FLAT_COPIES, "func.func @f() { return }", "no copies")]
OF_GLOBAL = TWO_LOOPS.replace(", #gpu.address_space<workgroup>", "")
REFUSED = [(INSERT_BARRIERS.format(0), OF_GLOBAL, "found 2 loops, allowed one that writes shared memory")]
