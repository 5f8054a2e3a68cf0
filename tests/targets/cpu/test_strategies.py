"""Every shipped strategy for everything the default search space allows here: compiled, run, right.

Kernels run in a child process, on arrays with guard bands and on arrays beside memory that cannot be touched.
``python -m benchmarks.fuzz_cpu`` does the same for as many points as one wants.
"""

import ctypes
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as draw

from tests.epilogues import EPILOGUES
from tests.support.fuzzing.cpu_points import CpuPoint, CpuPoints, KernelKind, emulated_machine
from tests.support.fuzzing.kernel_check import KernelCheck, fenced
from tuner.core.candidate import Candidate, Value
from tuner.core.problem import LAYOUTS
from tuner.core.problem_classes import MatmulProblem
from tuner.core.records import Verdict
from tuner.runtime.cpu.host import describe_machine
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator

pytestmark = pytest.mark.mlir
POINTS = CpuPoints(describe_machine())
# other types than f32 on one thread: threads share out panels, whatever is in them
ALL_KINDS = [kind for threads in (1, 2) for kind in POINTS.kinds(threads)]
KINDS = [
    kind for kind in ALL_KINDS if kind.epilogue in EPILOGUES and (kind.threads == 1 or kind.dtype == "f32")
]
OTHER_EPILOGUES = [
    kind
    for kind in ALL_KINDS
    if kind.epilogue not in EPILOGUES and (kind.layout, kind.threads, kind.output) == ("nn", 1, "")
]
OF_ONE_THREAD = [kind for kind in KINDS if kind.threads == 1 and kind.layout == "nn"]
Checks = dict[int, KernelCheck]  # by the number of threads
THIN = ((1, 1, 1), (1, 97, 64), (97, 1, 64), (97, 64, 1), (1, 1, 130), (130, 1, 1), (1, 130, 1), (2, 17, 3))


@pytest.fixture(scope="module")
def checks() -> Iterator[Checks]:
    made = {threads: KernelCheck(threads) for threads in (1, 2)}
    yield made
    for check in made.values():
        check.close()


def rng_of(kind: KernelKind, number: int = 0) -> np.random.Generator:
    """Seeded by the kind: another kind in the file changes no point of this one."""
    return np.random.default_rng((zlib.crc32(repr(kind).encode()), number))


def require_right(point: CpuPoint, checks: Checks) -> None:
    outcome, _ = checks[point.threads].check(point.problem, POINTS.bind(point), seed=7)
    assert isinstance(outcome, Verdict), f"{point.text}: {outcome}"
    assert outcome.elements == point.problem.rows * point.problem.sizes[1]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, vars(kind).values())))
def test_random_points_on_random_shapes_are_right(kind: KernelKind, checks: Checks) -> None:
    require_right(POINTS.draw(kind, rng_of(kind)), checks)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("kind", OTHER_EPILOGUES, ids=lambda kind: "-".join(map(str, vars(kind).values())))
def test_each_strategy_applies_each_epilogue_of_the_table(kind: KernelKind, checks: Checks) -> None:
    require_right(POINTS.draw(kind, rng_of(kind)), checks)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", OF_ONE_THREAD, ids=repr)
def test_the_thinnest_shapes_are_right_or_not_allowed(kind: KernelKind, checks: Checks) -> None:
    epilogues = [each for each in EPILOGUES if replace(kind, epilogue=each) in KINDS]
    for number, sizes in enumerate(THIN):
        if epilogues[number % len(epilogues)] != kind.epilogue:
            continue  # each shape with one of the epilogues
        problem = kind.problem(sizes)
        try:
            candidate = POINTS.draw_again(kind, problem, rng_of(kind, number))
        except LookupError:
            continue
        require_right(CpuPoint(problem, kind.threads, candidate), checks)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("epilogue", ["none", "bias_relu", "residual", "bias_residual"])
@pytest.mark.parametrize("loop_order", ["ij", "ji"])
@pytest.mark.parametrize("block_k", [0, 128])
def test_tiles_of_c_are_prefetched(block_k: int, loop_order: str, epilogue: str, checks: Checks) -> None:
    """Before they are read, where K is cut; else before they are written."""
    values: dict[str, Value] = dict.fromkeys(("block_m", "block_n", "pack_a", "prefetch"), 0)
    values |= {"tile_m": 4, "tile_n": 32, "block_k": block_k, "unroll_k": 1}
    values |= {"loop_order": loop_order, "pack_order": "rows", "split": "none"}
    problem = MatmulProblem("matmul", (33, 77, 290), "f32", "nn", epilogue)
    knobs = (values | {"prefetch_c": each} for each in (0, 1))
    without, with_prefetch = (CpuPoint(problem, 1, Candidate.of("matmul_cpu_packed", one)) for one in knobs)
    assert "tuner.prefetch_reads" not in POINTS.bind(without).text
    assert f"argument = {len(problem.arguments) - 1} : i64" in POINTS.bind(with_prefetch).text
    require_right(with_prefetch, checks)


