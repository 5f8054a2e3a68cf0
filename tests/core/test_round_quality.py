from dataclasses import replace

import pytest

from tests.trials import measurement
from tuner.core.machine import HostConditions
from tuner.core.records import Measurement
from tuner.core.round_quality import RoundQuality, round_quality

QUIET = HostConditions(0.1, 0.02, 0.001, 0.0, 0.0, 1e-3, 0.01)
STEADY = measurement(2e-3)


def quality(
    noise: float | None = 0.01,
    baseline: Measurement | None = STEADY,
    quietest_s: float | None = 1e-3,
    spare_cores: int = 1,
    **host: float,
) -> RoundQuality:
    """Returns the quality of a quiet round with changes."""
    conditions = replace(QUIET, **host)
    return round_quality(noise, baseline, conditions, quietest_anchor_s=quietest_s, spare_cores=spare_cores)


def test_a_quiet_round_can_be_relied_on() -> None:
    found = quality()
    assert found.unreliable == ""
    assert found.disturbance == pytest.approx(0.01)
    assert found.host == QUIET


@pytest.mark.parametrize(
    ("changes", "symptom", "cause"),
    [
        ({"noise": 0.3}, "two timings of the same code differ by 30%", "no other program was seen"),
        (
            {"anchor_drift": 0.4, "others_cores": 1.0},
            "the reference kernel drifted by 40% (noise floor 1.0%)",
            "load, other programs kept 1.0 processors busy",
        ),
        ({"anchor_drift": 0.4}, "the reference kernel drifted by 40%", "throttling or another clock"),
        ({"quietest_s": 1e-3 / 1.5}, "the reference kernel was slower than earlier by 50%", "another clock"),
        ({"waited_share": 0.5}, "did not run all the time", "the timed threads waited 50% of the time"),
        ({"stolen_share": 0.2}, "did not run all the time", "steal time, the hypervisor took 20%"),
        ({"throttled_share": 0.3}, "did not run all the time", "throttling, a quota held the processes"),
        ({"others_cores": 1.5}, "no processor for themselves", "kept 1.5 processors busy"),
        ({"others_cores": 0.5, "spare_cores": 0}, "no processor for themselves", "kept 0.5 processors"),
    ],
)
def test_what_disturbs_a_round_is_reported_with_its_reason(
    changes: dict[str, float], symptom: str, cause: str
) -> None:
    found = quality(**changes)  # type: ignore[arg-type]
    assert symptom in found.unreliable
    assert cause in found.unreliable


def test_a_drifting_baseline_makes_a_round_unreliable() -> None:
    drifting = replace(STEADY, samples_s=(1e-3,) * 6 + (2e-3,) * 6)
    found = quality(baseline=drifting)
    assert found.unreliable.startswith("the baseline drifted by 100% (noise floor 1.0%)")
    assert found.disturbance == pytest.approx(1.0)


def test_load_that_leaves_the_timed_threads_alone_is_borne() -> None:
    assert quality(others_cores=1.1).unreliable == ""


def test_without_counters_the_noise_and_the_baseline_decide() -> None:
    quiet = round_quality(0.01, STEADY, None, quietest_anchor_s=None, spare_cores=0)
    noisy = round_quality(0.2, None, None, quietest_anchor_s=None, spare_cores=0)
    unknown = round_quality(None, None, None, quietest_anchor_s=None, spare_cores=0)
    assert quiet.unreliable == ""
    assert "noise floor is not known" in unknown.unreliable
    assert noisy.unreliable == "two timings of the same code differ by 20%: something else was running"


def test_a_quiet_round_comes_before_a_disturbed_one() -> None:
    assert quality().rank < quality(noise=0.02).rank < quality(waited_share=0.051).rank
