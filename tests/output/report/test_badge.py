from dataclasses import replace

from tests.trials import run
from tuner.core.target_name import TargetName
from tuner.output.report.badge import badge_of


def test_a_quiet_session_tells_its_noise() -> None:
    found = badge_of(run(noise=0.012))
    assert (found.kind, found.word) == ("good", "noise 1.2%")
    assert found.reason == "Two timings of the same code differ by 1.2%: smaller differences mean nothing."


def test_a_noisy_session_is_a_warning() -> None:
    found = badge_of(run(noise=0.3))
    assert (found.kind, found.word) == ("warning", "unreliable")
    assert "differ by 30.0%: something else was running" in found.reason


def test_an_unreliable_answer_says_why() -> None:
    found = badge_of(run(unreliable="the baseline drifted by 34%: load"))
    assert (found.kind, found.word) == ("warning", "unreliable")
    assert found.reason == "the baseline drifted by 34%: load."


def test_a_session_whose_noise_nobody_measured_is_unknown() -> None:
    found = badge_of(run(noise=None))
    assert (found.kind, found.word) == ("unknown", "noise not measured")


def test_a_replay_tells_that_nothing_ran() -> None:
    told = replace(run(), settings=replace(run().settings, target=TargetName("replay", "gemm")))
    assert badge_of(told).word == "replayed"
