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


def test_a_replay_has_no_machine() -> None:
    assert CPU.has_machine
    assert not REPLAY.has_machine


def test_a_target_is_of_its_kind_whatever_its_chip() -> None:
    assert GPU.is_of("cuda")
    assert not GPU.is_of("simulator")
