"""Words for targets."""

import pytest

from tuner.errors import UsageError
from tuner.problem import Matmul, Problem
from tuner.target_name import TargetName, require_types


@pytest.mark.parametrize(
    ("words", "target"),
    [
        (("cpu",), TargetName("cpu")),
        (("simulator",), TargetName("simulator", "sm_90")),
        (("simulator", "sm_80"), TargetName("simulator", "sm_80")),
        (("cuda:sm_90a",), TargetName("cuda", "sm_90a")),
        (("cuda:sm_90a", "sm_90a"), TargetName("cuda", "sm_90a")),
        (("teapot",), TargetName("teapot")),
    ],
)
def test_a_target_is_read_with_its_chip(words: tuple[str, ...], target: TargetName) -> None:
    assert TargetName.parse(*words) == target
    assert TargetName.parse(target.text) == target
    assert target.is_gpu == bool(target.chip)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("simulator", "sm_1"), "^chip: found 'sm_1', allowed sm_80, sm_86, "),
        (("simulator:",), "^chip: found '', allowed sm_80, "),
        (("cuda:sm_90", "sm_80"), "^chip: found 'sm_80' beside target 'cuda:sm_90', allowed one of both$"),
        (("cpu", "sm_80"), "^chip: found 'sm_80' for target cpu, allowed for cuda, simulator$"),
        (("cpu:avx2",), "^chip: found 'avx2' for target cpu, allowed for cuda, simulator$"),
    ],
)
def test_a_chip_that_is_wrong_is_named(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TargetName.parse(*words)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            Matmul(8, 8, 8, "f16"),
            "^dtype: found 'f16', allowed f32, f64, bf16 on target cpu; cuda and simulator",
        ),
        (Matmul(8, 8, 8, "tf32"), "^dtype: found 'tf32', allowed"),
        (Matmul(8, 8, 8, "bf16", output="bf16"), "^output: found 'bf16', allowed f32 on target cpu; cuda"),
    ],
)
def test_what_only_gpus_take_is_refused_on_processors(problem: Problem, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        require_types(problem, TargetName("cpu"))
    require_types(problem, TargetName("simulator", "sm_90"))


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
def test_processors_take_their_types(dtype: str) -> None:
    require_types(Matmul(8, 8, 8, dtype), TargetName("cpu"))


def test_a_replay_is_named_by_its_recording() -> None:
    target = TargetName.parse("replay:/data/a:b.t4.json")
    assert target == TargetName("replay", recording="/data/a:b.t4.json")
    assert TargetName.parse(target.text) == target
    assert target.is_replay
    assert not target.is_gpu
    assert not TargetName("cpu").is_replay


@pytest.mark.parametrize("word", ["replay", "replay:"])
def test_a_replay_of_nothing_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match=r"^target replay: found no recording, allowed replay:FILE$"):
        TargetName.parse(word)


def test_a_replay_has_no_chip() -> None:
    with pytest.raises(UsageError, match=r"^chip: found 'sm_90' for target replay, allowed for cuda"):
        TargetName.parse("replay", "sm_90")
