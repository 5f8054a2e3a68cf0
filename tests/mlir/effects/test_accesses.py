import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import costly
from tests.mlir.kernels import parsed
from tests.models.lowering.device_programs import BUFFER, copy, host_function, launch, main_function
from tests.texts import text_beside
from tuner.mlir.effects import accesses as buffer_accesses
from tuner.mlir.effects import memory_effects
from tuner.mlir.effects.accesses import Accesses, BufferPart, StridedRegion
from tuner.mlir.ir.reading import walk

LOOP = f"scf.for %i = %c0 to %n step %c1 {{ {launch('twice', 'a', 'b')} %v = memref.load %c[%i] : {BUFFER} }}"
VIEW, FIRST = "memref<4xf32, strided<[1], offset: 8>>", "memref<4xf32, strided<[1]>>"  # %v of %a, %b4 of %b


@contextmanager
def of_last_op(*lines: str, buffers: str) -> Iterator[tuple[list[Any], Any, Any]]:
    """Gives the arguments of a function, and the accesses of its last op by the device and by the host."""
    text = host_function("%x = arith.constant 0.0 : f32", *lines, buffers=buffers, others="%p: !llvm.ptr")
    with main_function(text) as (module, function):
        block = function.regions[0].blocks[0]
        op = block.operations[len(block.operations) - 2].operation
        device = buffer_accesses.device_accesses(op, memory_effects.KernelEffects(module))
        yield list(block.arguments), device, buffer_accesses.host_accesses(op)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (copy("a", "b"), ("b", "a", "", "")),
        (launch("add", "a", "b", "c"), ("ab", "c", "", "")),
        (f"gpu.memset %a, %x : {BUFFER}, f32", ("", "a", "", "")),
        (f"gpu.dealloc %a : {BUFFER}", ("", "a", "", "")),
        (f"%v = memref.load %a[%c0] : {BUFFER}", ("", "", "a", "")),
        (f"memref.store %x, %b[%c0] : {BUFFER}", ("", "", "", "b")),
        (f"memref.copy %a, %b : {BUFFER} to {BUFFER}", ("", "", "a", "b")),
        (f"memref.dealloc %a : {BUFFER}", ("", "", "a", "a")),
        (f"linalg.fill ins(%x : f32) outs(%a : {BUFFER})", ("", "", "", "a")),
        (f"linalg.exp ins(%a : {BUFFER}) outs(%b : {BUFFER})", ("", "", "ab", "b")),
        (f"%d = memref.dim %a, %c0 : {BUFFER}", ("", "", "", "")),
        (f"%v = memref.cast %a : {BUFFER} to memref<?xf32>", ("", "", "", "")),
        (LOOP, ("a", "b", "c", "")),
    ],
)
def test_who_reads_and_writes_what(line: str, expected: tuple[str, ...]) -> None:
    """Arguments that an op reads and writes by the device, then those by the host."""
    with of_last_op(line, buffers="abc") as (arguments, device, host):
        names = dict(zip(arguments, "abcp", strict=True))
        groups = (device.reads, device.writes, host.reads, host.writes)
        assert tuple("".join(sorted(names[part.root] for part in group)) for group in groups) == expected


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (f"memref.copy %v, %b4 : {VIEW} to {FIRST}", [(8, 4)]),
        (f"gpu.memcpy %b4, %v : {FIRST}, {VIEW}", [(8, 4)]),
        (f"gpu.memset %v, %x : {VIEW}, f32", [(8, 4)]),
        (f"memref.store %x, %v[%c0] : {VIEW}", [(8, 4)]),
        (copy("a", "b"), [(0, 16)]),
        (f"gpu.dealloc %a : {BUFFER}", [None]),
        (f"memref.dealloc %a : {BUFFER}", [None, None]),
        (f"memref.prefetch %v[%c0], read, locality<3>, data : {VIEW}", []),
        (f"%r = memref.atomic_rmw addf %x, %v[%c0] : (f32, {VIEW}) -> f32", [None, None]),
    ],
)
def test_what_is_touched_of_a_buffer(last: str, expected: list[tuple[int, ...] | None]) -> None:
    """(First, size) of what an op touches of %a, by the device and then by the host."""
    view = f"%v = memref.subview %a[8] [4] [1] : {BUFFER} to {VIEW}"
    first = f"%b4 = memref.subview %b[0] [4] [1] : {BUFFER} to {FIRST}"
    with of_last_op(view, first, last, buffers="ab") as ((a, *_), *accesses):
        both = buffer_accesses.union(accesses)
        regions = [part.region for part in (*both.reads, *both.writes) if part.root == a]
        assert [region and (region.offset, *region.sizes) for region in regions] == expected


