import itertools
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import costly
from tests.mlir.kernels import parsed
from tests.programs.lowering.device_programs import BUFFER, copy, host_function, launch, main_function
from tests.texts import text_beside
from tuner.mlir.effects import accesses as buffer_accesses
from tuner.mlir.effects import memory_effects
from tuner.mlir.ir.reading import walk

LOOP = (
    "scf.for %i = %c0 to %n step %c1 {",
    launch("twice", "a", "b"),
    "%v = memref.load %c[%i] : memref<16xf32>",
    "}",
)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((copy("a", "b"),), ("b", "a", "", "")),
        ((launch("add", "a", "b", "c"),), ("ab", "c", "", "")),
        ((f"gpu.memset %a, %x : {BUFFER}, f32",), ("", "a", "", "")),
        ((f"gpu.dealloc %a : {BUFFER}",), ("", "a", "", "")),
        ((f"%v = memref.load %a[%c0] : {BUFFER}",), ("", "", "a", "")),
        ((f"memref.store %x, %b[%c0] : {BUFFER}",), ("", "", "", "b")),
        ((f"memref.copy %a, %b : {BUFFER} to {BUFFER}",), ("", "", "a", "b")),
        ((f"memref.dealloc %a : {BUFFER}",), ("", "", "a", "a")),
        ((f"linalg.fill ins(%x : f32) outs(%a : {BUFFER})",), ("", "", "", "a")),
        ((f"linalg.exp ins(%a : {BUFFER}) outs(%b : {BUFFER})",), ("", "", "ab", "b")),
        ((f"%d = memref.dim %a, %c0 : {BUFFER}",), ("", "", "", "")),
        ((f"%v = memref.cast %a : {BUFFER} to memref<?xf32>",), ("", "", "", "")),
        (LOOP, ("a", "b", "c", "")),
    ],
)
def test_who_reads_and_writes_what(lines: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert accesses("%x = arith.constant 0.0 : f32", *lines) == expected


VIEW = "memref<4xf32, strided<[1], offset: {}>>"


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (f"memref.copy %v, %b4 : {VIEW.format(8)} to memref<4xf32, strided<[1]>>", [(8, 4)]),
        (f"gpu.memcpy %b4, %v : memref<4xf32, strided<[1]>>, {VIEW.format(8)}", [(8, 4)]),
        (f"gpu.memset %v, %x : {VIEW.format(8)}, f32", [(8, 4)]),
        (f"memref.store %x, %v[%c0] : {VIEW.format(8)}", [(8, 4)]),
        (copy("a", "b"), [(0, 16)]),
        (f"gpu.dealloc %a : {BUFFER}", [None]),
        (f"memref.dealloc %a : {BUFFER}", [None, None]),
        (f"memref.prefetch %v[%c0], read, locality<3>, data : {VIEW.format(8)}", []),
        (f"%r = memref.atomic_rmw addf %x, %v[%c0] : (f32, {VIEW.format(8)}) -> f32", [None, None]),
    ],
)
def test_what_is_touched_of_a_buffer(last: str, expected: list[tuple[int, ...] | None]) -> None:
    lines = (
        "%x = arith.constant 0.0 : f32",
        f"%v = memref.subview %a[8] [4] [1] : {BUFFER} to {VIEW.format(8)}",
        f"%b4 = memref.subview %b[0] [4] [1] : {BUFFER} to memref<4xf32, strided<[1]>>",
    )
    assert parts(*lines, last) == expected


