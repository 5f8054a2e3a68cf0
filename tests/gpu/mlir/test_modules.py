"""Launches as a program's buffers and kernels, what is refused, and device functions inlined."""

from typing import Any

import pytest

from tests.gpu.target.strategies import points
from tests.gpu.target.strategies.points import mma_sync, naive, simt, wgmma
from tests.mlir.kernels import changed, counts
from tests.support.gpu_point import GpuPoint
from tests.texts import text_beside
from tuner.core.compiled_code import KernelBuffer
from tuner.core.errors import CandidateError, Stage
from tuner.core.matmul import BatchMatmul
from tuner.gpu.mlir import batches, device_functions, launch_sequence

A, C = KernelBuffer("a", 16, "input"), KernelBuffer("c", 32, "output")
ONE = "blocks in (%c1, %c1, %c1) threads in (%c2, %c1, %c1)"
KERNELS = """gpu.module @m {
    gpu.func @pack(%a: memref<4xf32>, %p: memref<9xf32>) kernel { gpu.return }
    gpu.func @matmul(%c: memref<8xf32>, %p: memref<9xf32>) kernel { gpu.return }
  }"""


def module(*functions: str) -> str:
    return "module attributes {gpu.container_module} {\n" + "\n".join(functions) + f"\n  {KERNELS}\n}}\n"


def host(*body: str, arguments: str = "%a: memref<4xf32>, %c: memref<8xf32>", name: str = "host") -> str:
    constants = "%c1 = arith.constant 1 : index\n    %c2 = arith.constant 2 : index"
    lines = "\n    ".join(body)
    return f"  func.func @{name}({arguments}) {{\n    {constants}\n    {lines}\n    return\n  }}"


PACK = f"gpu.launch_func @m::@pack {ONE} args(%a : memref<4xf32>, %p : memref<9xf32>)"
ALLOCATED = "%p = memref.alloc() : memref<9xf32>"
MATMUL = f"gpu.launch_func @m::@matmul {ONE} args(%c : memref<8xf32>, %p : memref<9xf32>)"


def read(text: str) -> Any:
    return changed(launch_sequence.read_launches, text, (A, C))[2]


def refusal(text: str) -> str:
    with pytest.raises(CandidateError, match=r"found|constant") as failure:
        read(text)
    assert failure.value.stage is Stage.COMPILE
    return failure.value.reason


def test_a_kernel_may_say_of_how_many_tiles_its_blocks_make_several() -> None:
    last = "kernel { gpu.return }\n  }"
    grid = last.replace("kernel", "kernel attributes {tuner.tile_grid = array<i32: 4, 2>}")
    said = module(host(ALLOCATED, PACK, MATMUL)).replace(last, grid)
    assert [launch.tile_grid for launch in read(said).launches] == [None, (4, 2)]


def test_an_allocation_may_have_a_name_and_ask_for_zeros_and_a_cast_is_the_same_buffer() -> None:
    alloc = '%p = memref.alloc() {tuner.buffer = "packed_a", tuner.zeroed} : memref<9xf32>'
    program = read(module(host(alloc, PACK)))
    assert program.launches[0].arguments == ("a", "packed_a")
    assert program.buffers[2] == KernelBuffer("packed_a", 36, "scratch", is_zeroed=True)
    kept = read(module(host(alloc.replace("zeroed}", "zeroed, tuner.keeps_zeros}"), PACK))).buffers[2]
    assert (kept.is_zeroed, kept.keeps_zeros) == (True, True)
    cast = "%p = memref.cast %q : memref<9xf32> to memref<9xf32>"
    program = read(module(host("%q = memref.alloc() : memref<9xf32>", cast, PACK)))
    assert program.launches[0].arguments == ("a", "scratch0")
    assert program.buffers == (A, C, KernelBuffer("scratch0", 36, "scratch"))


def test_an_unnamed_allocation_is_another_buffer_than_a_named_one() -> None:
    unnamed = "%q = memref.alloc() : memref<9xf32>"
    alloc = ALLOCATED.replace("()", '() {tuner.buffer = "scratch1"}')
    pack = PACK.replace("%p", "%q")
    program = read(module(host(unnamed, alloc, PACK, pack, "%p2 = memref.alloc() : memref<9xf32>")))
    assert [buffer.name for buffer in program.buffers[2:]] == ["scratch0", "scratch1", "scratch2"]
    alloc = alloc.replace("scratch1", "scratch0")
    for body in ((unnamed, alloc), (alloc, unnamed)):
        program = read(module(host(*body, PACK, pack)))
        assert [launch.arguments[1] for launch in program.launches] == ["scratch0", "scratch1"]