def test_accesses_conflict_where_one_writes_what_the_other_touches() -> None:
    a, b = (frozenset({BufferPart(name)}) for name in "ab")
    read, write, other = Accesses(a), Accesses(frozenset(), a), Accesses(b, b)
    unknown, nothing = Accesses(is_unknown=True), buffer_accesses.NONE
    regions = (*(StridedRegion(offset, (8,), (1,)) for offset in (0, 8, 4)), None)
    low, high, middle, whole = (Accesses(writes=frozenset({BufferPart("a", each)})) for each in regions)
    conflicts = [(read, write), (write, read), (write, write), (unknown, read), (read, unknown)]
    conflicts += [(low, middle), (middle, high), (low, whole), (buffer_accesses.union((low, high)), middle)]
    apart = [(read, read), (write, other), (low, high), (unknown, nothing), (nothing, unknown)]
    assert all(one.conflicts_with(another) for one, another in conflicts)
    assert not any(one.conflicts_with(another) for one, another in apart)
    assert buffer_accesses.union((read, unknown)).is_unknown
    assert not nothing


def test_memory_that_the_host_shares_is_no_work_of_the_device() -> None:
    lines = (f"%d = gpu.alloc () : {BUFFER}", f"%e = gpu.alloc host_shared () : {BUFFER}")
    with main_function(host_function(*lines)) as (_, function):
        ops = [op for op in buffer_accesses.inside(function) if op.name == "gpu.alloc"]
        assert [buffer_accesses.is_device_work(op) for op in ops] == [True, False]


@st.composite
def regions(draw: st.DrawFn) -> Any:
    dimensions = draw(st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 24)), max_size=3))
    sizes, strides = (tuple(part) for part in zip(*dimensions, strict=True)) if dimensions else ((), ())
    return StridedRegion(draw(st.integers(-8, 64)), sizes, strides)


def elements(region: Any) -> set[int]:
    steps = ([i * step for i in range(size)] for size, step in zip(region.sizes, region.strides, strict=True))
    return {region.offset + sum(place) for place in itertools.product(*steps)}


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
    return StridedRegion(offset, tuple(sizes), tuple(strides))


@pytest.mark.slow
@costly(300, 1000)
@given(boxes(), boxes())
def test_parts_of_a_row_major_array_overlap_when_they_share_an_element(one: Any, other: Any) -> None:
    assert one.overlaps(other) == bool(elements(one) & elements(other))


def test_large_parts_are_compared_at_once_or_taken_to_overlap() -> None:
    size, half = 2**20, 2**19
    left, right = (StridedRegion(offset, (size, half), (size, 1)) for offset in (0, half))
    assert not left.overlaps(right)
    assert left.overlaps(StridedRegion(half - 1, (1, 1), (size, 1)))
    odd, even = (StridedRegion(offset, (size, size), (6, 10)) for offset in (0, 1))
    assert odd.overlaps(even)  # takes too long to compare
    assert not BufferPart("a", left).overlaps(BufferPart("b", left))
    assert BufferPart("a", left).overlaps(BufferPart("a"))


