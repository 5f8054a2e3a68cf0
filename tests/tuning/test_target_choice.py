"""Which target a word means: its kind and chip, and what works on a machine."""

from dataclasses import replace
from typing import Any

import pytest

from tests.tuning import fakes
from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError
from tuner.targets.backends import named_target, require_runs_here, resolve_target
from tuner.targets.interface import TargetStatus
from tuner.targets.registry import real_backends

NO_GPU = TargetStatus("cuda", False, "no driver")


def test_a_word_names_a_kind_and_its_chip() -> None:
    for text, chip, *named in (
        ("cpu", "", "cpu"),
        ("simulator", "", "simulator", "sm_90"),
        ("simulator", "sm_80", "simulator", "sm_80"),
        ("cuda:sm_90a", "", "cuda", "sm_90a"),
        ("cuda:sm_90a", "sm_90a", "cuda", "sm_90a"),
        ("replay:/data/a:b.t4.json", "", "replay", "/data/a:b.t4.json"),
    ):
        assert named_target(text, real_backends(), chip) == TargetName(*named)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("simulator", "sm_1"), "^chip: found 'sm_1', allowed sm_80, sm_86, "),
        (("simulator:",), "^chip: found '', allowed sm_80, "),
        (("cuda:sm_90", "sm_80"), "^chip 'sm_80' cannot be combined with target 'cuda:sm_90'; name "),
        (("cpu", "sm_80"), "^chip 'sm_80' cannot be combined with target cpu, only with cuda, simulator$"),
        (("cpu:avx2",), "^cpu: found 'avx2', allowed haswell, .*, znver5$"),
        (("replay", "sm_90"), "^chip 'sm_90' cannot be combined with target replay, only with cuda"),
        (("teapot",), "^target: found 'teapot', allowed auto, cpu, cuda, simulator, replay$"),
    ],
)
def test_a_word_that_is_wrong_is_named(options: tuple[str, ...], message: str) -> None:
    text, *chip = options
    with pytest.raises(UsageError, match=message):
        named_target(text, real_backends(), *chip)


CPU = TargetStatus("cpu", True, "here")
H200 = TargetStatus("cuda", True, "NVIDIA H200", chip="sm_90")
A100 = TargetStatus("cuda", True, "an A100", chip="sm_80")
COMPILES = TargetStatus("cuda", False, "compiles only: no driver", can_compile=True, missing="no driver")
UNTIMED = TargetStatus("simulator", True, "no clock", is_timed=False)


def test_auto_is_the_best_target_that_works_and_the_default_chip_is_that_of_the_gpu_here() -> None:
    for statuses, text, chip, *named in (
        ((TargetStatus("gpu", False, "no driver"), CPU), "auto", "", "cpu"),
        ((UNTIMED, NO_GPU, CPU), "auto", "", "cpu"),  # never one without times
        ((CPU, H200), "auto", "", "cuda", "sm_90"),
        ((CPU, H200), "cuda", "", "cuda", "sm_90"),
        ((CPU, H200), "cpu", "", "cpu"),
        ((CPU, H200), "cuda", "sm_90a", "cuda", "sm_90a"),
        ((A100,), "cuda", "", "cuda", "sm_80"),
        ((replace(COMPILES, is_timed=False),), "cuda", "sm_80", "cuda", "sm_80"),
    ):
        assert resolve_target(text, fakes.backends(statuses), chip) == TargetName(*named)


NOTHING_WORKS = (TargetStatus("gpu", False, "no driver"), TargetStatus("cpu", False, "no AVX2"))
OTHER_CHIP = "^target cuda:sm_80: the GPU here is sm_90; --target cuda:sm_90, or simulator:sm_80$"


@pytest.mark.parametrize(
    ("statuses", "options", "message"),
    [
        ((UNTIMED, NO_GPU, CPU), ("auto", "sm_80"), "target cpu, only with simulator, cuda"),
        ((UNTIMED,), ("auto",), "found none that works here: simulator: no clock"),
        (NOTHING_WORKS, ("auto",), "found none that works here: gpu: no driver; cpu: no AVX2"),
        (NOTHING_WORKS, ("cpu",), "target cpu: not available here: no AVX2"),
        (NOTHING_WORKS, ("tpu",), "target: found 'tpu', allowed auto, gpu, cpu"),
        ((H200,), ("cuda:sm_1",), "chip: found 'sm_1', allowed sm_80, "),
        *(((H200,), of, OTHER_CHIP) for of in (("cuda:sm_80",), ("cuda", "sm_80"), ("auto", "sm_80"))),
    ],
)
def test_what_works_nowhere_is_refused_with_every_reason(statuses: Any, options: Any, message: str) -> None:
    text, *chip = options
    with pytest.raises(UsageError, match=message):
        resolve_target(text, fakes.backends(statuses), *chip)


def test_a_run_is_refused_where_candidates_only_compile() -> None:
    line = (
        r"^target cuda:sm_80: nothing runs here: no driver; to verify without a GPU, and carry the result "
        r"to one by tuner bundle export: tuner tune matmul 8x8x8 --target simulator:sm_80$"
    )
    with pytest.raises(UsageError, match=line):
        require_runs_here(TargetName("cuda", "sm_80"), fakes.backends((COMPILES,)), "tuner tune matmul 8x8x8")
    require_runs_here(TargetName("cuda", "sm_80"), fakes.backends((A100,)), "tuner tune matmul 8x8x8")
