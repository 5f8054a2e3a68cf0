import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.results.regression.test_gate import changed
from tests.tuning import fakes


@pytest.fixture
def baseline(tuned: Tuner, tmp_path: Path) -> Path:
    file = tmp_path / "gate.json"
    done = tuned("gate", "--baseline", str(file), "--record", "best")
    assert done.code == 0, done.err
    assert done.out == f"recorded 1 kernel; {file} has 1\n"
    return file


def test_unchanged_code_passes(tuned: Tuner, baseline: Path) -> None:
    done = tuned("gate", "--baseline", str(baseline))
    assert done.code == 0
    assert "### tuner gate: passed" in done.out
    assert "| matmul 8x8x8 f32 nn none fake | same code | - |" in done.out
    empty = ("--summary", "")  # a variable of CI, elsewhere
    assert tuned("gate", "--baseline", str(baseline), *empty).code == 0


def test_slower_code_exits_with_1_and_a_table(tuned: Tuner, baseline: Path, tmp_path: Path) -> None:
    tuned.backends = changed(x=8)
    done = tuned("gate", "--baseline", str(baseline), "--summary", str(tmp_path / "summary.md"))
    assert done.code == 1
    assert "### tuner gate: 1 of 1 kernel stopped the gate" in done.out
    row = "| **slower** | +100.0% | +100.0% .. +100.0% | 0.0% | 1 ms | 2 ms | reliable |"
    assert row in done.out
    assert row in (tmp_path / "summary.md").read_text()
    assert "fake: slower, +100.0% time (99 % interval +100.0% .. +100.0%), 5 sessions" in done.err
    assert tuned("gate", "--baseline", str(baseline), "--max-slowdown", "200%").code == 0


def test_json_reports_all(tuned: Tuner, baseline: Path) -> None:
    tuned.backends = changed(x=8)
    document = tuned("gate", "--baseline", str(baseline), "--json").json
    (entry,) = document["entries"]
    assert (document["passed"], entry["status"], entry["slowdown"]) == (False, "slower", pytest.approx(1.0))
    assert (entry["recorded_s"], entry["then_s"], entry["now_s"]) == (1e-3, 1e-3, 2e-3)
    assert (entry["slowdown_unknown"], entry["reliability"]) == (None, "reliable")


def test_code_that_is_as_fast_has_no_ratio(tuned: Tuner, baseline: Path) -> None:
    tuned.backends = changed(another=1)
    (entry,) = tuned("gate", "--baseline", str(baseline), "--json").json["entries"]
    assert (entry["status"], entry["slowdown"], entry["interval"]) == ("not slower", None, [0.0, 0.0])
    assert entry["slowdown_unknown"].startswith("not distinguishable, the 99 % interval")
    assert "| not slower | - | +0.0% .. +0.0% |" in tuned("gate", "--baseline", str(baseline)).out


def test_a_reason_makes_no_markdown(tuned: Tuner, baseline: Path) -> None:
    tuned.backends = changed(at="compile", deed="fail", note="|")
    done = tuned("gate", "--baseline", str(baseline))
    assert done.code == 1
    assert "- matmul 8x8x8 f32 nn none fake: fails at stage compile: fails at compile" in done.out


def test_a_trial_takes_the_place_of_the_best(tuned: Tuner, baseline: Path) -> None:
    (trial,) = tuned("history", "--sort", "-median", "--limit", "1", "--json").json
    done = tuned("gate", "--baseline", str(baseline), "--record", str(trial["trial"]), "--json")
    assert done.json == {"file": str(baseline), "recorded": 1, "entries": 1}
    (entry,) = json.loads(baseline.read_text())["entries"]
    assert entry["measurement"]["median_s"] == trial["median_s"]


