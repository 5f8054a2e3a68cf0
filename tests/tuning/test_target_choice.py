"""Which target a word means: its kind and chip, and what works on a machine."""

import re

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
        (
            ("cuda:sm_90", "sm_80"),
            "^chip 'sm_80' cannot be combined with target 'cuda:sm_90'; name ",
        ),
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


def test_auto_is_the_first_target_that_works() -> None:
    statuses = (TargetStatus("gpu", False, "no driver"), TargetStatus("cpu", True, "here"))
    assert resolve_target("auto", fakes.backends(statuses)) == TargetName("cpu")


def test_auto_is_never_a_target_without_times() -> None:
    untimed = TargetStatus("simulator", True, "no clock", is_timed=False)
    backends = fakes.backends((untimed, NO_GPU, TargetStatus("cpu", True, "here")))
    assert resolve_target("auto", backends) == TargetName("cpu")
    with pytest.raises(UsageError, match="target cpu, only with simulator, cuda"):
        resolve_target("auto", backends, "sm_80")
    with pytest.raises(UsageError, match="found none that works here: simulator: no clock"):
        resolve_target("auto", fakes.backends((untimed,)))


def test_a_target_that_only_compiles_may_be_asked_for() -> None:
    cuda = TargetStatus("cuda", False, "no driver", is_timed=False, can_compile=True)
    backends = fakes.backends((cuda,))
    assert resolve_target("cuda", backends, "sm_80") == TargetName("cuda", "sm_80")
    with pytest.raises(UsageError, match="chip: found 'sm_1', allowed sm_80, "):
        resolve_target("cuda:sm_1", backends)


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


def test_auto_prefers_a_gpu_and_takes_its_chip() -> None:
    statuses = (TargetStatus("cpu", True, "here"), TargetStatus("cuda", True, "NVIDIA H200", chip="sm_90"))
    backends = fakes.backends(statuses)
    assert resolve_target("auto", backends) == TargetName("cuda", "sm_90")
    assert resolve_target("cuda", backends) == TargetName("cuda", "sm_90")
    assert resolve_target("cpu", backends) == TargetName("cpu")
    assert resolve_target("cuda", backends, "sm_90a") == TargetName("cuda", "sm_90a")


@pytest.mark.parametrize(("text", "chip"), [("cuda:sm_80", ""), ("cuda", "sm_80"), ("auto", "sm_80")])
def test_code_for_another_chip_than_the_gpu_here_is_refused(text: str, chip: str) -> None:
    here = TargetStatus("cuda", True, "NVIDIA H200", chip="sm_90")
    backends = fakes.backends((here,))
    message = "^target cuda:sm_80: the GPU here is sm_90; --target cuda:sm_90, or simulator:sm_80$"
    with pytest.raises(UsageError, match=message):
        resolve_target(text, backends, chip)


def test_the_default_chip_is_that_of_the_gpu_here() -> None:
    backends = fakes.backends((TargetStatus("cuda", True, "an A100", chip="sm_80"),))
    assert resolve_target("cuda", backends) == TargetName("cuda", "sm_80")


def test_no_target_that_works_reports_every_reason() -> None:
    statuses = (TargetStatus("gpu", False, "no driver"), TargetStatus("cpu", False, "no AVX2"))
    backends = fakes.backends(statuses)
    with pytest.raises(UsageError, match="found none that works here: gpu: no driver; cpu: no AVX2"):
        resolve_target("auto", backends)
    with pytest.raises(UsageError, match="target cpu: not available here: no AVX2"):
        resolve_target("cpu", backends)
    with pytest.raises(UsageError, match=re.escape("target: found 'tpu', allowed auto, gpu, cpu")):
        resolve_target("tpu", backends)
