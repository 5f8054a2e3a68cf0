"""Random points of GPU strategies are feasible, alike for a seed, and what is wrong with one is noticed."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fuzz_gpu import main, schedules, turns
from benchmarks.gpu_check.points import gpu_strategies
from tests.support.fuzzing import gpu_points
from tests.support.fuzzing.gpu_outcome import check, simulate
from tests.support.fuzzing.gpu_points import GpuKernelKind, draw, kinds
from tests.support.gpu_point import GpuPoint, feasible_set
from tests.tuning.fakes import present
from tuner.core.candidate import Candidate
from tuner.core.matmul import Matmul

pytestmark = pytest.mark.mlir

WGMMA = "matmul_gpu_wgmma"


@pytest.mark.slow
def test_points_are_feasible_and_alike_for_a_seed_and_have_the_knobs_that_are_asked_for() -> None:
    for entry in gpu_strategies():
        found = kinds(entry.name)
        words = zip(*((kind.dtype, kind.layout, kind.epilogue) for kind in found), strict=True)
        assert [*map(set, words)] == [set(entry.dtypes), set(entry.layouts), set(entry.epilogues)]
    assert {kind.chip for kind in kinds(WGMMA)} == {"sm_90a"}
    for kind in (kinds("matmul_gpu_mma_sync")[0], kinds(WGMMA)[-1]):
        point = draw(kind, np.random.default_rng(5))
        assert feasible_set(point.problem, kind.strategy, kind.chip).row_of(point.candidate) is not None
        assert point == draw(kind, np.random.default_rng(5))
    naive = "matmul_gpu_naive"
    assert list(turns((naive, WGMMA), 5)) == [naive, WGMMA, WGMMA, naive, WGMMA]
    rng = np.random.default_rng(0)
    of_naive = [schedules(naive, rng) for _ in range(40)]
    assert {each[0] for each in of_naive} == {None}
    assert [len(each) for each in of_naive].count(2) in range(1, 20)
    assert len(schedules(WGMMA, rng)) == 4
    for seed in range(2):
        point = draw(kinds("matmul_gpu_mma_sync")[0], np.random.default_rng(seed), (("shared", "swizzle"),))
        assert dict(point.candidate.choices)["shared"] == "swizzle"
    point = draw(kinds(WGMMA)[0], np.random.default_rng(0), (("tiles", "2"),))  # a number, asked for as text
    assert dict(point.candidate.choices)["tiles"] == 2
    point = draw(kinds("matmul_gpu_simt")[0], np.random.default_rng(0), is_preferred=True)
    allowed = feasible_set(point.problem, point.candidate.strategy, point.chip)
    assert allowed.is_preferred[present(allowed.row_of(point.candidate))]
    nothing = GpuKernelKind(WGMMA, "sm_80", "f16", "nn", "none", "")
    message = r"found no knobs, allowed what GpuKernelKind.* has on any of 200 random shapes"
    with pytest.raises(LookupError, match=message):
        draw(nothing, np.random.default_rng(0))


def fuzz(monkeypatch: pytest.MonkeyPatch, options: str) -> int:
    monkeypatch.setattr(sys, "argv", ["fuzz_gpu", *options.split()])
    return main()


@pytest.mark.slow
def test_a_fuzz_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, parts = tmp_path / "whole.json", tmp_path / "parts.json"
    monkeypatch.setattr(gpu_points, "LARGEST", 5)
    for points, output in ((2, whole), (1, parts), (2, parts)):
        options = f"--strategy matmul_gpu_naive --points {points} --output {output}"
        assert fuzz(monkeypatch, options) == 0
    assert json.loads(parts.read_text())["rows"] == json.loads(whole.read_text())["rows"]
    other = r"^--output: found a fuzz of .*'seed': 0.*, allowed one of .*'seed': 1"
    with pytest.raises(SystemExit, match=other):
        fuzz(monkeypatch, f"{options} --seed 1")
    assert fuzz(monkeypatch, f"{whole} {parts} --output {tmp_path / 'all.json'}") == 0
    together = json.loads((tmp_path / "all.json").read_text())
    assert together["summary"]["points"] == len(together["rows"]) == 4
    assert [each["seed"] for each in together["settings"]["fuzzes"]] == [0, 0]
    monkeypatch.setattr(gpu_points, "SHAPES_TRIED", 2)
    with pytest.raises(SystemExit, match=r"^--knob: found tiles=5, allowed what GpuKernelKind.* has on any"):
        fuzz(monkeypatch, f"--strategy {WGMMA} --knob tiles=5")
    with pytest.raises(SystemExit, match="2"):
        fuzz(monkeypatch, "--knob shared")


@pytest.mark.slow
def test_wrong_results_races_faults_bank_conflicts_and_what_does_not_compile_are_failures() -> None:
    problem = Matmul(8, 8, 72, "f16")  # of one block
    point = GpuPoint(problem, feasible_set(problem, WGMMA, "sm_90a").candidate(0), "sm_90a")
    found = check(point, (None, 7), 0)
    assert (found.failures, found.is_swizzled) == ((), False)
    assert 0.0 < found.max_error <= 1.0
    program = point.program()
    for instruction, edited in (("wgmma.fence.sync.aligned;", ""), ("mbarrier.init", "// mbarrier.init")):
        outcome = simulate(
            point, replace(program, text=program.text.replace(instruction, edited)), (None,), 0
        )
        assert not outcome.is_right
        assert outcome.failures[0].startswith("schedule None: ")
        assert instruction.partition(".")[0] in outcome.failures[0]
    (failure,) = check(replace(point, chip="sm_80"), (None,), 0).failures
    assert failure.startswith("compile: ")
    rng = np.random.default_rng(3)
    while True:
        point = draw(kinds("matmul_gpu_mma_sync")[0], rng)
        if dict(point.candidate.choices)["shared"] == "swizzle" and dict(point.candidate.choices)["depth"]:
            break
    program = point.program()
    assert simulate(point, program, (None,), 0).is_right
    knobs = dict(point.candidate.choices)
    plain = replace(point, candidate=Candidate.of(point.candidate.strategy, knobs | {"shared": "pad"}))
    conflicting = point.program(plain.script().replace("pad_bytes = 16", "pad_bytes = 0"))
    assert not simulate(plain, conflicting, (None,), 0).failures
    outcome = simulate(point, conflicting, (None,), 0)
    assert outcome.conflict_ratio > 1.0
    assert "found bank conflicts" in outcome.failures[-1]