def test_a_buffer_keeps_zeros_where_each_function_says_so() -> None:
    kept = "tuner.zeroed, tuner.keeps_zeros"
    for second, keeps_zeros in ((kept, True), ("tuner.zeroed", False)):
        functions = [
            host(
                PACK,
                name=name,
                arguments=f'%a: memref<4xf32>, %p: memref<9xf32> {{tuner.buffer = "n", {said}}}',
            )
            for name, said in (("first", kept), ("second", second))
        ]
        for order in (functions, functions[::-1]):
            buffer = read(module(*order)).buffers[2]
            assert (buffer.is_zeroed, buffer.keeps_zeros) == (True, keeps_zeros)


def test_a_padded_view_does_not_change_the_size_of_the_problems_buffer() -> None:
    padded = host(ALLOCATED, PACK, arguments="%a: memref<4xf32>, %c: memref<800xf32>")
    assert read(module(padded)).buffers[1] == C


def test_functions_share_buffers_by_name_and_scratch_has_the_larger_size() -> None:
    packed, zeroed = '%p: memref<9xf32> {tuner.buffer = "packed"}', '{tuner.buffer = "c", tuner.zeroed}'
    first = host(PACK, name="first", arguments=f"%a: memref<4xf32>, {packed}")
    named = f"%c: memref<8xf32> {zeroed}, {packed}"
    program = read(module(first, host(MATMUL, name="second", arguments=named)))
    assert [launch.arguments for launch in program.launches] == [("a", "packed"), ("c", "packed")]
    zeroed_c = KernelBuffer("c", 32, "output", is_zeroed=True)
    assert program.buffers == (A, zeroed_c, KernelBuffer("packed", 36, "scratch"))
    larger = host(name="second", arguments='%w: memref<50xf32> {tuner.buffer = "packed"}')
    assert read(module(first, larger)).buffers[2] == KernelBuffer("packed", 200, "scratch")


def test_scratch_is_as_large_as_its_true_sizes() -> None:
    padded = '%w: memref<8x64xf16, strided<[24, 1]>> {{tuner.buffer = "w"{bounds}}}'
    sizes = []
    for bounds in ("", ", tuner.bounds = array<i64: 5, 24>", ", tuner.bounds = array<i64: 1, 5, 24>"):
        first = host(name="first", arguments=padded.format(bounds=bounds))
        second = host(ALLOCATED, PACK, name="second")
        sizes.append(next(each.bytes for each in read(module(first, second)).buffers if each.name == "w"))
    whole = (7 * 24 + 64) * 2
    assert sizes == [whole, (4 * 24 + 24) * 2, whole]  # bounds of another rank are not of this view


def test_private_functions_are_not_run_and_not_called() -> None:
    helper = "func.func private @helper(%x: f32) -> f32 { return %x : f32 } func.func private @declared(f32)"
    assert read(module(helper, host(ALLOCATED, PACK))) == read(module(host(ALLOCATED, PACK)))
    call = "%x = arith.constant 1.0 : f32 %y = func.call @helper(%x) : (f32) -> f32"
    assert refusal(module(helper, host(ALLOCATED, PACK, call))) == f"host: found func.call {OUTSIDE}"


