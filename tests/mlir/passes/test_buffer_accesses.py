import pytest

from tests.mlir.device_programs import BUFFER, copy, host_function, launch, main_function

pytestmark = pytest.mark.mlir

buffer_accesses = pytest.importorskip("tuner.mlir.passes.buffer_accesses")
kernel_effects = pytest.importorskip("tuner.mlir.passes.kernel_effects")

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
        first, second, third, fourth = ("".join(sorted(names[root] for root in group)) for group in groups)
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
        ((f"%d = memref.dim %a, %c0 : {BUFFER}",), ("", "", "", "")),
        ((f"%v = memref.cast %a : {BUFFER} to memref<?xf32>",), ("", "", "", "")),
        (LOOP, ("a", "b", "c", "")),
    ],
)
def test_who_reads_and_writes_what(lines: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert accesses("%x = arith.constant 0.0 : f32", *lines) == expected


def test_two_reads_are_no_conflict() -> None:
    a, b = frozenset("a"), frozenset("b")
    read, write, other = (buffer_accesses.Accesses(*each) for each in ((a,), (frozenset(), a), (b, b)))
    assert not read.conflicts_with(read)
    assert read.conflicts_with(write)
    assert write.conflicts_with(read)
    assert write.conflicts_with(write)
    assert not write.conflicts_with(other)


def test_what_is_unknown_is_in_conflict_with_all_but_nothing() -> None:
    unknown, nothing = buffer_accesses.Accesses(is_unknown=True), buffer_accesses.NONE
    read = buffer_accesses.Accesses(frozenset("a"))
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
