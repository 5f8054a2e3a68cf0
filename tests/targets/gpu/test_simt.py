"""The CUDA-core strategy: right, without races and bank conflicts on the PTX simulator; why it is so."""

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest

from benchmarks.gpu_check.gpu_point import GpuPoint, feasible_set
from tuner.core.candidate import Candidate
from tuner.core.chips import chip_of
from tuner.core.errors import CandidateError, Stage
from tuner.core.kernel_program import buffers_of
from tuner.core.problem import LAYOUTS, Matmul, Problem
from tuner.cost_model.launch_limits import require_launchable
from tuner.mlir import interpreter
from tuner.mlir.bindings import ir
from tuner.mlir.gpu.lowering import outline
from tuner.mlir.rewrite.walking import walk
from tuner.payload.gpu import gpu_payload_mlir, views_in
from tuner.payload.reference import draw, draw_base, output_dtype
from tuner.simulator.ptx.launch import run_program
from tuner.targets.gpu.ptxas import find_ptxas

pytestmark = pytest.mark.mlir

STRATEGY = "matmul_gpu_simt"
LARGE: dict[str, Any] = {
    **dict.fromkeys(("block_m", "block_n"), 128),
    **dict.fromkeys(("thread_m", "thread_n", "unroll_k", "vector_a", "vector_b"), 4),
    **dict.fromkeys(("split_m", "split_n", "depth"), 2),
    "block_k": 16,
    "pad_bytes": 0,
    "min_blocks": 0,
    "prefetch": 0,
    "group": 1,
}
SMALL = LARGE | {"block_m": 32, "block_n": 64, "block_k": 8, "split_m": 1}
OF_F64 = {"thread_m": 2, "thread_n": 2, "unroll_k": 2}  # vectors of 16 bytes
OF_NT = {"thread_n": 1, "split_n": 8, "pad_bytes": 16}  # neighbours read neighbouring rows of B
KINDS = list(itertools.product(("f32", "f64", "i8"), LAYOUTS))
SEED_CASE = Matmul(5376, 2048, 5376)


def point(problem: Problem, chip: str = "sm_90", **knobs: Any) -> GpuPoint:
    """Returns a small point with copies as wide as the space allows."""
    allowed = feasible_set(problem, STRATEGY, chip)
    for vector_a, vector_b in itertools.product((4, 2, 1), repeat=2):
        candidate = Candidate.of(STRATEGY, SMALL | knobs | {"vector_a": vector_a, "vector_b": vector_b})
        if allowed.row_of(candidate) is not None:
            return GpuPoint(problem, candidate, chip)
    raise LookupError(f"{problem.key}: the space allows no point with {knobs}")


POINTS: tuple[tuple[Problem, str, dict[str, Any]], ...] = (
    (Matmul(64, 64, 40), "sm_90", {}),
    (Matmul(67, 130, 50, epilogue="bias_relu"), "sm_80", {"depth": 4}),
    (Matmul(97, 130, 91), "sm_90", {"block_m": 64, "depth": 1}),
    (Matmul(97, 33, 91), "sm_90", {"depth": 0, "block_n": 32, "split_n": 1}),
    (Matmul(300, 70, 16), "sm_90", {"depth": 1, "group": 8}),
    (Matmul(65, 99, 44, layout="tn"), "sm_90", {"block_m": 64, "thread_m": 8, "unroll_k": 1}),
    (Matmul(70, 72, 44, layout="nt", epilogue="bias_relu"), "sm_90", OF_NT),
    (Matmul(61, 66, 33, "f64", epilogue="bias_relu"), "sm_90", {**OF_F64, "split_m": 2, "block_n": 32}),
    (Matmul(64, 66, 34, "f64", "nt"), "sm_90", {**OF_F64, **OF_NT, "split_n": 4, "split_m": 2}),
    (Matmul(31, 65, 40, "f64", "tn"), "sm_90", {**OF_F64, "depth": 3, "split_m": 2}),
    (Matmul(1, 1, 1), "sm_90", {"depth": 1, "block_n": 32, "split_n": 1}),
    (Matmul(64, 64, 40, "i8", epilogue="bias_relu"), "sm_80", {"depth": 3}),
    (Matmul(64, 128, 48, "i8", "nt"), "sm_90", OF_NT),
    (Matmul(67, 70, 44, "i8", "tn"), "sm_90", {"depth": 0}),
)


