"""What the kernels of large tiles are made of: wide loads, multiply-adds, no spills, no bank conflicts."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.gpu.target.strategies import points
from tests.gpu.target.strategies.points import SIMT, SIMT_LARGE, compiled, large_wgmma, require_right
from tests.gpu.target.strategies.test_points import OF_F64, OF_NT
from tests.support.gpu_point import GpuPoint, feasible_set
from tests.tuning.fakes import present
from tuner.core.candidate import Candidate
from tuner.core.compiled_code import KernelCode, PredictedCycles
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.gpu.cost_model.occupancy import require_launchable
from tuner.gpu.cost_model.untimed import is_serialized, ring_bytes
from tuner.gpu.ptxsim.ptx.geometry import Index3
from tuner.gpu.ptxsim.target.cycle_model import main_loop
from tuner.gpu.ptxsim.target.evaluator import simulate_program
from tuner.gpu.target.compiler import Ptxas, find_ptxas, locate
from tuner.gpu.target.sass import listing_of, read_kernels
from tuner.payload.drawing import draw, draw_base
from tuner.payload.reference import output_dtype
from tuner.results.output.trial_facts import predicted_lines

pytestmark = pytest.mark.mlir
SEED_CASE = Matmul(5376, 2048, 5376)
SHALLOW = replace(SEED_CASE, sizes=(5376, 2048, 672))  # as many blocks, an eighth of the steps to simulate
Knobs = dict[str, Any]
OF_TRANSPOSED: Knobs = {"transpose": 1, "vector_a": 1, "pad_bytes": 16}
SEED_TILE: Knobs = dict.fromkeys(("block_m", "block_n"), 64) | {"block_k": 32, "depth": 4}
SEED_TILE |= {"split_m": 1, "split_n": 1}
WGMMA_16 = "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16"


def require_no_spills(program: KernelCode) -> None:
    ptxas = find_ptxas()
    if ptxas is not None:
        (resources,) = ptxas.assemble(program).resources
        assert (resources.spilled_bytes, resources.registers <= 255) == (0, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "knobs"),
    [
        *((Matmul(128, 128, 64), {"depth": depth}) for depth in range(5)),
        (Matmul(128, 128, 64, layout="tn"), {}),
        (Matmul(128, 128, 64), OF_TRANSPOSED),
        (Matmul(128, 128, 64, layout="nt"), OF_NT),
        (Matmul(64, 128, 64, "f64"), {**OF_F64, "vector_a": 2, "vector_b": 2, "block_m": 64, "split_n": 4}),
    ],
    ids=str,
)
def test_large_tiles_of_cuda_cores_have_no_conflicts_and_no_spills(problem: Problem, knobs: Knobs) -> None:
    one = GpuPoint(problem, Candidate.of(SIMT, SIMT_LARGE | knobs))
    (simulation,) = require_right(one)
    reads = [each for each in simulation.conflicts if each.instruction.startswith("ld.shared")]
    assert {each.ratio for each in reads} == {1.0}
    assert simulation.conflict_ratio == 1.0
    require_no_spills(compiled(one))


@pytest.mark.slow
def test_unpadded_rows_of_a_transposed_b_collide() -> None:
    unpadded = Candidate.of(SIMT, SIMT_LARGE | OF_NT | {"pad_bytes": 0})
    (simulation,) = require_right(GpuPoint(Matmul(128, 128, 32, layout="nt"), unpadded))
    assert simulation.conflict_ratio > 1.5


@pytest.mark.parametrize("group", [1, 8])
def test_the_main_loop_of_cuda_cores_is_multiply_adds_fed_by_wide_loads_and_cp_async(group: int) -> None:
    ptx = GpuPoint(Matmul(4096, 4096, 4096), Candidate.of(SIMT, SIMT_LARGE | {"group": group})).program().text
    loop = ptx[ptx.rindex("\n$", 0, ptx.index("ld.shared")) : ptx.index("st.global")]
    assert loop.count("fma.rn.f32") == 8 * 8 * 16
    assert loop.count("ld.shared.v4") == (8 + 4 * 2) * 4  # of A along K, of B along N, for four of K
    assert "ld.global" not in ptx
    copies = re.findall(r"cp\.async\.cg\.shared\.global[^;]*, 16", ptx)
    assert len(copies) == 4 * (2 + 1)  # before the loop and in it
    assert ptx.count("st.global.v4") == 16


def test_a_transposed_tile_of_a_is_copied_by_elements_and_read_by_rows() -> None:
    one = GpuPoint(Matmul(4096, 4096, 4096), Candidate.of(SIMT, SIMT_LARGE | OF_TRANSPOSED))
    assert points.is_feasible(one)
    ptx = one.program().text
    loop = ptx[ptx.rindex("\n$", 0, ptx.index("ld.shared")) : ptx.index("st.global")]
    assert loop.count("ld.shared.v4") == (2 + 2) * 16  # of A along M, of B along N, for each step of K
    assert len(re.findall(r"cp\.async\.ca\.shared\.global[^;]*, 4", ptx)) == 8 * (2 + 1)  # of A
    assert len(re.findall(r"cp\.async\.cg\.shared\.global[^;]*, 16", ptx)) == 2 * (2 + 1)  # of B


def test_the_seed_case_takes_dynamic_shared_memory() -> None:
    program = points.simt(SEED_CASE, **SEED_TILE).program()
    assert program.launches[0].dynamic_shared_bytes == 81920
    ptxas = find_ptxas()
    if ptxas is not None:
        program = ptxas.assemble(program)
        require_launchable(program)
        assert program.resources[0].spill_load_bytes == 0


@pytest.mark.slow
def test_blocks_of_a_large_grid_are_right_where_they_are_sampled() -> None:
    program = points.simt(SHALLOW, **SEED_TILE).program()
    rng = np.random.default_rng(3)
    inputs = draw(SHALLOW, draw_base(SHALLOW, rng), rng)
    c = np.full(SHALLOW.sizes[:2], np.nan, output_dtype(SHALLOW))
    blocks = ((31, 83, 0), (15, 41, 0))  # the last and one in the interior; x along n
    arrays = dict(zip("ab", inputs.arrays, strict=True)) | {"c": c}
    (simulation,) = simulate_program(program, arrays, {0: blocks})
    assert simulation.hazards == ()
    assert simulation.conflict_ratio == 1.0
    for x, y, _ in blocks:
        rows, columns = slice(y * 64, y * 64 + 64), slice(x * 64, x * 64 + 64)
        expected, tolerance = inputs.tile(rows, columns)
        assert (np.abs(c[rows, columns] - expected) <= tolerance).all()
    assert np.count_nonzero(~np.isnan(c)) == len(blocks) * 64 * 64


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "layout", "instruction"),
    [
        ("f16", "nn", "m16n8k16.row.col.f32.f16.f16.f32"),
        ("bf16", "nn", "m16n8k16.row.col.f32.bf16.bf16.f32"),
        ("tf32", "nt", "m16n8k8.row.col.f32.tf32.tf32.f32"),
        ("i8", "nt", "m16n8k32.row.col.satfinite.s32.s8.s8.s32"),
        ("e4m3", "nt", "m16n8k32.row.col.f32.e4m3.e4m3.f32"),
    ],
)
def test_mma_sync_is_fed_by_ldmatrix_and_cp_async(dtype: str, layout: str, instruction: str) -> None:
    block_k = {"tf32": 16, "i8": 64, "e4m3": 64}.get(dtype, 32)
    # of e4m3 Hopper has no mma.sync: ptxas makes it of conversions to f16 and their mma
    chip = "sm_89" if dtype == "e4m3" else "sm_90"
    problem = Matmul(4096, 4096, 4096, dtype, layout)
    program = points.mma_sync(problem, chip, block_m=128, block_n=128, block_k=block_k, depth=3).program()
    assert program.text.count(f"mma.sync.aligned.{instruction}") == 64
    assert program.text.count("ldmatrix.sync.aligned.m8n8.x4") == 16
    copies = re.findall(r"cp\.async\.cg\.shared\.global[^;]*, 16", program.text)
    assert len(copies) == 8 * (3 + 1)  # before the loop and in it
    assert program.launches[0].dynamic_shared_bytes == 65536
    assert ".extern .shared" in program.text
    require_no_spills(program)


@pytest.mark.slow
def test_what_spills_is_right_comes_last_and_is_not_refused(ptxas: Ptxas) -> None:
    """Its 128 x 128 sums of one warp are 512 registers of each thread."""
    knobs: dict[str, Any] = {"block_m": 128, "block_n": 128, "block_k": 16, "warps_m": 1, "warps_n": 1}
    one = points.mma_sync(Matmul(128, 128, 64, "f16"), **knobs)
    allowed = feasible_set(one.problem, points.MMA_SYNC)
    assert not allowed.is_preferred[present(allowed.row_of(one.candidate))]
    program = ptxas.assemble(one.program())
    assert program.resources[0].spilled_bytes > 1000
    require_launchable(program)
    require_right(one, program)


def test_sums_stay_in_registers_for_all_of_k() -> None:
    ptx = points.mma_sync(Matmul(256, 256, 4096, "f16")).program().text
    assert "st.global" not in ptx[ptx.index("ldmatrix") : ptx.rindex("mma.sync")]


def test_the_first_points_of_the_space_file_can_be_launched(ptxas: Ptxas) -> None:
    knobs: dict[str, Any] = {"block_m": 128, "block_n": 256}
    knobs |= {"block_k": 32, "warps_n": 4, "depth": 3, "group": 8}
    program = ptxas.assemble(points.mma_sync(Matmul(5376, 5376, 2048, "f16"), **knobs).program())
    require_launchable(program)
    assert program.launches[0].dynamic_shared_bytes >= 81920


@pytest.mark.parametrize(("output", "stores", "shuffles"), [("f16", 16, 64), ("f32", 32, 64)])
def test_a_warp_stores_all_of_64x64_by_16_bytes_per_lane(output: str, stores: int, shuffles: int) -> None:
    problem = Matmul(128, 128, 64, "f16", output="" if output == "f32" else output)
    ptx = points.mma_sync(problem, block_m=128, block_n=128, exchange=1, prefetch=1).program().text
    assert (ptx.count("st.global.v4"), ptx.count("st.global")) == (stores, stores)
    assert ptx.count("shfl.sync.bfly") == shuffles


def test_the_large_tile_of_hopper_is_four_wgmma_per_step_fed_by_one_thread() -> None:
    program = compiled(large_wgmma())
    assert program.text.count(WGMMA_16) == 8  # first tile, loop
    assert "trap" not in program.text
    producer = program.text[program.text.index("setmaxnreg.dec.sync.aligned.u32") :]
    assert re.search(r"setmaxnreg\.dec\S+\s+40;", program.text)
    assert re.search(r"setmaxnreg\.inc\S+\s+232;", program.text)
    assert producer.index("elect.sync") < producer.index("cp.async.bulk.tensor.2d")
    assert program.text.count("cp.async.bulk.tensor.2d") == 5  # A, and B in four boxes of 64 columns
    (launch,) = program.launches
    assert (launch.block, launch.dynamic_shared_bytes) == ((384, 1, 1), 4 * (49152 + 16))
    assert launch.arguments == ("a_map0", "b_map0", "c")
    assert [each.layout.box for each in launch.tensor_maps] == [(64, 128), (64, 64)]
    points.require_large_tile_kept(program)


@pytest.mark.parametrize(("dtype", "options"), [("e4m3", "f32.e4m3.e4m3"), ("i8", "s32.s8.s8")])
def test_bytes_take_as_many_steps_as_half_as_many_halves(dtype: str, options: str, ptxas: Ptxas) -> None:
    program = large_wgmma(Matmul(4096, 4096, 4096, dtype, "nt"), block_k=128).program()
    assert program.text.count(f"wgmma.mma_async.sync.aligned.m64n256k32.{options}") == 8  # first tile, loop
    assert [each.layout.dtype for each in program.launches[0].tensor_maps] == [0, 0]  # bytes
    (resources,) = ptxas.assemble(program).resources
    assert (resources.spilled_bytes, is_serialized(resources)) == (0, False)


@pytest.mark.parametrize(
    ("cluster", "size", "boxes", "multicasts"),
    [("2x1", "1, 2, 1", [(64, 128), (64, 32)], 4), ("1x2", "2, 1, 1", [(64, 64), (64, 64)], 1)],
)
def test_the_large_tile_copies_halves_of_what_blocks_share(
    cluster: str, size: str, boxes: list[tuple[int, int]], multicasts: int
) -> None:
    program = large_wgmma(cluster=cluster).program()
    assert f".reqnctapercluster {size}" in program.text
    assert program.text.count("cp.async.bulk.tensor.2d") == 5
    assert program.text.count(".multicast::cluster") == multicasts
    (launch,) = program.launches
    assert [each.layout.box for each in launch.tensor_maps] == boxes
    points.require_large_tile_kept(program)


def test_the_large_tile_keeps_its_registers_with_parts_of_k() -> None:
    program = large_wgmma(Matmul(512, 512, 16384, "f16"), group=1, splits=4).program()
    grids = {launch.kernel: launch.grid for launch in program.launches}
    assert grids == {"matmul_kernel": (2, 4, 4), "reduce_kernel": (8, 64, 1)}
    points.require_large_tile_kept(program)


@pytest.mark.slow
@pytest.mark.parametrize(("cluster", "grid"), [("1x1", (128, 1, 1)), ("2x1", (64, 2, 1))])
def test_the_large_tile_keeps_its_loop_with_several_tiles_per_block(cluster: str, grid: Index3) -> None:
    program = large_wgmma(tiles=4, cluster=cluster).program()
    (launch,) = program.launches
    assert (launch.grid, launch.tile_grid) == (grid, (16, 32))
    assert program.text.count(WGMMA_16) == 8  # first tile, loop
    assert "call" not in program.text
    points.require_large_tile_kept(program)


@pytest.mark.parametrize(
    ("stores", "instruction", "count"),
    [("tma", "cp.async.bulk.tensor.2d.global", 4), ("exchange", "v4.b32", 16)],
)
def test_the_large_tile_keeps_registers_whatever_stores_c(stores: str, instruction: str, count: int) -> None:
    program = large_wgmma(replace(large_wgmma().problem, output="f16"), stores=stores).program()
    assert program.text.count(instruction) == count
    assert ("c_map0" in program.launches[0].arguments) == (stores == "tma")
    points.require_large_tile_kept(program)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("knobs", "products", "loads"),
    [
        ({"block_m": 256, "block_n": 128}, 4, 8),
        ({"block_m": 256, "block_n": 128, "cluster": "1x2", "tiles": 4}, 4, 8),
        ({"block_m": 128, "block_n": 256}, 8, 16),  # two tiles of 64 rows per warpgroup
    ],
)
def test_products_of_tf32_nn_read_b_from_registers_and_do_not_wait_for_each_other(
    ptxas: Ptxas, knobs: Knobs, products: int, loads: int
) -> None:
    program = large_wgmma(Matmul(4096, 4096, 4096, "tf32"), block_k=32, **knobs).program()
    name = f"wgmma.mma_async.sync.aligned.m64n{knobs['block_m']}k8.f32.tf32.tf32 {{"
    copies = 4  # of a step: the first, two in the loop, the last
    assert program.text.count(name) == copies * products
    assert program.text.count("ld.shared.v2.b32") == copies * loads
    (resources,) = ptxas.assemble(program).resources
    assert (resources.spilled_bytes, is_serialized(resources)) == (0, False)
    assert resources.registers == 168


@pytest.mark.parametrize(
    ("rows", "block", "consumers", "stages"), [(1, 8, 2, 8), (16, 16, 1, 11), (64, 32, 2, 8)]
)
def test_few_rows_are_the_columns_of_products_and_two_neighbours_are_stored_at_once(
    ptxas: Ptxas, rows: int, block: int, consumers: int, stages: int
) -> None:
    knobs = {"block_m": block, "block_n": 64 * consumers, "consumers": consumers, "stages": stages}
    program = large_wgmma(Matmul(rows, 4096, 4096, "bf16", "nt"), **knobs).program()
    assert program.text.count(f"wgmma.mma_async.sync.aligned.m64n{block}k16.f32.bf16.bf16") == 8
    pairs = block // 8 * 2  # of a thread
    assert program.text.count("shfl.sync.bfly") == pairs
    assert program.text.count("st.global.v2") == pairs
    (resources,) = ptxas.assemble(program).resources
    assert (resources.spilled_bytes, is_serialized(resources)) == (0, False)
    assert program.launches[0].dynamic_shared_bytes == stages * ((block + 64 * consumers) * 128 + 16)


@pytest.mark.parametrize(("rows", "block", "consumers"), [(1, 8, 2), (16, 16, 1), (512, 128, 2)])
def test_the_last_block_adds_parts_in_the_one_kernel_without_spills(
    ptxas: Ptxas, rows: int, block: int, consumers: int
) -> None:
    knobs = {"block_m": block, "block_n": 64 * consumers, "consumers": consumers, "group": 1, "splits": 4}
    problem = Matmul(rows, 512, 16384, "bf16", "nt")
    program = large_wgmma(problem, **knobs, split_by="last_block").program()
    assert len(program.launches) == 1
    assert program.text.count("atom.acq_rel.gpu") == 1
    (resources,) = ptxas.assemble(program).resources
    assert (resources.spilled_bytes, is_serialized(resources)) == (0, False)


@pytest.mark.parametrize(
    ("knobs", "in_flight_bytes"),
    [
        ({"block_m": 8, "block_n": 128, "stages": 8}, 8 * (8 + 128) * 128),
        ({"block_m": 8, "block_n": 64, "consumers": 1, "stages": 11}, 11 * (8 + 64) * 128),
    ],
)
def test_the_bytes_in_flight_of_few_rows_are_the_tiles_of_all_stages(
    knobs: Knobs, in_flight_bytes: int
) -> None:
    program = large_wgmma(Matmul(1, 4096, 4096, "bf16", "nt"), **knobs).program()
    assert ring_bytes(program.text, "matmul_kernel") == in_flight_bytes >= 36 * 1024
    assert ring_bytes(program.text, "reduce_kernel") == 0


def test_a_kernel_without_tma_has_no_bytes_in_flight_and_the_prediction_prints_those_of_others() -> None:
    ptx = compiled(points.mma_sync(Matmul(64, 64, 64, "f16"))).text
    assert ring_bytes(ptx, "matmul_kernel") == 0
    assert len(predicted_lines(PredictedCycles(1000.0, None))) == 1
    _, line = predicted_lines(PredictedCycles(1000.0, None, 139264))
    assert line == "in flight 139,264 bytes of tiles per multiprocessor at most"


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("dtype", "layout", "products", "most"),
    [
        ("tf32", "nn", 8, 2 * 45),  # two steps of 32 of K: 42.5 each by ptxas 13.5, 44.5 by 13.0
        ("tf32", "tn", 8, 2 * 45),
        ("tf32x3", "nn", 12, 153),
        ("tf32x3", "nt", 12, 151),
        ("tf32x3", "tn", 12, 153),
        ("bf16x6", "nn", 24, 178),  # of 64 of K, without fragments
        ("bf16x6", "nt", 24, 178),
        ("bf16x6", "tn", 24, 180),
    ],
)
def test_a_step_of_f32_on_tensor_cores_takes_few_instructions(
    ptxas: Ptxas, dtype: str, layout: str, products: int, most: int
) -> None:
    nvdisasm = locate("nvdisasm")
    if nvdisasm is None:
        pytest.skip("needs nvdisasm")
    block: Knobs = {"block_m": 256 if dtype == "tf32" else 128, "block_n": 128, "block_k": 32}
    name = f"HGMMA.64x{block['block_m']}x8.F32.TF32"
    if dtype == "bf16x6":
        block |= {"block_k": 64, "stages": 2}
        name = "HGMMA.64x128x16.F32.BF16"
    one = large_wgmma(Matmul(4096, 4096, 4096, dtype, layout), **block)
    kernels = read_kernels(listing_of(ptxas.assemble(one.program()).binary, nvdisasm.path))
    kernel = next(kernel for kernel in kernels if kernel.name == "matmul_kernel")
    loop = kernel.code[slice(*present(main_loop(kernel)))]
    assert sum(instruction.name.startswith(name) for instruction in loop) == products
    assert len(loop) <= most