@pytest.mark.parametrize(("tile_m", "unroll_k", "loop_order"), [(8, 4, "ji"), (12, 1, "ij"), (4, 2, "ji")])
def test_sums_begin_in_registers_and_are_stored_once(tile_m: int, unroll_k: int, loop_order: str) -> None:
    """Zeros that are stored to C first, and sums that are loaded from it, cost 40 % of 128x128x128."""
    values: dict[str, Value] = dict.fromkeys(
        ("block_m", "block_n", "block_k", "prefetch", "lanes_along_k"), 0
    )
    values |= {
        "tile_m": tile_m,
        "tile_n": 32,
        "unroll_k": unroll_k,
        "loop_order": loop_order,
        "split": "none",
    }
    problem = MatmulProblem("matmul", (96, 128, 64), "f32")
    script = POINTS.bind(CpuPoint(problem, 1, Candidate.of("matmul_cpu_direct", values)))
    code = CpuCompiler().compile(problem, script).code.text
    assert code.count("llvm.store") == tile_m


AVX2 = CpuPoints(replace(describe_machine(), isa="avx2"))
TAILS = ((100, 100, 100), (33, 33, 33), (50, 50, 50), (17, 72, 130), (7, 35, 5), (1, 19, 3))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("points", [POINTS, AVX2], ids=["here", "avx2"])
@pytest.mark.parametrize("layout", ["nn", "nt"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(("sizes", "threads"), [*((each, 1) for each in TAILS), (TAILS[0], 2)], ids=str)
def test_the_last_columns_are_right_with_steps_of_k_in_the_lanes(
    sizes: tuple[int, int, int], threads: int, dtype: str, layout: str, points: CpuPoints, checks: Checks
) -> None:
    values: dict[str, Value] = dict.fromkeys(("block_m", "block_n", "block_k", "prefetch"), 0)
    values |= {"tile_m": min(4, sizes[0]), "tile_n": 32, "unroll_k": 1, "loop_order": "ij"}
    values |= {"lanes_along_k": 1, "split": "m" if threads > 1 else "none"}
    candidate = Candidate.of("matmul_cpu_direct", values)
    for epilogue in EPILOGUES:
        point = CpuPoint(MatmulProblem("matmul", sizes, dtype, layout, epilogue), threads, candidate)
        script = points.bind(point)
        lanes = (32 if points is AVX2 else describe_machine().vector_bytes) // (4 if dtype == "f32" else 8)
        has_tail = sizes[1] > lanes and 0 < sizes[1] % lanes <= lanes // 2
        assert ("tuner.lanes_along_k" in script.text) == has_tail
        outcome, _ = checks[threads].check(point.problem, script, seed=7)
        assert isinstance(outcome, Verdict), f"{point.text}: {outcome}"


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "i8"])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
@pytest.mark.parametrize("epilogue", ["none", "bias_relu"])
def test_odd_sizes_of_every_kind_are_done_by_some_strategy(dtype: str, layout: str, epilogue: str) -> None:
    problem = MatmulProblem("matmul", (33, 77, 41), dtype, layout, epilogue)

    def allows(kind: KernelKind) -> bool:  # some strategies are for thin shapes only, say
        try:
            POINTS.draw_again(kind, problem, rng_of(kind))
        except LookupError:
            return False
        return True

    strategies = dict.fromkeys(kind.strategy for kind in KINDS)
    kinds = (KernelKind(strategy, dtype, layout, epilogue, 1) for strategy in strategies)
    assert any(kind in KINDS and allows(kind) for kind in kinds)


@pytest.mark.slow
@pytest.mark.parametrize("is_at_end", [True, False])
def test_the_fence_next_to_an_array_is_really_there(is_at_end: bool) -> None:
    """Else a kernel that reads outside its arrays would pass: the kernel itself says what it may access."""
    array = fenced(np.arange(10, dtype=np.float32), is_at_end)
    assert np.array_equal(array, np.arange(10))
    outside = array.ctypes.data + (array.nbytes if is_at_end else -1)
    ranges = re.findall(r"(?m)^([0-9a-f]+)-([0-9a-f]+) (\S+)", Path("/proc/self/maps").read_text())
    assert [mode for start, end, mode in ranges if int(start, 16) <= outside < int(end, 16)] == ["---p"]
    assert ctypes.c_float.from_address(array.ctypes.data).value == 0.0


# Strategies for AMX and VNNI on any processor: right with tiles and dot products as vectors.
EMULATED, COMPILER, EVALUATOR = CpuPoints(emulated_machine()), CpuCompiler(emulates=True), CpuEvaluator(1)
SIZES = draw.integers(1, 300)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "dtype", "output"),
    [
        *(
            ("matmul_cpu_amx", *types)
            for types in (("bf16", ""), ("bf16", "bf16"), ("i8", ""), ("bf16x6", ""))
        ),
        ("matmul_cpu_vnni", "i8", ""),
    ],
)
@settings(max_examples=5)
@given(
    sizes=draw.tuples(SIZES, SIZES, SIZES),
    layout=draw.sampled_from(LAYOUTS),
    epilogue=draw.sampled_from(EPILOGUES),
    seed=draw.integers(0, 2**32 - 1),
)
def test_any_size_layout_and_epilogue_is_right(
    strategy: str, dtype: str, output: str, sizes: tuple[int, int, int], layout: str, epilogue: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    kind = KernelKind(strategy, dtype, layout, epilogue, 1, output)
    problem = kind.problem(sizes)
    point = CpuPoint(problem, 1, EMULATED.draw_again(kind, problem, rng))
    loaded = EVALUATOR.load(problem, COMPILER.compile(problem, EMULATED.bind(point)))
    verdict = EVALUATOR.verify(problem, loaded, rng)
    assert verdict.elements == sizes[0] * sizes[1]
    assert verdict.max_error == 0.0 if dtype == "i8" else verdict.max_error <= 1.0, point.text
