"""Which target a word means: its kind and chip, and what works on a machine."""

import pytest

from tests.tuning import fakes
from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError
from tuner.targets.backends import named_target, require_runs_here, resolve_target
from tuner.targets.interface import TargetStatus
from tuner.targets.registry import real_backends

NO_GPU = TargetStatus("cuda", False, "no driver")


@pytest.mark.parametrize(
    ("options", "target"),
    [
        (("cpu",), TargetName("cpu")),
        (("simulator",), TargetName("simulator", "sm_90")),
        (("simulator", "sm_80"), TargetName("simulator", "sm_80")),
        (("cuda:sm_90a",), TargetName("cuda", "sm_90a")),
        (("cuda:sm_90a", "sm_90a"), TargetName("cuda", "sm_90a")),
        (("replay:/data/a:b.t4.json",), TargetName("replay", "/data/a:b.t4.json")),
    ],
)
def test_a_word_names_a_kind_and_its_chip(options: tuple[str, ...], target: TargetName) -> None:
    text, *chip = options
    assert named_target(text, real_backends(), *chip) == target


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
UNTIMED = TargetStatus("simulator", True, "no clock", is_timed=False)


@pytest.mark.parametrize(
    ("statuses", "options", "target"),
    [
        ((TargetStatus("gpu", False, "no driver"), CPU), ("auto",), TargetName("cpu")),
        ((UNTIMED, NO_GPU, CPU), ("auto",), TargetName("cpu")),  # never one without times
        ((CPU, H200), ("auto",), TargetName("cuda", "sm_90")),
        ((CPU, H200), ("cuda",), TargetName("cuda", "sm_90")),
        ((CPU, H200), ("cpu",), TargetName("cpu")),
        ((CPU, H200), ("cuda", "sm_90a"), TargetName("cuda", "sm_90a")),
        ((TargetStatus("cuda", True, "an A100", chip="sm_80"),), ("cuda",), TargetName("cuda", "sm_80")),
        (
            (TargetStatus("cuda", False, "no driver", is_timed=False, can_compile=True),),
            ("cuda", "sm_80"),
            TargetName("cuda", "sm_80"),
        ),
    ],
)
def test_auto_is_the_best_target_that_works_and_the_default_chip_is_that_of_the_gpu_here(
    statuses: tuple[TargetStatus, ...], options: tuple[str, ...], target: TargetName
) -> None:
    text, *chip = options
    assert resolve_target(text, fakes.backends(statuses), *chip) == target


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
        *(
            ((H200,), options, OTHER_CHIP)
            for options in (("cuda:sm_80",), ("cuda", "sm_80"), ("auto", "sm_80"))
        ),
    ],
)
def test_a_target_that_does_not_work_here_is_refused_with_every_reason(
    statuses: tuple[TargetStatus, ...], options: tuple[str, ...], message: str
) -> None:
    text, *chip = options
    with pytest.raises(UsageError, match=message):
        resolve_target(text, fakes.backends(statuses), *chip)


def test_a_run_is_refused_where_candidates_only_compile() -> None:
    cuda = TargetStatus("cuda", False, "compiles only: no driver", can_compile=True, missing="no driver")
    line = (
        r"^target cuda:sm_80: nothing runs here: no driver; to verify without a GPU, and carry the result "
        r"to one by tuner bundle export: tuner tune matmul 8x8x8 --target simulator:sm_80$"
    )
    with pytest.raises(UsageError, match=line):
        require_runs_here(TargetName("cuda", "sm_80"), fakes.backends((cuda,)), "tuner tune matmul 8x8x8")
    here = TargetStatus("cuda", True, "an A100", chip="sm_80")
    require_runs_here(TargetName("cuda", "sm_80"), fakes.backends((here,)), "tuner tune matmul 8x8x8")
