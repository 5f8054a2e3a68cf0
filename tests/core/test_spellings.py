"""How targets, strategies, moments and origins are spelled."""

import datetime
from pathlib import Path

import pytest

from tuner.core.candidate import Candidate, ChosenStrategy, TargetName
from tuner.core.errors import UsageError
from tuner.core.runs import ORIGINS, InitialConfiguration
from tuner.core.serialization import parse_moment, parse_seconds, with_zone

CPU, GPU = TargetName("cpu"), TargetName("cuda", "sm_90a")
REPLAY = TargetName("replay", "/data/a:b.t4.json")


TARGETS = {"cpu": CPU, "cuda:sm_90a": GPU, "replay:/data/a:b.t4.json": REPLAY}


@pytest.mark.parametrize(("text", "target"), TARGETS.items())
def test_a_target_is_spelled_as_it_is_read(text: str, target: TargetName) -> None:
    assert TargetName.parse(text) == target
    assert target.text == str(target) == text


def test_a_replay_has_no_machine_and_a_target_is_of_its_kind_whatever_its_chip() -> None:
    assert (CPU.has_machine, REPLAY.has_machine) == (True, False)
    assert (GPU.is_of("cuda"), GPU.is_of("simulator")) == (True, False)


STRATEGIES = {
    **{name: ChosenStrategy(name) for name in ("first", "of=a recording")},
    "mine=/a=b/mine.mlir": ChosenStrategy("mine", Path("/a=b/mine.mlir")),
}


@pytest.mark.parametrize(("text", "chosen"), STRATEGIES.items())
def test_what_is_stored_reads_back(text: str, chosen: ChosenStrategy) -> None:
    assert chosen.text == text
    assert ChosenStrategy.parse(text) == chosen


def test_a_moment_is_utc_unless_it_says_otherwise() -> None:
    day = datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)
    assert parse_moment("2026-01-31") == with_zone(datetime.datetime(2026, 1, 31)) == day
    assert parse_moment("2026-01-31T12:00+02:00").utcoffset() == datetime.timedelta(hours=2)
    with pytest.raises(UsageError, match="since: found 'now', allowed such as"):
        parse_moment("now")


def test_a_budget_is_seconds_or_has_a_unit() -> None:
    budgets = {"60s": 60, "5m": 300, "1.5h": 5400, "7": 7, "0.5s": 0.5}
    assert {text: parse_seconds(text) for text in budgets} == budgets


@pytest.mark.parametrize("text", ["", "s", "0", "-5s", "5 s", "1d", "1e9", "nan", "9" * 400])
def test_a_budget_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"budget: found .*, allowed a time such as 60s, 5m or 1h"):
        parse_seconds(text)


def test_a_point_comes_from_one_of_the_origins() -> None:
    candidate = Candidate.of("fake", {"x": 1})
    assert all(InitialConfiguration(candidate, origin).source == "" for origin in ORIGINS)
    with pytest.raises(ValueError, match="origin: found 'hunch', allowed warm start, space file, seed"):
        InitialConfiguration(candidate, "hunch")