def test_accesses_conflict_where_one_writes_what_the_other_touches() -> None:
    a, b = (frozenset({buffer_accesses.BufferPart(name)}) for name in "ab")
    read, write, other = (buffer_accesses.Accesses(*each) for each in ((a,), (frozenset(), a), (b, b)))
    unknown, nothing = buffer_accesses.Accesses(is_unknown=True), buffer_accesses.NONE
    low, high, middle, whole = (
        buffer_accesses.Accesses(writes=frozenset({buffer_accesses.BufferPart("a", region)}))
        for region in (*(buffer_accesses.StridedRegion(offset, (8,), (1,)) for offset in (0, 8, 4)), None)
    )
    conflicts = [(read, write), (write, read), (write, write), (unknown, read), (read, unknown)]
    conflicts += [(low, middle), (middle, high), (low, whole), (buffer_accesses.union((low, high)), middle)]
    apart = [(read, read), (write, other), (low, high), (unknown, nothing), (nothing, unknown)]
    assert all(one.conflicts_with(another) for one, another in conflicts)
    assert not any(one.conflicts_with(another) for one, another in apart)
    assert buffer_accesses.union((read, unknown)).is_unknown
    assert not nothing


def all_accesses(function: Any, module: Any) -> tuple[Any, Any]:
    """Returns the accesses of the last op, by the device and by the host."""
    block = function.regions[0].blocks[0]
    op = block.operations[len(block.operations) - 2].operation
    device = buffer_accesses.device_accesses(op, memory_effects.KernelEffects(module))
    return device, buffer_accesses.host_accesses(op)


def accesses(*lines: str) -> tuple[str, ...]:
    """Returns the arguments that the last op reads and writes by the device, then those by the host."""
    with main_function(host_function(*lines, buffers="abc", others="%p: !llvm.ptr")) as (module, function):
        names = dict(zip(function.regions[0].blocks[0].arguments, "abcp", strict=True))
        device, host = all_accesses(function, module)
        groups = (device.reads, device.writes, host.reads, host.writes)
        return tuple("".join(sorted(names[part.root] for part in group)) for group in groups)


def parts(*lines: str) -> list[tuple[int, ...] | None]:
    """Returns (first, size) of what the last op touches of %a, by the device and then by the host."""
    with main_function(host_function(*lines, others="%p: !llvm.ptr")) as (module, function):
        both, a = (
            buffer_accesses.union(all_accesses(function, module)),
            function.regions[0].blocks[0].arguments[0],
        )
        regions = [part.region for part in (*both.reads, *both.writes) if part.root == a]
        return [None if region is None else (region.offset, *region.sizes) for region in regions]


def test_memory_that_the_host_shares_is_no_work_of_the_device() -> None:
    lines = (f"%d = gpu.alloc () : {BUFFER}", f"%e = gpu.alloc host_shared () : {BUFFER}")
    with main_function(host_function(*lines)) as (_, function):
        ops = [op for op in buffer_accesses.inside(function) if op.name == "gpu.alloc"]
        assert [buffer_accesses.is_device_work(op) for op in ops] == [True, False]


@st.composite
def regions(draw: st.DrawFn) -> Any:
    dimensions = draw(st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 24)), max_size=3))
    sizes, strides = (tuple(part) for part in zip(*dimensions, strict=True)) if dimensions else ((), ())
    return buffer_accesses.StridedRegion(draw(st.integers(-8, 64)), sizes, strides)


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
    return buffer_accesses.StridedRegion(offset, tuple(sizes), tuple(strides))


@pytest.mark.slow
@costly(300, 1000)
@given(boxes(), boxes())
def test_parts_of_a_row_major_array_overlap_when_they_share_an_element(one: Any, other: Any) -> None:
    assert one.overlaps(other) == bool(elements(one) & elements(other))


def test_large_parts_are_compared_at_once_or_taken_to_overlap() -> None:
    size, half = 2**20, 2**19
    left, right = (buffer_accesses.StridedRegion(offset, (size, half), (size, 1)) for offset in (0, half))
    assert not left.overlaps(right)
    assert left.overlaps(buffer_accesses.StridedRegion(half - 1, (1, 1), (size, 1)))
    odd, even = (buffer_accesses.StridedRegion(offset, (size, size), (6, 10)) for offset in (0, 1))
    assert odd.overlaps(even)  # takes too long to compare
    assert not buffer_accesses.BufferPart("a", left).overlaps(buffer_accesses.BufferPart("b", left))
    assert buffer_accesses.BufferPart("a", left).overlaps(buffer_accesses.BufferPart("a"))


