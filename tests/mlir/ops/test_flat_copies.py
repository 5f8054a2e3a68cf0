"""``tuner.flat_copies``: flat views, one base for all that differ by constants, and where views are made."""

import re

import pytest

from tests.mlir.ops.conftest import Apply
from tests.texts import text_beside

pytestmark = pytest.mark.mlir

LINE = '"tuner.flat_copies"(%func) : (!transform.any_op) -> ()'
TILE = "memref<2x16x32xf16, #gpu.address_space<workgroup>>"
ARGUMENT = "memref<64x64xf16, strided<[60, 1]>>"


PAYLOAD = text_beside(__file__, "PAYLOAD")


def payload(inside: str = "") -> str:
    """Returns a launch that copies to two places of a tile and reads two fragments of it."""
    return PAYLOAD.replace("INSIDE", inside)


def test_the_view_of_an_argument_is_made_in_the_launch(apply: Apply) -> None:
    launch = apply(LINE, payload()).partition("gpu.launch")[2]
    assert len(re.findall(r"memref\.reinterpret_cast %arg0", launch)) == 1
    assert "memref<3844xf16>" in launch  # 63 rows of 60, and 64


def test_a_function_without_copies_is_left(apply: Apply) -> None:
    nothing = "module {\n  func.func @f() {\n    return\n  }\n}\n"
    assert apply(LINE, nothing) == nothing


@pytest.mark.parametrize("index", ["%row", "%row8", "%k16"])
def test_accesses_that_differ_by_constants_have_one_base(index: str, apply: Apply) -> None:
    """Once common subexpressions are gone: the script cleans up behind the op."""
    others = "".join(
        f"""
      %k{number} = arith.constant {number} : index
      %at{number} = arith.addi {index}, %k{number} : index
      %read{number} = nvgpu.ldmatrix %tile[%stage, %at{number}, %c0] {{numTiles = 4 : i32, transpose = false}}
        : {TILE} -> vector<4x2xf16>
      vector.store %read{number}, %out[%c0, %c0] : memref<4x2xf16>, vector<4x2xf16>"""
        for number in (1, 2)
    )
    clean = f"""{LINE}
    transform.apply_patterns to %func {{
      transform.apply_patterns.canonicalization
    }} {{apply_cse}} : !transform.any_op"""
    text = apply(clean, payload(others))
    base_of = dict(re.findall(r"(%\w+) = arith\.addi (%\w+), %c\w+ : index", text))
    places = re.findall(r"nvgpu\.ldmatrix %\w+\[(%\w+)\]", text)
    assert len(places) == 2
    assert len({base_of[each] for each in places}) == 1


SHOWN = LINE, payload()
BECOMES = {
    "flat_copies": (LINE, payload()),
}
