"""Results that may be true, rounds that can be relied on, and the fastest library as the baseline."""

import math
from dataclasses import replace
from typing import Any

import pytest

from tests.db.values import MACHINE
from tests.elsewhere.bundle.values import GPU
from tests.trials import measurement
from tuner.core import plausibility, roofline
from tuner.core.errors import Refusal
from tuner.core.fusion_facts import FusionFacts
from tuner.core.gpu import CLOCK_FLOP
from tuner.core.interfaces import fastest_baseline
from tuner.core.machine import Machine
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.plausibility import most_flop_per_s, why_impossible, why_inconsistent, why_no_verdict
from tuner.core.problem_classes import FusedProblem
from tuner.core.records import HostConditions, Measurement, Verdict
from tuner.core.roofline import Roofline
from tuner.core.round_quality import RoundQuality, round_quality
from tuner.core.runs import Baseline, LibraryTime

PROBLEM = Matmul(64, 32, 16)
TIMED = measurement(1e-3, width=0.1)
NAMED_ONLY = Machine("a GPU", "a GPU", "none", False, 0, 0, 0, 0, 0, 0)
QUIET = HostConditions(0.1, 0.02, 0.001, 0.0, 0.0, 1e-3, 0.01)
STEADY = measurement(2e-3)
BUSY = {"reference_drift": 0.4, "others_cores": 1.0}
DRIFTED = "the reference kernel drifted by 40% (noise floor 1.0%)"


def times(time_s: float) -> Measurement:
    return Measurement((time_s, time_s), 1, time_s, (time_s, time_s))


@pytest.mark.parametrize("time_s", [0.0, -1e-3, 1e-30, 1e7, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["all", "median_s", "samples_s", "interval_s", "cold_median_s"])
def test_a_time_that_no_call_takes_is_refused_wherever_it_stands(time_s: float, where: str) -> None:
    values: dict[str, Any] = {"samples_s": (1e-3, time_s), "interval_s": (time_s, 1e-3)}
    found = times(time_s) if where == "all" else replace(TIMED, **{where: values.get(where, time_s)})
    assert str(why_inconsistent(found)).startswith(
        f"found a time of {time_s:g} s, allowed 1e-10 s to 1e+06 s"
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"samples_s": ()}, "found 0 samples"),
        ({"samples_s": (1e-3,) * (plausibility.MOST_SAMPLES + 1)}, "found 10001 samples"),
        ({"inner_calls": 0}, "found 0 calls per sample"),
        ({"inner_calls": 2**40}, f"found {2**40} calls per sample"),
        (
            {"median_s": 2e-3, "interval_s": (1e-3, 2e-3)},
            "found a median of 0.002 s, allowed one of its samples",
        ),
        ({"interval_s": (2e-3, 3e-3)}, "found an interval of 0.002 to 0.003 s, allowed one around 0.001 s"),
        ({"interval_s": (3e-3, 2e-4)}, "found an interval of 0.003 to 0.0002 s"),
    ],
)
def test_numbers_that_do_not_fit_together_are_refused(changes: dict[str, object], why: str) -> None:
    assert str(why_inconsistent(replace(TIMED, **changes))).startswith(why)  # type: ignore[arg-type]


@pytest.mark.parametrize("time_s", [3e-9, 1e-6, 1e-3, 3600.0])
def test_what_kernels_take_is_a_time(time_s: float) -> None:
    assert why_inconsistent(times(time_s)) is None
    assert why_inconsistent(replace(measurement(time_s, width=0.5), cold_median_s=2 * time_s)) is None


