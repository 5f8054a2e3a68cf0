"""Products of fp8 with scales of blocks on wgmma: what the kernel adds up, to the last bit."""

import numpy as np
import numpy.typing as npt
import pytest

from tests.default_suite import ALL
from tests.gpu.ptxsim.ptx.matmuls import Edit, change, drop
from tests.gpu.target.strategies.points import (
    HOPPER,
    WGMMA,
    compiled,
    is_feasible,
    is_noticed,
    large_wgmma,
    require_right,
    wgmma,
)
from tests.support.gpu_point import GpuPoint, feasible_set
from tests.tuning.fakes import present
from tuner.core.matmul import Matmul
from tuner.core.numpy_types import widened
from tuner.core.problem import SCALED_COLUMNS, SCALED_DEPTH, SCALES, Problem
from tuner.gpu.cost_model.untimed import is_serialized
from tuner.gpu.ptxsim.target.cycle_model import main_loop
from tuner.gpu.ptxsim.target.evaluator import simulate_program
from tuner.gpu.target.compiler import Ptxas, locate
from tuner.gpu.target.sass import MachineInstruction, listing_of, read_kernels
from tuner.payload.comparison import compare
from tuner.payload.drawing import draw, draw_base
from tuner.payload.inputs import draw_extremes
from tuner.payload.reference import Inputs
from tuner.space.file.reading import first_rows, load_space_file
from tuner.space.file.yaml import default_space_file

pytestmark = pytest.mark.mlir
MMA_DEPTH = 32  # of K, of one product of 8-bit elements
Floats = npt.NDArray[np.float32]
Knobs = dict[str, int | str]


def scaled(m: int, n: int, k: int, output: str = "", dtype: str = "e4m3") -> Problem:
    return Matmul(m, n, k, dtype, "nt", output=output, scales=SCALES)


def point(problem: Problem, **knobs: int | str) -> GpuPoint:
    return wgmma(problem, **({"block_k": SCALED_DEPTH} | knobs))


def kernel_model(inputs: Inputs) -> Floats:
    """Returns C as the kernel adds it up: sums of 128 of K in f32, multiplied and added to totals in f32."""
    a, b, of_a, of_b = (widened(array).astype(float) for array in inputs.arrays)
    totals = np.zeros((len(a), len(b)), np.float32)
    for block in range(of_a.shape[1]):
        sums = np.zeros(totals.shape, np.float32)
        first = block * SCALED_DEPTH
        for k in range(first, min(first + SCALED_DEPTH, a.shape[1]), MMA_DEPTH):
            step = slice(k, k + MMA_DEPTH)
            sums = (sums + a[:, step] @ b[:, step].T).astype(np.float32)
        of_columns = of_b[:, block].repeat(SCALED_COLUMNS)[: len(b)]
        factors = (of_a[:, block, None] * of_columns).astype(np.float32)
        totals = (factors.astype(float) * sums + totals).astype(np.float32)  # a float64 has all of a product
    return totals


def simulated(one: GpuPoint, inputs: Inputs) -> Floats:
    c = np.full(one.problem.c_shape, np.nan, np.float32)
    simulate_program(compiled(one), inputs.named | {"c": c})
    return c


@pytest.mark.parametrize(
    "one",
    [
        point(scaled(64, 64, 48)),  # less than one scale
        point(scaled(100, 130, 304), block_n=128),
        point(scaled(70, 72, 144, dtype="e5m2")),
        point(scaled(130, 200, 400), block_m=128, block_n=192, consumers=2),
        point(scaled(20, 200, 400), block_m=24, block_n=192, consumers=3),  # swapped operands
    ],
    ids=str,
)
def test_the_kernel_adds_up_what_the_model_does_to_the_last_bit(one: GpuPoint) -> None:
    rng = np.random.default_rng(3)
    inputs = draw(one.problem, draw_base(one.problem, rng), rng)
    np.testing.assert_array_equal(simulated(one, inputs), kernel_model(inputs))


def test_the_largest_numbers_and_scales_are_right() -> None:
    one = point(scaled(64, 130, 256), stages=2)
    inputs = draw_extremes(one.problem, np.random.default_rng(0))
    verdict, text = compare(inputs, simulated(one, inputs))
    assert verdict.max_error <= 1.0, text


RIGHT = (
    point(scaled(1, 72, 144), block_m=8),
    point(scaled(48, 320, 144, "bf16"), block_m=32, block_n=128, consumers=2, cluster="2x1"),
    point(scaled(7, 200, 1040), block_m=8, splits=4),  # the last part has no step of K
    point(scaled(100, 72, 784, "bf16"), splits=2),
    point(scaled(40, 130, 528), block_m=24, splits=2, split_by="last_block"),
    point(scaled(200, 320, 272), block_m=128, block_n=192, consumers=2, stages=3),
    point(scaled(257, 65, 160), block_m=192, consumers=3),
    point(scaled(160, 256, 384, "bf16"), block_n=128, tiles=3, cluster="2x1"),
    point(scaled(192, 200, 400, "bf16"), block_m=128, consumers=2, tiles=4, stores="tma", cluster="1x2"),
    point(scaled(128, 384, 512), block_m=128, block_n=128, consumers=2, stores="exchange", stages=4),
)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("one", RIGHT, ids=str)
def test_partial_blocks_clusters_tiles_and_stores_are_right_without_races(one: GpuPoint) -> None:
    assert is_feasible(one)
    require_right(one, seed=5)


