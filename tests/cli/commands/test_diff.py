import dataclasses
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tuner.core.errors import TunerError
from tuner.targets.registry import real_backends


def retimed(tuned: Tuner) -> list[int]:
    """Returns the trials of the final re-measurement, slowest first."""
    trials = [trial["trial"] for trial in tuned("history", "--sort", "-median", "--json").json]
    return [trial for trial in trials if tuned("show", str(trial), "--json").json["final"] is not None]


def test_two_trials_are_compared_by_what_differs(tuned: Tuner) -> None:
    slow, *_, fast = retimed(tuned)
    done = tuned("diff", str(slow), str(fast))
    assert done.code == 0
    header, *lines = done.out.splitlines()
    assert header.split() == ["trial", str(slow), "trial", str(fast)]
    named = {line.split()[0] for line in lines}
    assert {"time", "x", "change", "script"} <= named
    assert "strategy" not in named  # both are of one
    assert any(line.startswith(f"change    trial {fast} takes -") for line in lines)
    document = tuned("diff", str(slow), str(fast), "--json").json
    assert document["knobs"]["x"][1] == 7
    assert document["slowdown"] < 0
    assert document["first"]["trial"] == slow


def test_a_trial_does_not_differ_from_itself(tuned: Tuner) -> None:
    out = tuned("diff", "run:1", "run:1").out
    assert "knobs     the same" in out
    assert "differ    at no stage" in out
    assert "script    the same" in out
    interval = "the 95 % interval of the ratio of times is 1.000 .. 1.000"
    assert f"change    none: not distinguishable, {interval}" in out


def test_first_times_are_not_compared(tuned: Tuner) -> None:
    final_times = retimed(tuned)
    first = next(
        each["trial"] for each in tuned("history", "--json").json if each["trial"] not in final_times
    )
    done = tuned("diff", str(first), "run:1")
    assert "change    unknown: not timed interleaved in one round" in done.out
    document = tuned("diff", str(first), "run:1", "--json").json
    assert document["second"]["trial"] == tuned("show", "run:1", "--json").json["best"]["trial"]
    assert (document["slowdown"], document["slowdown_interval"]) == (None, None)
    assert document["slowdown_unknown"] == "not timed interleaved in one round"


def test_texts_are_shown_of_the_stages_asked_for(tuned: Tuner) -> None:
    assert "+++ script of trial 2" in tuned("diff", "1", "2").out
    assert "+++" not in tuned("diff", "1", "2", "--show", "none").out
    assert "+++" not in tuned("diff", "1", "2", "--show", "payload").out  # which is the same


@pytest.mark.slow
@pytest.mark.mlir
def test_the_code_of_a_gpu_is_counted_by_its_instructions(tmp_path: Path) -> None:
    tuner = Tuner(tmp_path / "results.db", real_backends())
    text = ("--target", "simulator", "--strategy", "matmul_gpu_simt", "--sampler", "random")
    assert tuner("tune", "matmul", "16x16x16", *text, "--trials", "2", "--workers", "1").code == 0
    document = tuner("diff", "1", "2", "--json").json
    stages = [stage["stage"] for stage in document["stages"]]
    assert stages == ["script", "payload", "kernels", "nvvm", "code"]
    assert document["first_stage"] == "script"
    assert any(name.startswith(("ld.shared", "fma", "st.shared")) for name in document["instructions"])
    assert document["slowdown"] is None


def test_a_script_that_cannot_be_applied_ends_the_stages(tuned: Tuner) -> None:
    def refuse(script: str, payload: str, allows_effects: bool = False) -> str:
        raise TunerError("apply: found no op to match")

    refusing = Tuner(tuned.database, dataclasses.replace(tuned.backends, apply=refuse))
    stages = [stage["stage"] for stage in refusing("diff", "1", "2", "--json").json["stages"]]
    assert stages == ["script"]