def test_a_kernel_above_the_peak_is_refused_by_what_is_known_and_by_the_narrowest_numbers() -> None:
    limit = most_flop_per_s(PROBLEM, MACHINE, threads=1)
    fastest_s = PROBLEM.flop / limit
    assert why_impossible(times(1.01 * fastest_s), PROBLEM, limit) is None
    assert str(why_impossible(times(0.99 * fastest_s), PROBLEM, limit)).endswith("on such a machine")
    baseline = Baseline("BLAS", 1, times(0.99 * fastest_s))
    assert str(plausibility.why_no_baseline(baseline, PROBLEM, limit)).startswith("baseline: found a time of")
    unknown = replace(GPU, physical_cores=0)
    limit = CLOCK_FLOP["sm_90"]["f16"] * 132 * plausibility.GPU_HZ
    assert most_flop_per_s(Matmul(64, 32, 16, "f16"), unknown, 0) == limit
    assert most_flop_per_s(PROBLEM, NAMED_ONLY, 1) == math.inf
    assert why_impossible(times(1e-10), Matmul(4096, 4096, 4096), math.inf) is None
    plain = FusedProblem("contraction", (64, 32, 16), "f32", text="text")
    mixed = replace(plain, facts=FusionFacts(elements=("bf16", "f32", "i1")))
    assert most_flop_per_s(plain, MACHINE, 1) == most_flop_per_s(PROBLEM, MACHINE, 1)
    assert most_flop_per_s(mixed, MACHINE, 1) == most_flop_per_s(Matmul(64, 32, 16, "bf16"), MACHINE, 1)


@pytest.mark.parametrize(
    ("machine", "dtype", "threads", "peak"),
    [  # documented peaks, which the limit is above by less than ten times
        (MACHINE, "f32", 1, 2 * 2 * 16 * 3.8e9),  # Xeon 8481C: two FMA units of AVX-512, turbo clock
        (MACHINE, "f64", 1, 2 * 2 * 8 * 3.8e9),
        (replace(MACHINE, has_amx_bf16=True), "bf16", 1, 1024 * 3.8e9),
        (replace(MACHINE, has_amx_bf16=True), "f32", 1, 2 * 2 * 16 * 3.8e9),
        (replace(MACHINE, has_amx_int8=True), "i8", 1, 2048 * 3.8e9),
        (MACHINE, "bf16", 1, 2 * 2 * 32 * 4.1e9),  # EPYC 9575F, Zen 5: two dot products of pairs
        (MACHINE, "i8", 1, 2 * 2 * 64 * 4.1e9),  # VNNI
        (replace(MACHINE, isa="avx2"), "f32", 1, 2 * 2 * 8 * 5.4e9),
        (replace(MACHINE, physical_cores=56), "f32", 56, 56 * 2 * 2 * 16 * 3.0e9),
        (replace(GPU, physical_cores=132), "f16", 0, 989.4e12),  # H100 SXM5
        (replace(GPU, physical_cores=108, chip="sm_80"), "tf32", 0, 156e12),  # A100
        (replace(GPU, physical_cores=148, chip="sm_100"), "e4m3", 0, 4.5e15),  # B200
    ],
)
def test_the_limit_lies_above_documented_peaks_by_less_than_ten_times(
    machine: Machine, dtype: str, threads: int, peak: float
) -> None:
    assert peak < most_flop_per_s(Matmul(64, 32, 16, dtype), machine, threads) < 10 * peak


VERDICTS = (
    *((1.0, n, None) for n in (0, 1, 3 * 64 * 32)),
    *((0.5, n, f"found {n} compared elements, allowed 0 to 6144") for n in (-7, 3 * 64 * 32 + 1)),
    *((e, 4, f"found an error of {e:g} tolerances, allowed 0 to 1") for e in (-0.1, 1.5, math.nan, math.inf)),
)


@pytest.mark.parametrize(("error", "elements", "why"), VERDICTS)
def test_a_verdict_is_of_elements_of_c_within_the_tolerance(
    error: float, elements: int, why: str | None
) -> None:
    refusal = why_no_verdict(Verdict(error, elements), BatchMatmul(3, 64, 32, 16))
    assert refusal == (None if why is None else Refusal(why))


def test_a_verdict_of_an_attention_is_of_a_result_as_wide_as_v_not_as_its_scores() -> None:
    facts = FusionFacts(loops=(8, 32, 32), bytes=163840)
    attention = FusedProblem("attention", (32, 32, 64), "f32", batch=8, text="text", facts=facts)
    assert why_no_verdict(Verdict(0.5, 8 * 32 * 64), attention) is None
    assert "allowed 0 to 163840" in str(why_no_verdict(Verdict(0.5, 163841), attention))


@pytest.mark.parametrize("rates", [(0.0, 1.0), (-1.0, 1.0), (1e12, 1.0), (1.0, 0.0), (1.0, 1e15)])
def test_a_roofline_of_no_machine_is_refused(rates: tuple[float, float]) -> None:
    assert str(roofline.why_no_roofline(Roofline(*rates), 1e11)).startswith("found a roofline of")
    assert roofline.why_no_roofline(Roofline(1e10, 1e10), 1e11) is None


