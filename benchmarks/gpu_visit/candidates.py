"""The candidates that a visit times: problems and configurations, section by section."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tests.support.gpu_point import GpuPoint, feasible_set
from tests.support.gpu_points import CUDA_CORES, HOPPER, TENSOR_CORES, USUAL
from tuner.core.candidate import Candidate, Value
from tuner.core.gpu import USUAL_MULTIPROCESSORS
from tuner.core.matmul import GroupedMatmul, Matmul
from tuner.core.problem import SCALES, Problem
from tuner.space.file.reading import first_rows, load_space_file
from tuner.space.file.yaml import default_space_file

SQUARE = (4096, 4096, 4096)
FOUNDING = (5376, 2048, 5376)
RANKED = (2048, 2048, 2048)
WEIGHTS = ((4096, 4096), (14336, 4096), (4096, 14336))  # (n, k) of layers of language models
TOKENS = (1, 16, 64)
EIGHT_BITS = ("i8", "e4m3")
TF32_CANDIDATES = 10
THREE_PRODUCTS_CANDIDATES = 8
SPLIT_FRAGMENTS_CANDIDATES = 2
SIX_PRODUCTS_CANDIDATES = 6
EIGHT_BIT_CANDIDATES = 12
SCALED_CANDIDATES = 9
REGRESSION_CANDIDATES = 3
DECODE_CANDIDATES = 5
RANKED_POINTS = 20
RANKING_SEED = 1  # the GPU check's points are of seed 0
# f32, the most promising first: products in rows, and where A has k innermost its transposition. 16 rows and
# 8 columns of a thread read the fewest registers; blocks of 96 rows fill the last wave of 5376.
ROWS: dict[str, Value] = {"order_products": 1, "group": 8}
TRANSPOSED: dict[str, Value] = {"transpose": 1, "vector_a": 1, "pad_bytes": 16}
F32_TILES: tuple[dict[str, Value], ...] = (
    {"block_m": 128, "block_n": 256, "split_m": 4},
    {"block_m": 256, "block_n": 128, "split_m": 4},
    {"block_m": 96, "block_n": 128, "split_m": 3},
    {"block_m": 64, "block_n": 256, "split_m": 4},
    {"block_m": 128, "block_n": 256, "split_m": 4, "depth": 1},
    {"block_m": 128, "block_n": 128, "split_m": 4},
    {"block_m": 128, "block_n": 256, "split_m": 4, "depth": 3},
    {"block_m": 128, "block_n": 128},
    {"block_m": 256, "block_n": 128, "split_m": 4, "depth": 3},
    {"block_m": 64, "block_n": 128, "split_m": 4},
    {"block_m": 128, "block_n": 128, "depth": 4},
    {"block_m": 64, "block_n": 64, "depth": 3},
    {"block_m": 128, "block_n": 256, "thread_m": 8},
    {"block_m": 96, "block_n": 128, "split_m": 3, "depth": 3},
    {"block_m": 128, "block_n": 256, "split_m": 4, "group": 1},
)
F32_PAIRED = 3  # after so many of these: one tile with either knob alone, and without both
F32_TN = 9  # as many of these for tn, where they are allowed

# Few rows: swapped operands and many stages, with parts of K for every multiprocessor to read weights; of
# 64 rows blocks of both forms. Larger blocks come first: they are not allowed for fewer rows. The block that
# is last adds the parts; once a second kernel does, to compare.
LAST: dict[str, Value] = {"split_by": "last_block"}
DECODE_BLOCKS: tuple[dict[str, Value], ...] = (
    LAST | {"block_m": 64, "block_n": 64, "stages": 8, "consumers": 1, "splits": 2},
    LAST | {"block_m": 64, "block_n": 128, "stages": 8, "consumers": 1, "splits": 4},
    LAST | {"block_m": 32, "block_n": 128, "stages": 8, "cluster": "2x1", "splits": 4},
    {"block_m": 32, "block_n": 128, "stages": 8, "cluster": "2x1", "splits": 4},
    {"block_m": 32, "block_n": 128, "stages": 8, "cluster": "2x1", "splits": 1},
)
DECODE_SWAPPED: tuple[dict[str, Value], ...] = (
    LAST | {"block_n": 128, "stages": 8, "splits": 4},
    {"block_n": 128, "stages": 8, "splits": 4},
    {"block_n": 128, "stages": 8, "splits": 1},
    LAST | {"block_n": 64, "stages": 11, "consumers": 1, "splits": 2},
    {"block_n": 64, "stages": 11, "consumers": 1, "splits": 1},
)
DECODE_ROWS = (16, 8)
# Experts of language models: 8 with 512 rows each on average, and 64 with 64
EXPERTS = (GroupedMatmul(8, 4096, 4096, 4096, layout="nt"), GroupedMatmul(64, 4096, 1408, 2048, layout="nt"))
EXPERTS_CANDIDATES = 3


@dataclass(frozen=True)
class PlannedCandidate:
    """A configuration that one section times."""

    section: str
    point: GpuPoint

    @property
    def name(self) -> str:
        """Returns the name of the check."""
        return f"{self.point.problem.key} {self.point.candidate.text}"


def planned(chip: str, *, is_quick: bool = False) -> tuple[PlannedCandidate, ...]:
    """Returns the candidates of all sections, in the order in which they are timed.

    ``is_quick``: two of each section and problem's type, for tests.
    """
    sections = {
        "f32": _f32(chip),
        "tf32": _tf32(chip),
        "f32_by_tensor_cores": _f32_by_tensor_cores(chip),
        "eight_bits": _eight_bits(chip),
        "decode": _decode(chip),
        "experts": _experts(chip),
        "regression": _regression(chip),
        "ranking": _ranking(chip),
    }
    found = []
    for section, points in sections.items():
        chosen = itertools.islice(points, 2) if is_quick else points
        found += [PlannedCandidate(section, point) for point in chosen]
    return tuple(dict.fromkeys(found))


def first_points(problem: Problem, strategy: str, chip: str) -> tuple[GpuPoint, ...]:
    """Returns what a search would try first."""
    feasible = feasible_set(problem, strategy, chip)
    rows = first_rows(load_space_file(default_space_file()), feasible)
    return tuple(GpuPoint(problem, feasible.candidate(row), chip) for row in rows)


def _f32(chip: str) -> Iterator[GpuPoint]:
    """Yields each tile on both shapes, so that what is cut off is the least promising of both."""
    tile = F32_TILES[0] | {"group": 8}
    pairs = [TRANSPOSED, ROWS, {}]  # next to ROWS and TRANSPOSED together
    for number, knobs in enumerate(F32_TILES):
        yield from _on_both_shapes("nn", ROWS | TRANSPOSED | knobs, chip)
        if not number:
            yield from _balanced(chip)
        if number < F32_TN:
            yield from _on_both_shapes("tn", ROWS | knobs, chip)
        if number == F32_PAIRED:
            for pair in pairs:
                yield from _on_both_shapes("nn", tile | pair, chip)
            yield from _on_both_shapes("tn", tile, chip)
            yield from _on_both_shapes("nt", ROWS | TRANSPOSED | tile | {"vector_b": 1}, chip)


def _balanced(chip: str) -> Iterator[GpuPoint]:
    """Yields tiles whose last wave is shared out along K, at the shape where it is half empty."""
    for block_m, block_n, split_m in ((128, 256, 4), (256, 128, 4), (128, 128, 2)):
        knobs: dict[str, Value] = {"block_m": block_m, "block_n": block_n, "split_m": split_m}
        knobs["tail_splits"] = 7
        candidate = Candidate.of(CUDA_CORES, USUAL[CUDA_CORES] | ROWS | TRANSPOSED | knobs)
        yield GpuPoint(Matmul(*FOUNDING), candidate, chip, USUAL_MULTIPROCESSORS[chip])


def _on_both_shapes(layout: str, knobs: dict[str, Value], chip: str) -> Iterator[GpuPoint]:
    candidate = Candidate.of(CUDA_CORES, USUAL[CUDA_CORES] | knobs)
    for sizes in (SQUARE, FOUNDING):
        yield from _allowed(Matmul(*sizes, layout=layout), (candidate,), chip)


def _tf32(chip: str) -> Iterator[GpuPoint]:
    """Yields wgmma, f16's winner first, its sides exchanged for nn and tn; nn on mma.sync too."""
    for layout, configurations in (("tn", _tf32_nn()), ("nn", _tf32_nn()), ("nt", _tf32_nt())):
        problem = Matmul(*SQUARE, "tf32", layout)
        near = (Candidate.of(HOPPER, USUAL[HOPPER] | {"block_k": 32} | knobs) for knobs in configurations)
        points = dict.fromkeys((*first_points(problem, HOPPER, chip), *_allowed(problem, near, chip)))
        yield from itertools.islice(points, TF32_CANDIDATES)
    yield from first_points(Matmul(*SQUARE, "tf32"), TENSOR_CORES, chip)[:1]


