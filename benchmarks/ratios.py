"""Speed of tuned kernels relative to a library, from the results of ``benchmarks.cpu_matmul``."""

import json
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.results_file import RESULTS, day_of
from tuner.core.problem_text import parse_shape
from tuner.core.serialization import count_text

F32_1_THREAD = "cpu_matmul_f32_1_thread.json"
F32_2_THREADS = "cpu_matmul_f32_2_threads.json"
BF16_1_THREAD = "cpu_matmul_bf16_1_thread.json"
# Against the fastest of several libraries: dtype -> results
AMX_1_THREAD, AVX2_1_THREAD, XEON_1_THREAD, ZEN4_1_THREAD = (
    {dtype: f"cpu_matmul_{processor}_{dtype}_1_thread.json" for dtype in dtypes}
    for processor, dtypes in (
        ("amx", ("f32", "bf16", "i8")),
        ("avx2", ("f32", "bf16", "f16", "i8")),
        ("xeon", ("f32",)),
        ("zen4", ("f32", "bf16", "i8")),
    )
)
LARGE = 256  # the smallest size of a large shape; others are small or skinny
TWO_PROCESSORS = 1.2  # a large product on two processors is faster than on one by more than this


@dataclass(frozen=True)
class Ratio:
    """Time of the library over time of the tuned kernel for one shape: above 1 the kernel is faster."""

    shape: str
    ratio: float  # median of the rounds
    low: float  # an interval of the median: see `coverage`
    high: float
    rounds: int
    gflop_per_s: float
    baseline_gflop_per_s: float
    baseline: str
    peak_gflop_per_s: float | None = None  # of the core, measured in the same run

    @property
    def is_large(self) -> bool:
        """True if every size is LARGE or more."""
        return min(parse_shape(self.shape)) >= LARGE


def ratios_in(file: str) -> tuple[Ratio, ...]:
    """Returns the ratios in a file of `RESULTS`, in its order."""
    document = json.loads((RESULTS / file).read_text())
    return tuple(
        Ratio(
            row["shape"],
            row["ratio"],
            row["contest"]["low"],
            row["contest"]["high"],
            row["contest"]["rounds"],
            row["gflop_per_s"],
            row["baseline_gflop_per_s"],
            row["baseline"],
            row.get("peak_gflop_per_s"),
        )
        for row in document["rows"]
    )


def machine(file: str) -> str:
    """Returns on which machine and on which day the ratios of a file were measured."""
    document = json.loads((RESULTS / file).read_text())
    described = document["machine"]
    isa = described["isa"].upper().replace("AVX512", "AVX-512")
    cores = count_text(described["physical_cores"], "core")
    return f"{described['processor']}, {isa}, {cores}, {day_of(document)}"


def geometric_mean(ratios: Iterable[Ratio]) -> float:
    """Returns the geometric mean of the ratios."""
    return statistics.geometric_mean(each.ratio for each in ratios)


def coverage(rounds: int) -> float:
    """Returns the confidence that the quartiles of so many rounds' ratios enclose the true median.

    The quartiles of n = 4q - 1 values are the q-th smallest and the q-th largest. The median of the
    distribution lies between them unless fewer than q values fall on one side of it, which a binomial
    distribution counts: the interval of the sign test.
    """
    outside = (rounds + 1) // 4
    return 1 - 2 * sum(math.comb(rounds, count) for count in range(outside)) / (1 << rounds)


def had_one_processor(one_thread: Ratio, two_threads: Ratio) -> bool:
    """Returns whether kernel and library both ran a large shape with two threads as slowly as with one.

    The second processor was not available then: the ratio says nothing about two threads.
    """
    return two_threads.is_large and all(
        with_two < TWO_PROCESSORS * with_one
        for with_one, with_two in (
            (one_thread.gflop_per_s, two_threads.gflop_per_s),
            (one_thread.baseline_gflop_per_s, two_threads.baseline_gflop_per_s),
        )
    )


@dataclass(frozen=True)
class RatioPair:
    """One shape with one thread and with two."""

    one: Ratio
    two: Ratio

    @property
    def is_disturbed(self) -> bool:
        """True if the ratio with two threads must be left out."""
        return had_one_processor(self.one, self.two)


def f32_pairs() -> tuple[RatioPair, ...]:
    """Returns the f32 shapes. Raises ValueError where the two files have different shapes."""
    return tuple(
        RatioPair(one, two)
        for one, two in zip(ratios_in(F32_1_THREAD), ratios_in(F32_2_THREADS), strict=True)
    )


def mean_of_pairs(pairs: Iterable[RatioPair]) -> tuple[float, float]:
    """Returns the geometric means with one thread and with two, the latter without disturbed ratios."""
    pairs = tuple(pairs)
    return (
        geometric_mean(pair.one for pair in pairs),
        geometric_mean(pair.two for pair in pairs if not pair.is_disturbed),
    )