# The last line defines %v, a view of %a (8 x 16) or of its right half %r -> (offset, sizes, strides) in %a.
MODULE, RIGHT_HALF = (text_beside(__file__, name) for name in ("MODULE", "RIGHT_HALF"))
RIGHT = "memref<8x8xf32, strided<[16, 1], offset: 8>>"
PLACED = "strided<[16, 1], offset: ?>"
EVERY_SECOND, ROW = "memref<4x8xf32, strided<[32, 2], offset: 1>>", "memref<16xf32, strided<[1], offset: 48>>"
IN_RIGHT = "memref<2x8xf32, strided<[16, 1], offset: 40>>"
TRANSPOSED = "memref<8x8xf32, strided<[1, 16], offset: 8>>"
REINTERPRETED = "memref.reinterpret_cast %r to offset: [AT], sizes: [20], strides: [1]"
OF_20 = "memref<20xf32, strided<[1], offset: AT>>"
OF_OPERANDS = {"%a": "memref<8x16xf32>", "%r": RIGHT, "%bytes": "memref<1024xi8>", "%d": "memref<8x?xf32>"}
WHOLE, WHOLE_RIGHT = (0, (8, 16), (16, 1)), (8, (8, 8), (16, 1))


def regions_of_calls(body: str, kind: str) -> list[StridedRegion | None]:
    with parsed(MODULE.replace("BODY", body).replace("TYPE", kind)) as module:
        return [buffer_accesses.region_of(op.operands[0]) for op in walk(module, "func.call")]


@pytest.mark.parametrize(
    ("view", "kind", "expected"),
    [
        ("memref.cast %a", "memref<?x16xf32>", WHOLE),
        ("memref.subview %a[0, 8] [8, 8] [1, 1]", RIGHT, WHOLE_RIGHT),
        ("memref.subview %r[2, 0] [2, 8] [1, 1]", IN_RIGHT, (40, (2, 8), (16, 1))),
        ("memref.subview %a[0, 1] [4, 8] [2, 2]", EVERY_SECOND, (1, (4, 8), (32, 2))),
        ("memref.subview %a[3, 0] [1, 16] [1, 1]", ROW, (48, (16,), (1,))),
        ("memref.cast %r", "memref<?x?xf32, strided<[?, ?], offset: ?>>", WHOLE_RIGHT),
        ("memref.subview %a[%n, 0] [2, 8] [1, 1]", f"memref<2x8xf32, {PLACED}>", WHOLE),
        ("memref.subview %r[%n, 0] [%n, 8] [1, 1]", f"memref<?x8xf32, {PLACED}>", WHOLE_RIGHT),
        (REINTERPRETED.replace("AT", "3"), OF_20.replace("AT", "3"), (3, (20,), (1,))),
        (REINTERPRETED.replace("AT", "%n"), OF_20.replace("AT", "?"), None),
        ("memref.view %bytes[%c0][]", "memref<4xf32>", None),
        ("memref.transpose %r (i, j) -> (j, i)", TRANSPOSED, (8, (8, 8), (1, 16))),
        ("memref.cast %d", "memref<*xf32>", None),
        (f"arith.select %c, %r, %r : {RIGHT}", RIGHT, None),
        (text_beside(__file__, "BRANCH"), RIGHT, None),
    ],
)
def test_what_a_view_names(view: str, kind: str, expected: Any) -> None:
    if view.startswith("memref."):
        (operand, *_) = re.findall(r"%\w+", view)
        view = f"{view} : {OF_OPERANDS[operand]} to {kind}"
    regions = regions_of_calls(f"{RIGHT_HALF}%v = {view}", kind)
    assert regions == [None if expected is None else StridedRegion(*expected)]


def test_a_view_that_a_loop_hands_on_may_be_anywhere() -> None:
    assert regions_of_calls(text_beside(__file__, "CARRIED_VIEW"), RIGHT) == [None, None]  # inside, behind
