import itertools
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import costly
from tests.mlir.kernels import parsed
from tuner.mlir.ir.reading import walk

pytestmark = pytest.mark.mlir

buffer_regions = pytest.importorskip("tuner.mlir.effects.accesses")


@st.composite
def regions(draw: st.DrawFn) -> Any:
    dimensions = draw(st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 24)), max_size=3))
    sizes, strides = (tuple(part) for part in zip(*dimensions, strict=True)) if dimensions else ((), ())
    return buffer_regions.StridedRegion(draw(st.integers(-8, 64)), sizes, strides)


def elements(region: Any) -> set[int]:
    """Returns them one by one."""
    places = itertools.product(*map(range, region.sizes))
    return {
        region.offset + sum(i * step for i, step in zip(place, region.strides, strict=True))
        for place in places
    }


@pytest.mark.slow
@costly(300, 1000)
@given(regions(), regions())
def test_regions_overlap_when_they_share_an_element(one: Any, other: Any) -> None:
    assert one.overlaps(other) == bool(elements(one) & elements(other))
    assert other.overlaps(one) == one.overlaps(other)


@st.composite
def boxes(draw: st.DrawFn) -> Any:
    """Draws a part of an array of 6 x 4 x 8, row-major, every second or third element in some dimension."""
    offset, sizes, strides = 0, [], []
    for size, pitch in ((6, 32), (4, 8), (8, 1)):
        step = draw(st.sampled_from([1, 1, 2, 3]))
        first = draw(st.integers(0, size - 1))
        sizes.append(draw(st.integers(1, (size - 1 - first) // step + 1)))
        strides.append(pitch * step)
        offset += first * pitch
    return buffer_regions.StridedRegion(offset, tuple(sizes), tuple(strides))


@pytest.mark.slow
@costly(300, 1000)
@given(boxes(), boxes())
def test_parts_of_a_row_major_array_overlap_when_they_share_an_element(one: Any, other: Any) -> None:
    assert one.overlaps(other) == bool(elements(one) & elements(other))


def test_large_parts_are_compared_at_once() -> None:
    size, half = 2**20, 2**19
    left, right = (buffer_regions.StridedRegion(offset, (size, half), (size, 1)) for offset in (0, half))
    assert not left.overlaps(right)
    assert left.overlaps(buffer_regions.StridedRegion(half - 1, (1, 1), (size, 1)))


def test_what_takes_too_long_to_compare_overlaps() -> None:
    odd, even = (buffer_regions.StridedRegion(offset, (2**20, 2**20), (6, 10)) for offset in (0, 1))
    assert odd.overlaps(even)


def test_parts_of_two_buffers_do_not_overlap() -> None:
    region = buffer_regions.StridedRegion(0, (4,), (1,))
    assert not buffer_regions.BufferPart("a", region).overlaps(buffer_regions.BufferPart("b", region))
    assert buffer_regions.BufferPart("a", region).overlaps(buffer_regions.BufferPart("a"))


M = "memref<8x16xf32>"
MODULE = f"""module {{
  func.func private @use(TYPE)
  func.func @main(%a: {M}, %bytes: memref<1024xi8>, %d: memref<8x?xf32>, %c: i1, %n: index) {{
    %c0 = arith.constant 0 : index
    BODY
    func.call @use(%v) : (TYPE) -> ()
    return
  }}
}}"""
RIGHT = "memref<8x8xf32, strided<[16, 1], offset: 8>>"
IN_RIGHT = "memref<2x8xf32, strided<[16, 1], offset: 40>>"
DYNAMIC = "memref<?x?xf32, strided<[?, ?], offset: ?>>"
SUBVIEW = f"%r = memref.subview %a[0, 8] [8, 8] [1, 1] : {M} to {RIGHT}"


BRANCH = f"""%v = scf.if %c -> {RIGHT} {{
      scf.yield %r : {RIGHT}
    }} else {{
      scf.yield %r : {RIGHT}
    }}"""
PLACED = "strided<[16, 1], offset: ?>"


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (f"%v = memref.cast %a : {M} to memref<?x16xf32>", "memref<?x16xf32>", (0, (8, 16), (16, 1))),
        (SUBVIEW.replace("%r", "%v"), RIGHT, (8, (8, 8), (16, 1))),
        (f"{SUBVIEW}\n%v = memref.subview %r[2, 0] [2, 8] [1, 1]", IN_RIGHT, (40, (2, 8), (16, 1))),
        (
            "%v = memref.subview %a[0, 1] [4, 8] [2, 2]",
            "memref<4x8xf32, strided<[32, 2], offset: 1>>",
            (1, (4, 8), (32, 2)),
        ),
        (
            "%v = memref.subview %a[3, 0] [1, 16] [1, 1]",
            "memref<16xf32, strided<[1], offset: 48>>",
            (48, (16,), (1,)),
        ),
        (f"{SUBVIEW}\n%v = memref.cast %r : {RIGHT} to {DYNAMIC}", DYNAMIC, (8, (8, 8), (16, 1))),
        ("%v = memref.subview %a[%n, 0] [2, 8] [1, 1]", f"memref<2x8xf32, {PLACED}>", (0, (8, 16), (16, 1))),
        (
            f"{SUBVIEW}\n%v = memref.subview %r[%n, 0] [%n, 8] [1, 1]",
            f"memref<?x8xf32, {PLACED}>",
            (8, (8, 8), (16, 1)),
        ),
        (
            f"{SUBVIEW}\n%v = memref.reinterpret_cast %r to offset: [3], sizes: [20], strides: [1]",
            "memref<20xf32, strided<[1], offset: 3>>",
            (3, (20,), (1,)),
        ),
        (
            f"{SUBVIEW}\n%v = memref.reinterpret_cast %r to offset: [%n], sizes: [20], strides: [1]",
            "memref<20xf32, strided<[1], offset: ?>>",
            None,
        ),
        ("%v = memref.view %bytes[%c0][]", "memref<4xf32>", None),
        (
            f"{SUBVIEW}\n%v = memref.transpose %r (i, j) -> (j, i)",
            "memref<8x8xf32, strided<[1, 16], offset: 8>>",
            (8, (8, 8), (1, 16)),
        ),
        ("%v = memref.cast %d : memref<8x?xf32> to memref<*xf32>", "memref<*xf32>", None),
        (f"{SUBVIEW}\n%v = arith.select %c, %r, %r : {RIGHT}", RIGHT, None),
        (f"{SUBVIEW}\n{BRANCH}", RIGHT, None),
    ],
)
def test_what_a_view_names(body: str, kind: str, expected: Any) -> None:
    last = body.splitlines()[-1]
    if " : " not in last and last.startswith("%v"):  # its type is to be told
        source = {"%a": M, "%r": RIGHT, "%bytes": "memref<1024xi8>"}[re.findall(r"%\w+", last)[1]]
        body = f"{body} : {source} to {kind}"
    with parsed(MODULE.replace("BODY", body).replace("TYPE", kind)) as module:
        region = buffer_regions.region_of(walk(module, "func.call")[-1].operands[0])
    assert region == (None if expected is None else buffer_regions.StridedRegion(*expected))


def test_a_view_that_a_loop_hands_on_may_be_anywhere() -> None:
    body = f"""{SUBVIEW}
    %v = scf.for %i = %c0 to %n step %n iter_args(%x = %r) -> {RIGHT} {{
      func.call @use(%x) : ({RIGHT}) -> ()
      scf.yield %x : {RIGHT}
    }}"""
    with parsed(MODULE.replace("BODY", body).replace("TYPE", RIGHT)) as module:
        inside, behind = (op.operands[0] for op in walk(module, "func.call"))
        assert buffer_regions.region_of(inside) is None
        assert buffer_regions.region_of(behind) is None