SMALL = point(scaled(60, 130, 400), block_n=128, stages=2)


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("sums are read in flight", drop(r"wgmma\.wait_group\.sync\.aligned 0;")),
        ("scales of the step after", change(r"min\.u32(\s+%r\d+, %r\d+), 3;", r"add.u32\1, 1;")),
        ("scales of the first step in all steps", change(r"min\.u32(\s+%r\d+, %r\d+), 3;", r"min.u32\1, 0;")),
        ("scales of other rows", change(r"or\.b64(\s+%rd\d+, %rd\d+), 8;", r"or.b64\1, 4;")),
        ("scales of no row beyond the last", change(r"min\.u64(\s+%rd\d+, %rd\d+), 59;", r"add.s64\1, 64;")),
        ("sums do not start anew", change(r"setp\.ne\.b32 p, \$?0, 0;", "setp.ne.b32 p, 1, 0;")),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_broken_kernel_of_scaled_sums_is_noticed(name: str, edit: Edit) -> None:
    assert is_noticed(SMALL, edit), name


FIRST: tuple[Knobs, ...] = (
    {"block_m": 128, "block_n": 128, "stages": 6},
    {"block_m": 128, "block_n": 192, "stages": 5},
    {"block_m": 64, "block_n": 128, "stages": 6, "consumers": 1},
)
FEW_ROWS: tuple[Knobs, ...] = (
    {"block_m": 8, "block_n": 128, "stages": 8, "splits": 4},
    {"block_m": 16, "block_n": 128, "stages": 8},
    {"block_m": 32, "block_n": 128, "stages": 8, "cluster": "2x1"},
)
FEW_STEPS = {8: 54, 16: 61, 32: 86}  # rows of a block -> instructions for each 128 of K, of 64 columns
STEPS = {128: 113, 192: 154}  # columns of a block -> instructions for each 128 of K, of 64 rows
SQUARE = scaled(4096, 4096, 4096)


def loop_of(one: GpuPoint, ptxas: Ptxas) -> tuple[MachineInstruction, ...]:
    """Returns the main loop of a feasible point, which must neither spill nor be serialized."""
    assert is_feasible(one)
    assembled = ptxas.assemble(one.program())
    for resources in assembled.resources:
        assert (resources.spilled_bytes, is_serialized(resources)) == (0, False)
    nvdisasm = locate("nvdisasm")
    if nvdisasm is None:
        pytest.skip("needs nvdisasm")
    kernels = {kernel.name: kernel for kernel in read_kernels(listing_of(assembled.binary, nvdisasm.path))}
    kernel = kernels["matmul_kernel"]
    return kernel.code[slice(*present(main_loop(kernel)))]


@pytest.mark.parametrize("knobs", FIRST, ids=str)
def test_large_tiles_spill_nothing_are_not_serialized_and_take_few_instructions(
    knobs: Knobs, ptxas: Ptxas
) -> None:
    loop = loop_of(large_wgmma(SQUARE, block_k=SCALED_DEPTH, **knobs), ptxas)
    columns = int(knobs["block_n"])
    counts = [sum(line.name.startswith(name) for line in loop) for name in ("QGMMA", "FFMA", "LDG")]
    assert counts == [4, columns // 2, 2 + (3 if columns == 192 else 1)]
    assert len(loop) <= STEPS[columns]


@pytest.mark.parametrize("knobs", FEW_ROWS, ids=str)
def test_few_rows_have_scales_of_each_row_of_c_and_one_of_all_columns(knobs: Knobs, ptxas: Ptxas) -> None:
    rows = int(knobs["block_m"])
    one = large_wgmma(scaled(2 * rows, 4096, 7168), **({"block_k": SCALED_DEPTH, "group": 1} | knobs))
    loop = loop_of(one, ptxas)
    counts = [sum(line.name.startswith(name) for line in loop) for name in ("QGMMA", "FFMA", "LDG")]
    assert counts == [4, rows // 2, rows // 4 + 1]
    assert len(loop) <= FEW_STEPS[rows]


def test_a_search_begins_with_blocks_of_128_and_of_192_columns() -> None:
    feasible = feasible_set(SQUARE, WGMMA, HOPPER)
    rows = first_rows(load_space_file(default_space_file()), feasible)
    blocks = [dict(feasible.candidate(row).choices)["block_n"] for row in rows]
    assert {128, 192} <= set(blocks)
    assert len(rows) >= 6


@pytest.mark.drawn(ALL)
def test_configurations_without_a_scale_for_each_stage_are_not_feasible() -> None:
    feasible = feasible_set(SQUARE, WGMMA, HOPPER)
    knobs = feasible.candidate(int(feasible.rows // 2)).choices
    assert dict(knobs)["block_k"] == SCALED_DEPTH
    for other in ({"block_k": 64}, {"block_m": 32}, {"block_n": 256}):
        assert not is_feasible(large_wgmma(SQUARE, **({"block_k": SCALED_DEPTH, "block_n": 128} | other)))