@pytest.mark.parametrize(("problem", "chip", "knobs"), POINTS, ids=str)
def test_a_point_is_right_and_free_of_races(problem: Problem, chip: str, knobs: dict[str, Any]) -> None:
    require_right(point(problem, chip, **knobs))


@pytest.mark.parametrize(("dtype", "layout"), KINDS)
def test_a_random_point_is_right_and_free_of_races(dtype: str, layout: str) -> None:
    rng = np.random.default_rng([ord(letter) for letter in dtype + layout])
    m, n, k = (int(size) for size in rng.integers(1, 120, 3))
    problem = Matmul(m, n, k, dtype, layout, str(rng.choice(["none", "bias_relu"])))
    allowed = feasible_set(problem, STRATEGY)
    require_right(GpuPoint(problem, allowed.candidate(int(rng.integers(allowed.rows)))))


def require_right(one: GpuPoint) -> None:
    program = one.program()
    assert program.launches[0].dynamic_shared_bytes == shared_bytes(one)
    verdict, worst, simulations = one.run(program)
    assert verdict.max_error <= 1.0, worst
    assert [simulation.hazards for simulation in simulations] == [()]


def shared_bytes(one: GpuPoint) -> int:
    """Returns the stages of both tiles, the larger first, each from a multiple of 128."""
    knobs: dict[str, Any] = dict(one.candidate.choices)
    m, n, k = (knobs[f"block_{letter}"] for letter in "mnk")
    a = (k, m) if one.problem.layout == "tn" else (m, k)
    b = (n, k) if one.problem.layout == "nt" else (k, n)
    less, more = sorted(
        (knobs["depth"] + 1) * _tile_bytes(*shape, one.problem.input_bytes, knobs["pad_bytes"])
        for shape in (a, b)
    )
    return int(-(-more // 128) * 128 + less)


def _tile_bytes(rows: int, columns: int, element_bytes: int, gap_bytes: int) -> int:
    """Returns the bytes of a tile with a gap behind as many rows as are a multiple of 128 bytes.

    Of single bytes at least two rows lie together.
    """
    row_bytes = columns * element_bytes
    together = max(128 // math.gcd(128, row_bytes), 2 if element_bytes == 1 else 1)
    return rows // together * (together * row_bytes + gap_bytes)


@pytest.mark.parametrize(
    ("problem", "knobs"),
    [
        *((Matmul(128, 128, 64), {"depth": depth}) for depth in range(5)),
        (Matmul(128, 128, 64, layout="tn"), {}),
        (Matmul(128, 128, 64, layout="nt"), OF_NT),
        (Matmul(64, 128, 64, "f64"), {**OF_F64, "vector_a": 2, "vector_b": 2, "block_m": 64, "split_n": 4}),
    ],
    ids=str,
)
def test_the_large_tiles_have_no_bank_conflicts_and_no_spills(
    problem: Problem, knobs: dict[str, Any]
) -> None:
    one = GpuPoint(problem, Candidate.of(STRATEGY, LARGE | knobs))
    program = one.program()
    verdict, worst, (simulation,) = one.run(program)
    assert verdict.max_error <= 1.0, worst
    assert simulation.hazards == ()
    reads = [each for each in simulation.conflicts if each.instruction.startswith("ld.shared")]
    assert {each.ratio for each in reads} == {1.0}
    assert simulation.conflict_ratio == 1.0
    ptxas = find_ptxas()
    if ptxas is not None:
        (resources,) = ptxas.assemble(program).resources
        assert (resources.spill_store_bytes, resources.spill_load_bytes) == (0, 0)
        assert resources.registers <= 255


@pytest.mark.parametrize("group", [1, 8])
def test_the_main_loop_is_multiply_adds_fed_by_wide_loads_and_cp_async(group: int) -> None:
    one = GpuPoint(Matmul(4096, 4096, 4096), Candidate.of(STRATEGY, LARGE | {"group": group}))
    ptx = one.program().ptx
    start = ptx.rindex("\n$", 0, ptx.index("ld.shared"))
    loop = ptx[start : ptx.index("st.global")]
    assert loop.count("fma.rn.f32") == 8 * 8 * 16
    assert loop.count("ld.shared.v4") == (8 + 4 * 2) * 4  # of A along K, of B along N, for four of K
    assert "ld.global" not in ptx
    copies = re.findall(r"cp\.async\.cg\.shared\.global[^;]*, 16", ptx)
    assert len(copies) == 4 * (2 + 1)  # before the loop and in it
    assert ptx.count("st.global.v4") == 16


def test_the_seed_case_takes_dynamic_shared_memory_and_is_right_where_it_is_sampled() -> None:
    tile: dict[str, Any] = {
        "block_m": 64,
        "block_n": 64,
        "block_k": 32,
        "split_m": 1,
        "split_n": 1,
        "depth": 4,
    }
    one = point(SEED_CASE, **tile)
    host = host_text(one)
    (size,) = re.findall(r"gpu\.launch_func[^>]*dynamic_shared_memory_size (%\w+)", host)
    assert f"{size} = arith.constant 81920 : i32" in host
    program = one.program()
    assert program.launches[0].dynamic_shared_bytes == 81920
    ptxas = find_ptxas()
    if ptxas is not None:
        program = ptxas.assemble(program)
        require_launchable(program)
        assert program.resources[0].spill_load_bytes == 0
    rng = np.random.default_rng(3)
    inputs = draw(SEED_CASE, draw_base(SEED_CASE, rng), rng)
    c = np.full(SEED_CASE.sizes[:2], np.nan, output_dtype(SEED_CASE))
    blocks = ((31, 83, 0), (15, 41, 0))  # the last and one in the interior; x along n
    (simulation,) = run_program(program, dict(zip("ab", inputs.arrays, strict=True)) | {"c": c}, {0: blocks})
    assert simulation.hazards == ()
    assert simulation.conflict_ratio == 1.0
    for x, y, _ in blocks:
        rows, columns = slice(y * 64, y * 64 + 64), slice(x * 64, x * 64 + 64)
        expected, tolerance = inputs.tile(rows, columns)
        assert (np.abs(c[rows, columns] - expected) <= tolerance).all()
    assert np.count_nonzero(~np.isnan(c)) == len(blocks) * 64 * 64


def host_text(one: GpuPoint) -> str:
    """Returns the host function after outlining."""
    text = one.script()
    with interpreter.new_context(), ir.Location.unknown():
        module = interpreter.parse(gpu_payload_mlir(one.problem, views_in(text, one.problem)), "payload")
        interpreter.apply_script(module, interpreter.parse(text, "script"))
        outline(module, chip_of(one.chip), buffers_of(one.problem))
        return "".join(str(function) for function in walk(module, "func.func"))


@pytest.mark.parametrize("depth", [0, 2])
def test_a_missing_barrier_is_a_race(depth: int) -> None:
    one = point(Matmul(64, 64, 64), depth=depth)
    lines = [line for line in one.script().splitlines() if "tuner.insert_barriers" not in line]
    _, _, simulations = one.run(one.program("\n".join(lines)))
    assert simulations[0].races


def test_plain_copies_need_a_barrier_at_the_top_too() -> None:
    one = point(Matmul(64, 64, 64), depth=0)
    script = one.script()
    assert "loop_top = 1" in script
    _, _, simulations = one.run(one.program(script.replace("loop_top = 1", "loop_top = 0")))
    assert simulations[0].races


def test_a_buffer_less_than_depth_and_one_is_a_race() -> None:
    """Why the script makes depth + 1 buffers: with fewer, a tile is overwritten while it is read."""
    one = point(Matmul(64, 64, 64), depth=2)
    script = one.script()
    assert "factor = 3 : i64" in script
    _, _, simulations = one.run(one.program(script.replace("factor = 3 : i64", "factor = 2 : i64")))
    assert simulations[0].races


def test_loops_that_are_left_cannot_be_pipelined() -> None:
    """Why the script has tuner.unroll_inner_loops."""
    one = point(Matmul(64, 64, 64), depth=2)
    lines = [line for line in one.script().splitlines() if "tuner.unroll_inner_loops" not in line]
    with pytest.raises(CandidateError) as caught:
        one.program("\n".join(lines))
    assert caught.value.stage == Stage.COMPILE


def test_unpadded_rows_of_a_transposed_b_collide() -> None:
    one = GpuPoint(
        Matmul(128, 128, 32, layout="nt"), Candidate.of(STRATEGY, LARGE | OF_NT | {"pad_bytes": 0})
    )
    _, _, (simulation,) = one.run(one.program())
    assert simulation.conflict_ratio > 1.5


@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (1, 97, 64), (97, 1, 3), (33, 70, 2), (4096, 1, 4096), (193, 257, 91)]
)
@pytest.mark.parametrize(("dtype", "layout"), [("f32", "nt"), ("f64", "tn"), ("i8", "nn")])
def test_every_shape_has_some_point(sizes: tuple[int, int, int], dtype: str, layout: str) -> None:
    assert feasible_set(Matmul(*sizes, dtype, layout), STRATEGY).rows > 0


def test_a_chip_with_less_shared_memory_allows_less() -> None:
    problem = Matmul(4096, 4096, 4096, layout="tn")
    rows = [feasible_set(problem, STRATEGY, chip).rows for chip in ("sm_90", "sm_80", "sm_86")]
    assert rows == sorted(rows, reverse=True)
    assert len(set(rows)) == 3


@pytest.mark.parametrize(
    ("knobs", "why"),
    [
        ({"split_m": 4, "block_m": 96, "thread_m": 8}, "a block that is no whole tiles"),
        ({"block_m": 256, "block_n": 256, "split_m": 1}, "more than 1024 threads"),
        ({"split_m": 4, "split_n": 8}, "a body of 8192 multiply-adds"),
        ({"block_k": 8, "block_m": 192, "block_n": 128}, "vectors that do not go round the threads"),
        ({"vector_a": 1}, "narrower copies than rows allow"),
        (
            {"depth": 4, "block_m": 256, "block_k": 32, "split_m": 4},
            "more shared memory than a block may have",
        ),
    ],
)
def test_what_cannot_work_or_says_nothing_new_is_not_in_the_space(knobs: dict[str, Any], why: str) -> None:
    allowed = feasible_set(Matmul(512, 512, 512), STRATEGY)
    assert allowed.row_of(Candidate.of(STRATEGY, LARGE)) is not None
    assert allowed.row_of(Candidate.of(STRATEGY, LARGE | knobs)) is None, why


@pytest.mark.parametrize(
    ("knobs", "why"),
    [
        ({"block_m": 256, "block_n": 256}, "more than 512 threads"),
        ({"thread_n": 2}, "stores of half a vector"),
        ({"pad_bytes": 16}, "nothing reads across rows"),
        ({"unroll_k": 1}, "a quarter of a vector of A"),
    ],
)
def test_what_is_believed_slow_comes_last(knobs: dict[str, Any], why: str) -> None:
    allowed = feasible_set(Matmul(512, 512, 512), STRATEGY)
    preferred, late = (allowed.row_of(Candidate.of(STRATEGY, LARGE | each)) for each in ({}, knobs))
    assert preferred is not None
    assert late is not None, why
    assert allowed.is_preferred[[preferred, late]].tolist() == [True, False], why
