from dataclasses import replace

import pytest

from tests.trials import measurement
from tuner.analysis.ratios import sensitivity_text
from tuner.core.problem import Matmul, Problem
from tuner.core.records import Measurement, OffsetTime

MS = 1e-3


def timed(*medians_ms: float, half_width: float = 0.01) -> Measurement:
    """Returns a measurement with these times at 0, 16, 32 and 48 bytes past a cache line."""
    offsets = tuple(
        OffsetTime(16 * place, ms * MS, (ms * MS * (1 - half_width), ms * MS * (1 + half_width)))
        for place, ms in enumerate(medians_ms)
    )
    return replace(measurement(MS, 0.01), offsets=offsets)


@pytest.mark.parametrize(
    ("problem", "medians_ms", "text"),
    [
        (
            Matmul(8, 8, 8, align=64),
            (1.0, 1.3, 1.31, 1.2),
            "1.31 times as long with operands 32 bytes past a",
        ),
        (Matmul(8, 8, 8), (1.2, 1.0, 1.0, 1.0), "1.20 times as long with operands on a cache line"),
        (Matmul(8, 8, 8), (0.7, 1.0, 1.04, 1.0), ""),
        (Matmul(8, 8, 8, align="any"), (1.0, 2.0, 2.0, 2.0), ""),  # its own offset was not timed
    ],
)
def test_a_kernel_that_is_slower_elsewhere_says_where(
    problem: Problem, medians_ms: tuple[float, ...], text: str
) -> None:
    found = sensitivity_text(timed(*medians_ms), problem, 0.01, "")
    assert found.startswith(text)
    assert bool(found) == bool(text)


def test_times_whose_intervals_overlap_say_nothing() -> None:
    assert (
        sensitivity_text(timed(1.0, 1.3, 1.0, 1.0, half_width=0.2), Matmul(8, 8, 8, align=64), 0.01, "") == ""
    )


def test_a_kernel_that_was_not_timed_elsewhere_says_nothing() -> None:
    assert sensitivity_text(measurement(MS, 0.01), Matmul(8, 8, 8), 0.01, "") == ""
    assert sensitivity_text(None, Matmul(8, 8, 8), 0.01, "") == ""


@pytest.mark.parametrize(
    ("medians_ms", "noise", "distrusted"),
    [
        ((1.0, 1.3, 1.3, 1.3), None, ""),  # nothing was timed twice
        ((1.0, 1.3, 1.3, 1.3), 0.01, "the baseline drifted by 34%: load"),
        ((1.0, 1.3, 1.3, 1.3), 0.31, ""),  # less than two timings of the same code differ by
        ((0.6, 0.9, 0.9, 0.9), 0.01, ""),  # the same code at the same addresses took 1 ms in the round
        ((12.0, 14.0, 14.54, 14.0), 0.01, ""),
    ],
)
def test_nothing_is_said_within_the_noise_of_the_run(
    medians_ms: tuple[float, ...], noise: float | None, distrusted: str
) -> None:
    assert sensitivity_text(timed(*medians_ms), Matmul(8, 8, 8, align=64), noise, distrusted) == ""