def _tf32_nn() -> Iterator[dict[str, Value]]:
    """Yields blocks whose operands change places, so the columns are divided between the consumers."""
    exchanged: dict[str, Value] = {"block_m": 256, "block_n": 128, "group": 16, "bands": "columns"}
    for cluster, tiles in itertools.product(("1x2", "2x1"), (4, 2, 1)):
        yield exchanged | {"cluster": cluster, "tiles": tiles}
    yield exchanged | {"cluster": "1x2", "tiles": 4, "group": 8}
    yield exchanged | {"cluster": "1x2", "tiles": 4, "bands": "rows"}
    yield exchanged | {"cluster": "1x2", "tiles": 4, "stages": 3}
    yield exchanged | {"cluster": "1x2", "tiles": 4, "block_m": 192, "stages": 5}
    yield exchanged | {"cluster": "2x1", "tiles": 4, "block_m": 128, "block_n": 256}  # two tiles of 64 rows


def _tf32_nt() -> Iterator[dict[str, Value]]:
    for stages, cluster, tiles in itertools.product((4, 3), ("2x1", "1x2"), (1, 2, 4)):
        knobs: dict[str, Value] = {"stages": stages, "cluster": cluster, "tiles": tiles}
        yield knobs | {"stores": "exchange", "group": 16}