OUTSIDE = "outside of every gpu.launch"
FILL = "%zero = arith.constant 0.0 : f32 linalg.fill ins(%zero : f32) outs(%a : memref<4xf32>)"
GROWN = "%p = memref.alloc() : memref<9xf32> %n = arith.addi %c1, %c1 : index"
OF_GLOBAL = "%q = memref.alloc() : memref<9xf32> %p = memref.get_global @table : memref<9xf32>"
GLOBAL, BY_SIZE = "memref.global @table : memref<9xf32>", PACK.replace("in (%c2", "in (%n")
OF_ARGUMENT = "host: found argument"
NAMED = "allowed 2 of the problem, or with tuner.buffer"
OF_NUMBER, THREE = "%a: memref<4xf32>, %n: index", "%a: memref<4xf32>, %c: memref<8xf32>, %p: memref<9xf32>"
REFUSED = {
    "work of the host": (host(FILL), f"host: found linalg.fill {OUTSIDE}"),
    "a loop": (host("scf.for %i = %c1 to %c2 step %c1 { }"), f"host: found scf.for {OUTSIDE}"),
    "control flow": (host("cf.br ^next", "^next:"), f"host: found control flow {OUTSIDE}"),
    "no launch": (host(), "the script made no kernel: found no gpu.launch"),
    "a number": (host(arguments=OF_NUMBER), f"{OF_ARGUMENT} 1 of type index, allowed memrefs"),
    "a size that only the run knows": (host(GROWN, BY_SIZE), f"host: found arith.addi {OUTSIDE}"),
    "a global": (f"{GLOBAL}\n{host(OF_GLOBAL, PACK)}", "module: found memref.global, allowed functions"),
    "an argument without a name": (host(arguments=THREE), f"{OF_ARGUMENT} 2 without a name, {NAMED}"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_launch_of_kernels_on_buffers_is_refused(what: str) -> None:
    text, reason = REFUSED[what]
    assert refusal(module(text)) == reason


CALLS = text_beside(__file__, "CALLS")
SHOWN = {device_functions.inline_device_functions: (CALLS,)}


def inlined(callee: str) -> str:
    text = CALLS.replace("%y = func.call @twice", f"%y = func.call @{callee}")
    return changed(device_functions.inline_device_functions, text)[1]


@pytest.mark.parametrize(("callee", "additions"), [("twice", 1), ("four_times", 2)])
def test_what_a_kernel_calls_becomes_its_custom_ops(callee: str, additions: int) -> None:
    assert counts(inlined(callee), "func.call", "func.func", "arith.addf") == [0, 0, additions]


@pytest.mark.parametrize("callee", ["declared", "branches", "round"])
def test_what_cannot_be_inlined_is_named(callee: str) -> None:
    allowed = "allowed a function of its gpu.module with one block, which does not call itself"
    with pytest.raises(CandidateError, match=f"^func.call at .*: found a call of @{callee}, {allowed}$"):
        inlined(callee)


# Batches along z of the grid: every strategy is right for every pair of matrices, on the PTX simulator.

BY_WORKSPACE: dict[str, Any] = {"splits": 2, "split_by": "workspace", "block_k": 16, "warps_n": 1}
TWOS: dict[str, Any] = dict.fromkeys(("thread_m", "thread_n", "split_m", "split_n", "unroll_k", "depth"), 2)
POINTS = (
    mma_sync(BatchMatmul(3, 67, 130, 64, "f16", epilogue="bias_relu", output="f16")),
    mma_sync(BatchMatmul(2, 64, 64, 160, "f16", "nt"), splits=2),
    mma_sync(BatchMatmul(2, 65, 65, 160, "bf16", "nt", "bias_relu", "bf16"), **BY_WORKSPACE),
    mma_sync(BatchMatmul(2, 65, 99, 91, "f16", "tn"), pack=1, shared="pad"),
    mma_sync(BatchMatmul(5, 1, 3, 7, "bf16", "tn"), depth=0, block_m=32, block_n=32),
    simt(BatchMatmul(3, 40, 65, 33, epilogue="bias_relu"), **TWOS, block_m=64, block_k=16),
    naive(BatchMatmul(4, 5, 3, 7, "i8"), block_m=2),
    wgmma(BatchMatmul(3, 72, 68, 72, "bf16", "nt", "bias_relu", "bf16")),
    wgmma(BatchMatmul(2, 130, 72, 104, "f16"), cluster="2x1"),
    wgmma(BatchMatmul(2, 136, 72, 136, "f16", "tn"), stages=3, tiles=2),
)


@pytest.mark.slow
@pytest.mark.parametrize("one", POINTS, ids=points.by_name)
def test_every_pair_is_multiplied_without_races(one: GpuPoint) -> None:
    assert points.is_feasible(one)
    points.require_right(one)


def test_the_grid_and_the_buffers_are_of_the_whole_batch() -> None:
    sizes = (65, 65, 160, "f16", "nt", "bias_relu")
    of_batches = (mma_sync(BatchMatmul(each, *sizes), splits=2, split_by="workspace") for each in (1, 3))
    one, three = (point.program() for point in of_batches)
    for before, after in zip(one.launches, three.launches, strict=True):
        assert after.grid == (*before.grid[:2], 3 * before.grid[2])
    for was, now in zip(one.buffers, three.buffers, strict=True):
        assert now.bytes == was.bytes * (1 if now.name == "bias" else 3)
    assert {each.name for each in three.buffers} >= {"a", "b", "bias", "c", "workspace"}


def test_a_tensor_map_gets_the_matrix_as_its_last_dimension() -> None:
    (launch,) = wgmma(BatchMatmul(3, 72, 64, 40, "f16")).program().launches
    layout = next(each.layout for each in launch.tensor_maps if each.buffer == "a")
    assert (layout.sizes, layout.strides_bytes, layout.box) == ((40, 72, 3), (80, 72 * 80), (64, 64, 1))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("forgotten", ["a", "b", "c", "workspace"])
def test_a_buffer_with_forgotten_matrices_is_seen(monkeypatch: pytest.MonkeyPatch, forgotten: str) -> None:
    by_name = batches._bytes_by_name  # noqa: SLF001 - what is broken on purpose
    monkeypatch.setattr(batches, "_bytes_by_name", lambda host: by_name(host) | {forgotten: 0})
    one = mma_sync(BatchMatmul(2, 64, 64, 128, "f16", "nt"), splits=2, split_by="workspace")
    verdict, _, simulations = one.run(one.program())
    assert verdict.max_error > 1.0 or any(simulation.hazards for simulation in simulations)
