"""Random points of CPU strategies are of every strategy, alike for a seed, and checked in a child process."""

import sys

import numpy as np
import pytest

from benchmarks.fuzz_cpu import fuzz, kinds_of, main
from tests.support.fuzzing.cpu_points import emulated_machine
from tests.support.fuzzing.fusion_points import FusionPoints
from tuner.core.instruction_sets import NEON
from tuner.core.problem_classes import TextProblem
from tuner.core.records import Verdict
from tuner.runtime.cpu.host import describe_machine
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file

pytestmark = pytest.mark.mlir
HERE = describe_machine()


@pytest.mark.skipif(HERE.isa == NEON, reason="no processor of x86-64")
def test_every_strategy_of_x86_has_kinds_of_points() -> None:
    drawn = {kind.strategy for machine in (HERE, emulated_machine()) for kind in kinds_of(machine, None)}
    entries = load_space_file(default_space_file()).strategies
    assert drawn == {entry.name for entry in entries if {"avx512", "avx2"} & {*entry.isas}}


def test_fusions_of_a_seed_are_alike_and_their_scripts_bind() -> None:
    points = FusionPoints(HERE)
    for kind in points.kinds(threads=2):
        point = points.draw(kind, np.random.default_rng(5))
        assert point == points.draw(kind, np.random.default_rng(5))
        assert isinstance(point.problem, TextProblem)
        assert (point.problem.operation, point.problem.dtype) == (kind.operation, kind.dtype)
        assert point.candidate.strategy == kind.strategy
        assert points.bind(point).text


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["contraction_cpu_packed", "convolution_cpu"])
def test_points_of_a_strategy_are_right_on_one_and_two_threads(strategy: str) -> None:
    kinds = [kind for kind in kinds_of(HERE, strategy) if kind.strategy == strategy]
    outcomes = list(fuzz(kinds, len(kinds), 3, 40, False))
    assert {outcome.point.threads for outcome in outcomes} == {1, 2}
    wrong = [
        (outcome.point.text, outcome.result)
        for outcome in outcomes
        if not isinstance(outcome.result, Verdict)
    ]
    assert wrong == []


def test_an_unknown_strategy_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["fuzz_cpu", "--strategy", "no_such_one"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "strategy: found no_such_one, allowed here: " in capsys.readouterr().err