def test_replays_and_empty_databases_are_refused(tuner: Tuner, tmp_path: Path) -> None:
    done = tuner("gate", "--baseline", str(tmp_path / "gate.json"), "--record", "best")
    assert done.code == 2
    assert "record: nothing was timed on this machine\nhint: tuner tune" in done.err
    assert "cannot be read" in tuner.refused("gate", "--baseline", str(tmp_path / "gate.json"))
    recording = files("tuner") / "space" / "recorded" / "matmul_48x64x40.t4.json.gz"
    text = ("matmul", "48x64x40", "--target", f"replay:{recording}", "--trials", "2", "--sampler", "random")
    assert tuner("tune", *text).code == 0
    assert "trial 1: is a replay: nothing was timed" in tuner.refused(
        "gate", "--baseline", str(tmp_path / "gate.json"), "--record", "1"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (("--record", "first"), "ID: found 'first', allowed the number of a trial"),
        (("--max-slowdown", "much"), "max-slowdown: found 'much', allowed a percentage"),
    ],
)
def test_wrong_arguments_exit_with_2(
    tuned: Tuner, baseline: Path, text: tuple[str, ...], message: str
) -> None:
    assert message in tuned.refused("gate", "--baseline", str(baseline), *text)


def test_a_trial_of_another_machine_is_not_recorded(tuned: Tuner) -> None:
    kind = fakes.changed_kind(tuned.backends.kinds["fake"], machine=lambda _target: fakes.OTHER_MACHINE)
    elsewhere = replace(tuned.backends, kinds={**tuned.backends.kinds, "fake": kind})
    done = replace(tuned, backends=elsewhere)("gate", "--baseline", "gate.json", "--record", "1")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(": trial 1: was timed on 'fake', this machine is 'another'\n")
    assert done.err.count("\n") == 1


def test_a_best_trial_that_no_longer_compiles_is_skipped(tuned: Tuner, tmp_path: Path) -> None:
    failing = replace(tuned, backends=changed(at="compile", deed="fail"))
    file = tmp_path / "gate.json"
    done = failing("gate", "--baseline", str(file), "--record", "best")
    assert (done.code, done.out) == (0, f"recorded 0 kernels; {file} has 0\n")
    assert done.err.startswith("note: skipped trial ")
    (trial,) = tuned("history", "--sort", "median", "--limit", "1", "--json").json
    assert failing("gate", "--baseline", str(file), "--record", str(trial["trial"])).code == 2


def best_of(tuned: Tuner) -> int:
    """Returns the trial that is exported."""
    trial: int = tuned("export", "matmul", "8x8x8", "--json").json["trial"]
    return trial


def test_bests_that_hold_exit_with_0(tuned: Tuner) -> None:
    done = tuned("audit")
    assert done.code == 0
    assert "matmul 8x8x8 f32 nn none fake  unchanged: the same script and compiler" in done.out
    assert done.out.endswith("1 best audited, 0 flagged\n")


def test_slower_code_is_flagged_and_told_as_stale(tuned: Tuner) -> None:
    tuned.backends = changed(x=9)
    best = best_of(tuned)
    done = tuned("audit")
    assert done.code == 1
    assert "slower: 5 ms, other code, recorded 1 ms in another session (run 2)" in done.out
    assert "stale     slower in an audit: other code" in tuned("show", str(best)).out
    assert best_of(tuned) != best
    assert "  stale  " in tuned("history", "--run", "1").out


def test_json_reports_every_best(tuned: Tuner) -> None:
    tuned.backends = changed(comment="other")
    document = tuned("audit", "--json").json
    (best,) = document["audited"]
    found = [best[key] for key in ("status", "holds", "recorded_s", "now_s")]
    assert found == ["same code", True, 1e-3, None]
    assert document["flagged"] == 0


def test_only_what_is_asked_for_is_audited(tuned: Tuner) -> None:
    assert tuned("audit", "--shape", "9x9x9").out == "0 bests audited, 0 flagged\n"
    assert "max-slowdown: found 'much'" in tuned.refused("audit", "--max-slowdown", "much")