M = "memref<8x16xf32>"
MODULE = text_beside(__file__, "MODULE")
RIGHT = "memref<8x8xf32, strided<[16, 1], offset: 8>>"
IN_RIGHT = "memref<2x8xf32, strided<[16, 1], offset: 40>>"
DYNAMIC = "memref<?x?xf32, strided<[?, ?], offset: ?>>"
SUBVIEW = f"%r = memref.subview %a[0, 8] [8, 8] [1, 1] : {M} to {RIGHT}"
PLACED = "strided<[16, 1], offset: ?>"
EVERY_SECOND = "memref<4x8xf32, strided<[32, 2], offset: 1>>"
TRANSPOSED = "memref<8x8xf32, strided<[1, 16], offset: 8>>"
REINTERPRET = f"{SUBVIEW}\n%v = memref.reinterpret_cast %r to offset: [AT], sizes: [20], strides: [1]"
OF_20 = "memref<20xf32, strided<[1], offset: AT>>"
WHOLE_RIGHT = (8, (8, 8), (16, 1))


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (f"%v = memref.cast %a : {M} to memref<?x16xf32>", "memref<?x16xf32>", (0, (8, 16), (16, 1))),
        (SUBVIEW.replace("%r", "%v"), RIGHT, (8, (8, 8), (16, 1))),
        (f"{SUBVIEW}\n%v = memref.subview %r[2, 0] [2, 8] [1, 1]", IN_RIGHT, (40, (2, 8), (16, 1))),
        ("%v = memref.subview %a[0, 1] [4, 8] [2, 2]", EVERY_SECOND, (1, (4, 8), (32, 2))),
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
            WHOLE_RIGHT,
        ),
        (REINTERPRET.replace("AT", "3"), OF_20.replace("AT", "3"), (3, (20,), (1,))),
        (REINTERPRET.replace("AT", "%n"), OF_20.replace("AT", "?"), None),
        ("%v = memref.view %bytes[%c0][]", "memref<4xf32>", None),
        (f"{SUBVIEW}\n%v = memref.transpose %r (i, j) -> (j, i)", TRANSPOSED, (8, (8, 8), (1, 16))),
        ("%v = memref.cast %d : memref<8x?xf32> to memref<*xf32>", "memref<*xf32>", None),
        (f"{SUBVIEW}\n%v = arith.select %c, %r, %r : {RIGHT}", RIGHT, None),
        (f"{SUBVIEW}\n{text_beside(__file__, 'BRANCH')}", RIGHT, None),
    ],
)
def test_what_a_view_names(body: str, kind: str, expected: Any) -> None:
    last = body.splitlines()[-1]
    if " : " not in last and last.startswith("%v"):  # its type must be found
        source = {"%a": M, "%r": RIGHT, "%bytes": "memref<1024xi8>"}[re.findall(r"%\w+", last)[1]]
        body = f"{body} : {source} to {kind}"
    with parsed(MODULE.replace("BODY", body).replace("TYPE", kind)) as module:
        region = buffer_accesses.region_of(walk(module, "func.call")[-1].operands[0])
    assert region == (None if expected is None else buffer_accesses.StridedRegion(*expected))


def test_a_view_that_a_loop_hands_on_may_be_anywhere() -> None:
    body = text_beside(__file__, "CARRIED_VIEW")
    with parsed(MODULE.replace("BODY", body).replace("TYPE", RIGHT)) as module:
        inside, behind = (op.operands[0] for op in walk(module, "func.call"))
        assert buffer_accesses.region_of(inside) is None
        assert buffer_accesses.region_of(behind) is None