def quality(
    noise: float | None = 0.01,
    baseline: Measurement | None = STEADY,
    quietest_s: float | None = 1e-3,
    spare_cores: int = 1,
    **host: float,
) -> RoundQuality:
    conditions = replace(QUIET, **host)
    return round_quality(
        noise, baseline, conditions, quietest_reference_s=quietest_s, spare_cores=spare_cores
    )


def test_a_quiet_round_can_be_relied_on_a_drifting_or_noisy_one_not() -> None:
    found = quality()
    assert (found.reliability.unreliable, found.host) == ("", QUIET)
    assert found.disturbance == pytest.approx(0.01)
    assert quality(others_cores=1.1).reliability.unreliable == ""  # load that leaves the timed threads alone
    assert found.rank < quality(noise=0.02).rank < quality(waited_share=0.051).rank
    found = quality(baseline=replace(STEADY, samples_s=(1e-3,) * 6 + (2e-3,) * 6))
    assert found.reliability.unreliable.startswith("the baseline drifted by 100% (noise floor 1.0%)")
    assert found.disturbance == pytest.approx(1.0)
    quiet, noisy, unknown = (
        round_quality(noise, baseline, None, quietest_reference_s=None, spare_cores=0).reliability.unreliable
        for noise, baseline in ((0.01, STEADY), (0.2, None), (None, None))
    )
    assert (quiet, noisy) == ("", "two timings of the same code differ by 20%: something else was running")
    assert "noise floor is not known" in unknown


@pytest.mark.parametrize(
    ("changes", "symptom", "cause"),
    [
        ({"noise": 0.3}, "two timings of the same code differ by 30%", "no other program was seen"),
        (BUSY, DRIFTED, "load, other programs kept 1.0 processors busy"),
        ({"reference_drift": 0.4}, DRIFTED, "throttling or another clock"),
        ({"quietest_s": 1e-3 / 1.5}, "the reference kernel was slower than earlier by 50%", "another clock"),
        ({"waited_share": 0.5}, "did not run all the time", "the timed threads waited 50% of the time"),
        ({"stolen_share": 0.2}, "did not run all the time", "steal time, the hypervisor took 20%"),
        ({"throttled_share": 0.3}, "did not run all the time", "throttling, a quota held the processes"),
        ({"others_cores": 1.5}, "no processor for themselves", "kept 1.5 processors busy"),
        ({"others_cores": 0.5, "spare_cores": 0}, "no processor for themselves", "kept 0.5 processors"),
    ],
)
def test_what_disturbs_a_round_has_its_reason(changes: dict[str, float], symptom: str, cause: str) -> None:
    found = quality(**changes)  # type: ignore[arg-type]
    assert symptom in found.reliability.unreliable
    assert cause in found.reliability.unreliable


# The fastest of several libraries is the baseline; what the others took, or why they failed, is kept.
def baseline(name: str, median_s: float) -> Baseline:
    return Baseline(name, 1, Measurement((median_s,), 1, median_s, (median_s, 2 * median_s)))


SLOW, FAST = ("blis", baseline("BLIS 1.0 skx", 2.0)), ("mkl", baseline("MKL 2026.2 avx512", 1.0))


def test_the_fastest_comes_first_and_failures_last() -> None:
    failed = LibraryTime("onednn", "", failure="exited with SIGSEGV")
    found, alone = fastest_baseline([SLOW, FAST], [failed]), fastest_baseline([SLOW], [failed])
    assert found is not None
    assert (found.name, found.measurement) == ("MKL 2026.2 avx512", FAST[1].measurement)
    mkl = LibraryTime("mkl", "MKL 2026.2 avx512", 1.0, (1.0, 2.0))
    assert found.libraries == (mkl, LibraryTime("blis", "BLIS 1.0 skx", 2.0, (2.0, 4.0)), failed)
    assert alone is not None
    assert [each.library for each in alone.libraries] == ["blis", "onednn"]
    assert fastest_baseline([SLOW]) == SLOW[1]  # no choice
    assert fastest_baseline([], [failed]) is None
