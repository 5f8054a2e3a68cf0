"""How targets are spelled."""

import pytest

from tuner.core.target_name import TargetName

CPU, GPU = TargetName("cpu"), TargetName("cuda", "sm_90a")
REPLAY = TargetName("replay", "/data/a:b.t4.json")


@pytest.mark.parametrize(
    ("text", "target"), [("cpu", CPU), ("cuda:sm_90a", GPU), ("replay:/data/a:b.t4.json", REPLAY)]
)
def test_a_target_is_spelled_as_it_is_read(text: str, target: TargetName) -> None:
    assert TargetName.parse(text) == target
    assert target.text == str(target) == text


def test_a_replay_tells_times_again() -> None:
    assert REPLAY.is_replay
    assert not CPU.is_replay


def test_targets_are_alike_when_both_measure_on_one_kind_of_machine() -> None:
    assert GPU.is_like(TargetName("cuda", "sm_80"))
    assert not GPU.is_like(TargetName("simulator", "sm_90a"))
    assert not REPLAY.is_like(REPLAY)
