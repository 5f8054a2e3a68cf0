import pytest

from tests.programs.lowering.device_programs import BUFFER, copy, host_function, launch, main_function

pytestmark = pytest.mark.mlir

buffer_accesses = pytest.importorskip("tuner.mlir.effects.accesses")
buffer_regions = pytest.importorskip("tuner.mlir.effects.accesses")
kernel_effects = pytest.importorskip("tuner.mlir.effects.memory_effects")

LOOP = (
    "scf.for %i = %c0 to %n step %c1 {",
    launch("twice", "a", "b"),
    "%v = memref.load %c[%i] : memref<16xf32>",
    "}",
)


def accesses(*lines: str) -> tuple[str, str, str, str]:
    """Returns the arguments that the last op reads and writes by the device, then those by the host."""
    with main_function(host_function(*lines, buffers="abc", others="%p: !llvm.ptr")) as (module, function):
        block = function.regions[0].blocks[0]
        op = block.operations[len(block.operations) - 2].operation
        names = dict(zip(block.arguments, "abcp", strict=True))
        device = buffer_accesses.device_accesses(op, kernel_effects.KernelEffects(module))
        host = buffer_accesses.host_accesses(op)
        groups = (device.reads, device.writes, host.reads, host.writes)
        first, second, third, fourth = (
            "".join(sorted(names[part.root] for part in group)) for group in groups
        )
        return first, second, third, fourth


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


def parts(*lines: str) -> list[tuple[int, ...] | None]:
    """Returns (first, size) of what the last op touches of %a, by the device and then by the host."""
    with main_function(host_function(*lines, others="%p: !llvm.ptr")) as (module, function):
        block = function.regions[0].blocks[0]
        op = block.operations[len(block.operations) - 2].operation
        device = buffer_accesses.device_accesses(op, kernel_effects.KernelEffects(module))
        both = buffer_accesses.union((device, buffer_accesses.host_accesses(op)))
        regions = [part.region for part in (*both.reads, *both.writes) if part.root == block.arguments[0]]
        return [None if region is None else (region.offset, *region.sizes) for region in regions]


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


def test_two_reads_are_no_conflict() -> None:
    a, b = (frozenset({buffer_regions.BufferPart(name)}) for name in "ab")
    read, write, other = (buffer_accesses.Accesses(*each) for each in ((a,), (frozenset(), a), (b, b)))
    assert not read.conflicts_with(read)
    assert read.conflicts_with(write)
    assert write.conflicts_with(read)
    assert write.conflicts_with(write)
    assert not write.conflicts_with(other)


def test_writes_of_two_halves_are_no_conflict() -> None:
    low, high, middle = (buffer_regions.StridedRegion(offset, (8,), (1,)) for offset in (0, 8, 4))
    first, second, between, all_ = (
        buffer_accesses.Accesses(writes=frozenset({buffer_regions.BufferPart("a", region)}))
        for region in (low, high, middle, None)
    )
    assert not first.conflicts_with(second)
    assert first.conflicts_with(between)
    assert between.conflicts_with(second)
    assert first.conflicts_with(all_)
    assert buffer_accesses.union((first, second)).conflicts_with(between)


def test_what_is_unknown_is_in_conflict_with_all_but_nothing() -> None:
    unknown, nothing = buffer_accesses.Accesses(is_unknown=True), buffer_accesses.NONE
    read = buffer_accesses.Accesses(frozenset({buffer_regions.BufferPart("a")}))
    assert unknown.conflicts_with(read)
    assert read.conflicts_with(unknown)
    assert not unknown.conflicts_with(nothing)
    assert not nothing.conflicts_with(unknown)
    assert buffer_accesses.union((read, unknown)).is_unknown
    assert not nothing


def test_memory_that_the_host_shares_is_no_work_of_the_device() -> None:
    lines = (f"%d = gpu.alloc () : {BUFFER}", f"%e = gpu.alloc host_shared () : {BUFFER}")
    with main_function(host_function(*lines)) as (_, function):
        ops = [op for op in buffer_accesses.inside(function) if op.name == "gpu.alloc"]
        assert [buffer_accesses.is_device_work(op) for op in ops] == [True, False]
