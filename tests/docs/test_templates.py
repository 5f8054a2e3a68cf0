"""The page of template names lists what templates see, no more and no less; its commands make a strategy."""

import re
from pathlib import Path

import pytest

from tests.docs.guide import OWN_DATABASE, ROOT, blocks_of, guide_in_copy
from tuner.api import history
from tuner.core.candidate import Candidate
from tuner.core.gpu import chip_of
from tuner.core.machine import Machine, gpu_machine, variables_of
from tuner.core.problem import Matmul, Problem
from tuner.space.scripts.header import read_provenance
from tuner.space.scripts.strategy import Binder

PAGE = (ROOT / "docs" / "reference" / "templates.md").read_text()
PROCESSOR = Machine("any", "any", "avx512", True, 2, 2, 49152, 1 << 20, 1 << 25, 1 << 34)
GUIDE = (ROOT / "docs" / "guides" / "new-strategy.md").read_text()
GPU = gpu_machine("simulator", chip_of("sm_90a"), "any")
EVERYWHERE, PROCESSORS, GPUS, FUSIONS = (
    frozenset(
        name
        for row in re.findall(r"^\| (`.*?) \|", part, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    )
    for part in re.split(r"^For (?:processors|GPUs|fusions) also:$", PAGE, flags=re.MULTILINE)
)


def seen(machine: Machine, problem: Problem) -> frozenset[str]:
    """Returns the names that a template without knobs sees."""
    binder = Binder((), problem, variables_of(problem, machine, threads=1), threads=1)
    return frozenset(binder.names_for(Candidate.of("any", {})))


def test_the_page_lists_what_templates_see() -> None:
    assert seen(PROCESSOR, Matmul(64, 64, 64)) == EVERYWHERE | PROCESSORS
    assert seen(GPU, Matmul(64, 64, 64)) == EVERYWHERE | GPUS
    fusion = Problem("rows", (4, 8, 1), "f32", fusion="func.func @group() {}")
    assert seen(PROCESSOR, fusion) == EVERYWHERE | PROCESSORS | FUSIONS


def test_a_panel_has_the_names_of_the_page() -> None:
    problem = Matmul(64, 64, 64)
    binder = Binder((), problem, variables_of(problem, PROCESSOR, threads=1), threads=1)
    (partition,) = binder.names_for(Candidate.of("any", {}))["panels"]
    (row,) = (line for line in PAGE.splitlines() if line.startswith("| `panels` |"))
    assert frozenset(re.findall(r"`(\w+)`", row)) == {"panels", "split", *partition}


@pytest.mark.slow
@pytest.mark.mlir
def test_a_strategy_of_ones_own_is_made_tested_tuned_and_exported(tmp_path: Path) -> None:
    guide_in_copy(tmp_path).follow(blocks_of(GUIDE))
    trials = [trial.record for trial in history(f"sqlite:///{tmp_path / OWN_DATABASE}") if trial.record]
    assert [(each.candidate.strategy, each.status) for each in trials] == [("my_strategy", "measured")] * 2
    assert read_provenance((tmp_path / "best.mlir").read_text(), "best.mlir").strategy == "my_strategy"
