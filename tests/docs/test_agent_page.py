"""The loop of the page on agents, as printed, with a scripted agent that climbs from a naive script."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tuner
from tests.docs.guide import ROOT
from tests.docs.test_python_examples import executed, python_of
from tuner.core.candidate import Candidate
from tuner.runtime.cpu.host import describe_machine
from tuner.space.scripts.schedule import Schedule

PAGE = "docs/guides/agent.md"
# Bufferized by upstream's pass, lowered to loops: right, and slow.
NAIVE = """module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    transform.yield
  }
}
"""
SIZES = {"outer_loop": (0, 1), "tile_m": (2, 4, 8, 16), "tile_n": (16, 32, 64), "unroll_k": (1, 2, 4)}
START = {"outer_loop": 1, "tile_m": 2, "tile_n": 16, "unroll_k": 1}
SUBMISSIONS = 30
SEARCHED = 24  # trials of the search whose best trial is to be reached


class Climber:
    """A scripted agent: tiles and vectorizes, then goes on from the fastest sizes with an untried neighbour.

    It goes by the speed relative to the best trial in the round that timed both: the machine may be busy.
    """

    def __init__(self) -> None:
        self._schedule = Schedule((ROOT / "examples" / "matmul_knobs.mlir").read_text())
        self.answers: list[dict[str, Any]] = []
        self._asked = ""  # the sizes of the last script, as JSON
        self._speeds: dict[str, float] = {}  # by sizes

    def write(self, answer: dict[str, Any], _script: str) -> str | None:
        """Returns the next script; None where all sizes were tried."""
        self.answers.append(answer)
        if self._asked:
            self._speeds[self._asked] = speed_of(answer)
        self._asked = next(self._untried(), "")
        if not self._asked:
            return None
        return self._schedule.select(Candidate.of("knobs", json.loads(self._asked)))

    def _untried(self) -> Iterator[str]:
        if not self._speeds:
            yield json.dumps(START)
        for known in sorted(self._speeds, key=lambda sizes: -self._speeds[sizes]):
            yield from (sizes for sizes in neighbours(json.loads(known)) if sizes not in self._speeds)


def neighbours(sizes: dict[str, int]) -> Iterator[str]:
    for name, options in SIZES.items():
        at = options.index(sizes[name])
        for size in options[max(0, at - 1) : at + 2]:
            changed = sizes | {name: size}
            if changed["tile_m"] * changed["tile_n"] <= 384:
                yield json.dumps(changed)


def speed_of(answer: dict[str, Any]) -> float:
    """Returns the speed relative to the best trial of the search; 0 of a script that failed."""
    if not answer["correct"]:
        return 0.0
    return float(answer["best"]["now_s"] / answer["median_s"])


@pytest.mark.mlir
@pytest.mark.slow
@pytest.mark.skipif(describe_machine().isa != "avx512", reason="the sizes of the schedule are for AVX-512")
def test_the_loop_of_the_page_climbs_from_a_naive_script_to_within_a_tenth_of_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best is that of a search of all strategies; speeds are compared in the round that timed both."""
    monkeypatch.setenv("TUNER_DB", str(tmp_path / "results.db"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    tuner.tune(tuner.Matmul(128, 128, 128), target="cpu", trials=SEARCHED, db=tmp_path / "results.db")
    agent = Climber()
    improved = executed(python_of(PAGE))["improved"]
    assert improved(agent.write, "matmul 128x128x128 f32", NAIVE, SUBMISSIONS)
    assert len(agent.answers) <= SUBMISSIONS
    assert all(answer["correct"] for answer in agent.answers)
    speeds = list(map(speed_of, agent.answers))
    assert speeds[0] < 0.1
    assert max(speeds) > 0.9
