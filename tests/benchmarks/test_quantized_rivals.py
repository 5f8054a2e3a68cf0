"""Libraries with which benchmarks compare quantized matmuls, and which become baselines by an entry point."""

from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from benchmarks.quantized_rivals import BUILDERS, RIVALS
from tests.runtime.test_extensions import install
from tests.targets.cpu.test_quantized_baselines import FORMATS, problem_of
from tuner.core.interfaces import Effort
from tuner.core.problem import Problem
from tuner.models.quantized.quantized_baselines import QuantizedMatmul, drawn_operands
from tuner.runtime import extensions
from tuner.runtime.workers.worker import call_in_child
from tuner.targets.cpu.baseline import BaselineService
from tuner.targets.cpu.baseline_libraries import LIBRARIES, baseline_environment, chosen_libraries
from tuner.targets.cpu.evaluator import CpuEvaluator

pytestmark = [
    pytest.mark.mlir,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"),
]
QUICK = Effort(budget_s=0.005, min_samples=3, max_samples=6)
OF_BF16 = problem_of("i4-g32-f16", "bf16")
CASES = [
    (library, problem_of(weights, dtype, sizes))
    for library, rival in RIVALS.items()
    for weights in FORMATS
    for dtype in ("f32", "bf16")
    for sizes in ((1, 48, 256), (3, 48, 384), (2, 40, 128))
    if rival.multiplies(problem_of(weights, dtype, sizes))
]


def require_right(library: str, problem: Problem) -> str:
    """Returns the name of a library that multiplies three copies of random weights; wrong ones raise."""
    operands = drawn_operands(problem, np.random.default_rng(0))
    matmul = QuantizedMatmul(BUILDERS[library], problem, operands, 1, 3)
    assert matmul.require_right() > 0
    assert matmul.stopwatch(4) > 0
    return matmul.name


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("library", "problem"), CASES, ids=[f"{name}-{problem.key}" for name, problem in CASES]
)
def test_a_rival_multiplies_each_copy_right(library: str, problem: Problem) -> None:
    if RIVALS[library].find() is None:
        pytest.skip(f"{library} is not installed: {RIVALS[library].install}")
    # in a child: zentorch keeps what it packed by the address of weights that are gone
    work = partial(require_right, library, problem)
    environment = baseline_environment("", 1)
    name = call_in_child("baseline", work, 120.0, environment=environment)
    assert library.partition("-")[0] in name


def test_a_name_says_what_a_library_does_in_another_way() -> None:
    name = call_in_child("baseline", partial(require_right, "torch-int4pack", OF_BF16), 120.0)
    assert name.startswith("torch ")
    assert name.endswith(" int4pack, bf16 result, bf16 scales")


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    entry_point = "[tuner.baselines]\ntorch-int4pack = benchmarks.quantized_rivals:TORCH_LIBRARY\n"
    install(tmp_path, "rivals", entry_point)
    monkeypatch.syspath_prepend(str(tmp_path))
    extensions.entry_points.cache_clear()
    yield
    extensions.entry_points.cache_clear()


@pytest.mark.slow
def test_a_rival_with_an_entry_point_is_a_baseline_that_is_timed(registered: None) -> None:
    assert chosen_libraries("torch-int4pack", OF_BF16) == ("torch-int4pack",)
    assert LIBRARIES["torch-int4pack"].multiplies(OF_BF16)
    found = BaselineService(OF_BF16, 1, 0, "torch-int4pack").measure(QUICK)
    assert found.measurement.median_s > 0
    assert " int4pack" in found.name
    evaluator = CpuEvaluator(1, choice="torch-int4pack")
    (library,) = evaluator.load_baselines(OF_BF16, np.random.default_rng(0))
    assert library.failure == ""
    (time,) = evaluator.measure_together(OF_BF16, (library.work,), QUICK, np.random.default_rng(0))
    assert time.median_s > 0