def _f32_by_tensor_cores(chip: str) -> Iterator[GpuPoint]:
    """Yields six products of bf16, then three of tf32: in blocks of 128x128, as threads hold totals as well.

    On mma.sync both operands are split in registers, with no kernel before.
    """
    for sizes in (SQUARE, FOUNDING):
        yield from _six_products(Matmul(*sizes, "bf16x6"), chip)
    block: dict[str, Value] = {"block_m": 128, "block_n": 128, "block_k": 32}
    variants = [
        block | {"cluster": cluster, "tiles": tiles, "bands": "columns"}
        for cluster, tiles in itertools.product(("1x2", "2x1", "1x1"), (8, 4, 1))
    ]
    variants.append(block | {"cluster": "1x2", "tiles": 8})
    variants.append(block | {"cluster": "1x2", "tiles": 8, "stages": 3})
    variants.append(block | {"block_m": 64, "cluster": "1x2", "stages": 5})
    for sizes, layout in ((SQUARE, "nt"), (SQUARE, "tn"), (SQUARE, "nn"), (FOUNDING, "nn")):
        problem = Matmul(*sizes, "tf32x3", layout)
        near = (Candidate.of(HOPPER, USUAL[HOPPER] | knobs) for knobs in variants)
        points = dict.fromkeys((*first_points(problem, HOPPER, chip), *_allowed(problem, near, chip)))
        yield from itertools.islice(points, THREE_PRODUCTS_CANDIDATES)
        yield from first_points(problem, TENSOR_CORES, chip)[:SPLIT_FRAGMENTS_CANDIDATES]


def _six_products(problem: Problem, chip: str) -> Iterator[GpuPoint]:
    """Yields what a search tries first, and its first block in other clusters and with several tiles."""
    block: dict[str, Value] = {"block_m": 128, "block_n": 128, "block_k": 64, "stages": 2, "group": 8}
    variants = (("1x2", 1), ("1x1", 1), ("2x1", 4))
    near = (
        Candidate.of(HOPPER, USUAL[HOPPER] | block | {"cluster": cluster, "tiles": tiles})
        for cluster, tiles in variants
    )
    first = first_points(problem, HOPPER, chip)[: SIX_PRODUCTS_CANDIDATES - len(variants)]
    points = dict.fromkeys((*first, *_allowed(problem, near, chip)))
    yield from itertools.islice(points, SIX_PRODUCTS_CANDIDATES)


def _eight_bits(chip: str) -> Iterator[GpuPoint]:
    """Yields i8 and e4m3, then e4m3 with scales of blocks, whose tiles are smaller."""
    for dtype in EIGHT_BITS:
        problem = Matmul(*SQUARE, dtype, "nt")
        yield from _first_and_clusters(problem, {"group": 16}, EIGHT_BIT_CANDIDATES, chip)
    problem = Matmul(*SQUARE, "e4m3", "nt", scales=SCALES)
    yield from _first_and_clusters(problem, {"block_n": 128, "stages": 6}, SCALED_CANDIDATES, chip)


def _first_and_clusters(
    problem: Problem, knobs: dict[str, Value], most: int, chip: str
) -> Iterator[GpuPoint]:
    """Yields what a search tries first, and one tile in clusters along both sides; at most so many."""
    usual = USUAL[HOPPER] | {"block_k": 128} | knobs
    clusters = (Candidate.of(HOPPER, usual | {"cluster": cluster}) for cluster in ("2x1", "1x2"))
    near = tuple(_allowed(problem, clusters, chip))
    first = first_points(problem, HOPPER, chip)[: most - len(near)]
    yield from dict.fromkeys((*first, *near))


def _decode(chip: str) -> Iterator[GpuPoint]:
    for (n, k), m, dtype in itertools.product(WEIGHTS, TOKENS, ("bf16", "e4m3")):
        yield from _few_rows(Matmul(m, n, k, dtype, "nt"), chip)
    n, k = WEIGHTS[-1]
    for m in TOKENS:
        yield from _few_rows(Matmul(m, n, k, "e4m3", "nt", scales=SCALES), chip)


def _few_rows(problem: Problem, chip: str) -> Iterator[GpuPoint]:
    swapped = [knobs | {"block_m": rows} for rows, knobs in itertools.product(DECODE_ROWS, DECODE_SWAPPED)]
    line: dict[str, Value] = {"block_k": 128 // problem.input_bytes, "group": 1}
    usual = USUAL[HOPPER] | line
    wanted = (Candidate.of(HOPPER, usual | knobs) for knobs in (*DECODE_BLOCKS, *swapped))
    points = dict.fromkeys(_allowed(problem, wanted, chip))
    if not problem.scales:
        points |= dict.fromkeys(first_points(problem, TENSOR_CORES, chip))
    yield from itertools.islice(points, DECODE_CANDIDATES)


def _experts(chip: str) -> Iterator[GpuPoint]:
    """Yields products of groups of rows, and as many rows of one matrix, which they are compared with."""
    for problem in EXPERTS:
        yield from first_points(problem, TENSOR_CORES, chip)[:EXPERTS_CANDIDATES]
        yield from first_points(as_one_matmul(problem), TENSOR_CORES, chip)[:EXPERTS_CANDIDATES]


def as_one_matmul(grouped: Problem) -> Problem:
    """Returns the product of as many rows by one matrix."""
    m, n, k = grouped.sizes
    return Matmul(m, n, k, grouped.dtype, grouped.layout)


def _regression(chip: str) -> Iterator[GpuPoint]:
    for dtype in ("f16", "bf16"):
        yield from first_points(Matmul(*SQUARE, dtype), HOPPER, chip)[:REGRESSION_CANDIDATES]


def _ranking(chip: str) -> Iterator[GpuPoint]:
    for strategy, dtype in ((CUDA_CORES, "f32"), (HOPPER, "f16")):
        problem = Matmul(*RANKED, dtype)
        feasible = feasible_set(problem, strategy, chip)
        rows = np.random.default_rng(RANKING_SEED).permutation(feasible.rows)[:RANKED_POINTS]
        for row in rows:
            yield GpuPoint(problem, feasible.candidate(int(row)), chip)


def _allowed(
    problem: Problem, candidates: "Iterator[Candidate] | tuple[Candidate, ...]", chip: str
) -> Iterator[GpuPoint]:
    for candidate in candidates:
        feasible = feasible_set(problem, candidate.strategy, chip)
        if feasible.row_of(candidate) is not None:
            yield GpuPoint(problem, candidate, chip)
