import csv
import io
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner, counts
from tests.db.test_groups import CAMPAIGN, MEMBERS, RESULT
from tests.db.values import COMPILER, MACHINE
from tests.fakes import bind
from tests.tuning import fakes
from tuner.core.candidate import Candidate
from tuner.core.errors import TunerError
from tuner.core.interfaces import Script
from tuner.core.machine import Machine
from tuner.core.runs import RunSettings
from tuner.db.store import Store
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace
from tuner.targets.interface import Plan
from tuner.targets.registry import real_backends


def test_every_trial_is_in_the_table_in_json_and_in_csv(tuned: Tuner) -> None:
    done = tuned("history")
    assert done.code == 0
    header, *rows, shared = done.out.splitlines()
    assert len(rows) == 20
    assert "GFLOP/s" in header
    assert shared == "in every row: run 1, problem matmul 8x8x8 f32, target fake, threads 1"
    by_flag, by_format = tuned("history", "--json"), tuned("history", "--format", "json")
    assert by_flag.json == by_format.json
    assert [trial["status"] for trial in by_flag.json] == ["measured"] * 20
    cells = list(csv.DictReader(io.StringIO(tuned("history", "--format", "csv").out)))
    assert len(cells) == 20
    assert (cells[0]["shape"], cells[0]["unreliable"], cells[0]["stale"]) == ("8x8x8", "", "")


def test_t4_is_json_already(tuned: Tuner) -> None:
    for text in (("history",), ("export", "matmul", "8x8x8")):
        assert tuned(*text, "--format", "t4", "--json").json == tuned(*text, "--format", "t4").json


def test_trials_are_sorted_limited_and_the_best_is_one_per_problem(tuned: Tuner) -> None:
    fastest = tuned("history", "--sort", "median", "--limit", "3", "--json").json
    times = [trial["median_s"] for trial in fastest]
    assert times == sorted(times)
    assert len(times) == 3
    assert fastest[0]["knobs"]["x"] == 7
    assert len(tuned("history", "--best", "--json").json) == 1


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (("--op", "matmul", "--shape", "8x8x8", "--dtype", "f32", "--target", "fake"), 20),
        (("--layout", "nn", "--epilogue", "none", "--threads", "1", "--machine", "fake"), 20),
        (("--strategy", "fake", "--status", "measured", "--run", "1", "--since", "2020-01-01"), 20),
        (("--shape", "9x9x9"), 0),
        (("--status", "failed"), 0),
        (("--since", "2999-12-31T23:59"), 0),
    ],
)
def test_conditions_choose(tuned: Tuner, text: tuple[str, ...], count: int) -> None:
    assert len(tuned("history", *text, "--json").json) == count


def test_show_reports_a_trial(tuned: Tuner) -> None:
    best = tuned("history", "--best", "--json").json[0]["trial"]
    done = tuned("show", str(best))
    assert "strategy  fake" in done.out
    assert "samples of 1 call" in done.out
    assert "interleaved" in done.out
    document = tuned("show", str(best), "--json").json
    assert document["trial"] == best
    assert document["script"]


def test_show_reports_a_run(tuned: Tuner) -> None:
    for text in (("run:1",), ("--run", "1")):
        done = tuned("show", *text)
        assert "run       1: done" in done.out
        assert "exhaustive, seed 0, budget 20 trials" in done.out
        document = tuned("show", *text, "--json").json
        assert document["counts"]["measured"] == 20
        assert document["roofline"] == {"flop_per_s": 2e9, "bytes_per_s": 1e9, "flop_source": "measured"}


def test_explain_reports_the_stage_and_reason_of_a_failure_even_to_bind(tuner: Tuner) -> None:
    tuner.backends = fakes.backends(bind=lambda *_: fakes.failing_bind)
    tuner("tune", "matmul", "8x8x8", "--trials", "1")
    done = tuner("explain", "1")
    assert "trial 1 failed at stage verify: element (0, 1): found 2, expected 1" in done.out
    assert tuner("explain", "1", "--json").json["stage"] == "verify"

    def fail(chosen: Candidate) -> Script:
        return bind(Candidate.of("fake", dict(chosen.choices) | {"deed": "fail", "at": "bind"}))

    tuner.backends = fakes.backends(bind=lambda *_: fail)
    tuner("tune", "matmul", "8x8x8", "--trials", "1", "--fresh")
    assert "failed at stage bind" in tuner("explain", "2").out
    assert "script" not in tuner("explain", "2").out
    assert "has no script: it was never bound" in tuner("export", "--trial", "2").err


def constrained(_settings: RunSettings, _machine: Machine) -> Plan:
    rule = parse("x < 3", "space.yaml: fake.constraints[0]")
    preference = parse("x != 1", "space.yaml: fake.preferences[0]")
    space = SearchSpace("fake", (Knob("x", (1, 2, 3, 4)),), (rule,), preferences=(preference,))
    return Plan(FeasibleSet.of((space,)))


def test_explain_names_the_constraint_or_the_preference_that_a_point_breaks(tuner: Tuner) -> None:
    tuner.backends = fakes.backends(plan=constrained)
    text = ("explain", "matmul", "8x8x8")
    why = "fake(x=4) is not feasible for matmul 8x8x8 f32 nn none: space.yaml: fake.constraints[0]: x < 3"
    assert why in tuner(*text, "fake(x=4)").out
    assert tuner(*text, "fake(x=4)", "--json").json["constraint"] == "x < 3"
    assert "is feasible" in tuner(*text, "fake(x=2)").out
    last = "feasible for matmul 8x8x8 f32 nn none, and comes last: space.yaml: fake.preferences[0]: x != 1\n"
    assert f"fake(x=1) is {last}" in tuner(*text, "fake(x=1)").out
    assert tuner(*text, "fake(x=1)", "--json").json["preference"] == "x != 1"
    assert tuner(*text, "fake(x=2)", "--json").json["preference"] is None


def test_explain_takes_some_of_the_knobs(tuner: Tuner) -> None:
    text = ("explain", "matmul", "8x8x8", "fake(x=7)")
    done = tuner(*text)
    assert "fake(x=7) is in 2 feasible combinations for matmul 8x8x8 f32 nn none\n" in done.out
    assert "it leaves out comment: with these" in done.out
    document = tuner(*text, "--json").json
    assert (document["missing"], document["feasible_combinations"]) == (["comment"], 2)
    assert "knob of fake: found 'y', allowed x, comment" in tuner(*text[:3], "fake(y=7)").err


def test_passes_are_of_a_trial_that_compiles_and_stages_of_a_script_that_applies(tuned: Tuner) -> None:
    assert tuned.refused("show", "run:1", "--passes").startswith("error: --passes needs a trial's ID")
    assert tuned("show", "1", "--passes").code == 2

    def refuse(script: str, payload: str, allows_effects: bool = False) -> str:
        raise TunerError("apply: found no op to match")

    refusing = Tuner(tuned.database, replace(tuned.backends, apply=refuse))
    assert [stage["stage"] for stage in refusing("diff", "1", "2", "--json").json["stages"]] == ["script"]


def test_the_best_is_marked_and_why_the_first_by_time_is_not_it(tuned: Tuner) -> None:
    with Store.open(str(tuned.database)) as store:
        best = tuned("history", "--best", "--json").json[0]["trial"]
        store.mark_stale(best, "failed in an audit")
    (next_best,) = tuned("history", "--best", "--json").json
    assert next_best["is_best"]
    listed = tuned("history", "--sort", "median")
    assert f"best: trial {next_best['trial']}, not {best}: its time no longer holds" in listed.out
    (marked,) = [line for line in listed.out.splitlines() if "measured, best" in line]
    assert marked.split()[0] == str(next_best["trial"])
    assert "best: trial" not in tuned("history").out
    rows = csv.DictReader(io.StringIO(tuned("history", "--format", "csv").out))
    assert [row["trial"] for row in rows if row["is_best"] == "True"] == [str(next_best["trial"])]
    exported = tuned("export", "matmul", "8x8x8", "--target", "fake", "--json", "--format", "json")
    assert exported.json["trial"] == next_best["trial"]
    page = tuned.database.with_suffix(".html")
    assert tuned("report", "-o", str(page)).code == 0
    assert f"tuner export --trial {next_best['trial']} -o best.mlir" in page.read_text()
    recorded = tuned("gate", "--baseline", str(tuned.database.with_suffix(".json")), "--record", "best")
    assert f": trial {next_best['trial']}" in recorded.err


def test_early_stopped_trials_look_like_no_result(tuned: Tuner) -> None:
    (trial, *_) = [each for each in tuned("history", "--json").json if each["early_stopped_after"]]
    least_ms, samples = trial["median_s"] * 1e3, trial["early_stopped_after"]
    number, bound = str(trial["trial"]), f"> {least_ms:.4g} ms"
    text = f"{bound}, early-stopped after {samples} samples"
    (row,) = [line for line in tuned("history").out.splitlines() if line.split()[0] == number]
    assert re.search(rf"early-stopped +{bound} +- +-", row)
    shown = tuned("show", number)
    assert f"time      {text} of 1 call" in shown.out
    assert "interval" not in shown.out
    assert "speed" not in shown.out
    document = tuned("show", number, "--json").json
    assert (document["measurement"]["interval_s"], document["measurement"]["is_complete"]) == (None, False)
    assert document["early_stopped_after"] == samples
    best = tuned("history", "--best", "--json").json[0]["trial"]
    assert text in " ".join(tuned("diff", number, str(best), "--show", "none").out.split())
    document = tuned("diff", number, str(best), "--show", "none", "--json").json
    assert document["first"]["early_stopped_after"] == samples
    rows = csv.DictReader(io.StringIO(tuned("history", "--format", "csv").out))
    assert {row["trial"]: row["early_stopped_after"] for row in rows}[number] == str(samples)
    assert text in tuned("explain", number).out
    page = tuned.database.with_suffix(".html")
    tuned("report", "-o", str(page))
    assert text.replace(">", "&gt;") in page.read_text()
    assert "95 % interval" not in tuned("export", "--trial", number).out


def test_the_machine_is_reported_where_the_trials_are_of_several(tuned: Tuner) -> None:
    assert "machine" not in tuned("history").out
    tuned.backends = fakes.backends(machine=lambda _target: fakes.OTHER_MACHINE)
    assert tuned("tune", "matmul", "8x8x8", "--target", "fake", "--trials", "1").code == 0
    header, *rows = tuned("history").out.splitlines()
    assert "machine" in header
    assert ["another" in row for row in rows].count(True) == 1


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


def test_runs_that_are_the_same_do_not_differ_and_texts_are_of_the_stages_asked_for(tuned: Tuner) -> None:
    out = tuned("diff", "run:1", "run:1").out
    assert "knobs     the same" in out
    assert "differ    at no stage" in out
    assert "script    the same" in out
    interval = "the 95 % interval of the ratio of times is 1.000 .. 1.000"
    assert f"change    none: not distinguishable, {interval}" in out
    assert "+++ script of trial 2" in tuned("diff", "1", "2").out
    assert "+++" not in tuned("diff", "1", "2", "--show", "none").out
    assert "+++" not in tuned("diff", "1", "2", "--show", "payload").out  # which is the same


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


@pytest.fixture(scope="module")
def several_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gives a database with a run of 8x8x8 of which nothing failed, and one of 16x8x8 of which all failed."""
    tuner = Tuner(tmp_path_factory.mktemp("several") / "results.db", fakes.backends())
    assert tuner("tune", "matmul", "8x8x8", "--sampler", "exhaustive", "--trials", "20").code == 0
    tuner.backends = fakes.backends(bind=lambda *_: fakes.failing_bind)
    assert tuner("tune", "matmul", "16x8x8", "--trials", "2").code == 1
    return tuner.database


@pytest.fixture
def several(tuner: Tuner, several_database: Path) -> Tuner:
    shutil.copy(several_database, tuner.database)
    return tuner


@pytest.mark.slow
def test_a_run_is_a_line_with_its_best_and_the_latest_comes_first(several: Tuner) -> None:
    header, latest, first, shared = several("runs").out.splitlines()
    assert header.split() == [
        *("run", "begun", "problem", "status", "trials", "failed", "best", "reliability", "GFLOP/s")
    ]
    assert shared == "in every row: target fake"
    assert latest.split()[0] == "2"
    assert latest.split()[-5:] == ["2", "2", "-", "-", "-"]
    assert first.split()[0] == "1"
    assert "matmul 8x8x8 f32" in first
    assert "1 ms" in first
    listed = {run["run"]: run for run in several("runs", "--json").json}
    assert listed[1]["best"] == several("show", "run:1", "--json").json["best"]
    assert (listed[2]["best"], listed[2]["counts"]) == (None, counts(proposed=2, failed=2))


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        (("--shape", "8x8x8"), [1]),
        (("--op", "matmul", "--dtype", "f32", "--layout", "nn", "--output-dtype", "f32"), [2, 1]),
        (("--target", "fake", "--machine", "fake", "--threads", "1", "--epilogue", "none"), [2, 1]),
        (("--threads", "2"), []),
        (("--status", "done"), [2, 1]),
        (("--status", "interrupted"), []),
        (("--limit", "1"), [2]),
        (("--since", "2020-01-01"), [2, 1]),
        (("--since", "2999-01-01"), []),
    ],
)
def test_conditions_choose_runs(several: Tuner, options: tuple[str, ...], runs: list[int]) -> None:
    assert [run["run"] for run in several("runs", *options, "--json").json] == runs


# ``tuner show campaign:N``: a campaign with the program that it tuned, as text and as JSON.


def stored(tuner: Tuner, *, has_program: bool) -> None:
    with Store.open(str(tuner.database)) as store:
        campaign = store.begin_campaign(CAMPAIGN, MEMBERS, MACHINE, COMPILER, "0.1.0", None)
        if has_program:
            store.set_program_result(campaign, RESULT)


def test_the_program_of_a_campaign_is_shown_with_its_fusions_and_baselines(tuner: Tuner) -> None:
    stored(tuner, has_program=True)
    lines = tuner("show", "campaign:1").out.splitlines()
    assert "campaign  1: 2 problems, 0 trials in 0 s" in lines
    assert "loops   g1 linalg.pooling: no schedule" in lines
    assert "time    10 us a call, 20 us without tuning" in lines
    assert "gain    2.00 times as fast (95 % interval 1.90 .. 2.10)" in lines
    assert "reliable yes" in lines
    assert lines[-1].split() == ["onnxruntime", "-", "-", "not", "compared:", "not", "installed"]
    (row,) = (line.split() for line in lines if line.startswith("g0"))
    assert row[:9] == ["g0", "contraction", "15", "us", "8", "us", "reliable", "100%", "50%"]
    document = tuner("show", "campaign:1", "--json").json
    assert len(document["problems"]) == 2
    program = document["program"]
    assert (program["call_s"], program["speedup_interval"]) == (1e-5, [1.9, 2.1])
    assert [each["origin"] for each in program["groups"]] == ["tuned"]
    assert [each["reason"] for each in program["baselines"]] == [None, "not installed"]


def test_a_campaign_of_shapes_has_no_program_and_what_is_no_campaign_is_refused(tuner: Tuner) -> None:
    stored(tuner, has_program=False)
    assert tuner("show", "campaign:1", "--json").json["program"] is None
    assert tuner("show", "campaign:1").code == 0
    stored(tuner, has_program=False)
    assert "campaign" in tuner.refused("show", "campaign:7")
    assert "campaign:1 cannot be combined with --run" in tuner.refused("show", "campaign:1", "--ablation")
    assert "campaign" in tuner.refused("show", "campaign:one")


def test_the_ablation_of_a_run_in_tables(tuned: Tuner) -> None:
    done = tuned("show", "run:1", "--ablation")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].startswith("ablation  run 1: 20 measured trials of fake")
    headers = [number for number, line in enumerate(lines) if line.startswith("knob ")]
    assert [lines[number].split()[1] for number in headers] == ["held", "without"]
    for number in headers:
        assert sorted(line.split()[0] for line in lines[number + 1 : number + 3]) == ["comment", "x"]
    assert lines[-1].split()[:3] == ["fake", "20", "0"]


@pytest.mark.parametrize("options", [("run:1",), ("1",), ("--run", "1")])
def test_the_ablation_as_json(tuned: Tuner, options: tuple[str, ...]) -> None:
    document = tuned("show", *options, "--ablation", "--json").json
    assert (document["run"], document["strategy"], document["measured"]) == (1, "fake", 20)
    knob = next(each for each in document["knobs"] if each["knob"] == "x")
    assert (knob["best"], knob["held"]) == (7, 0)
    assert knob["gain"] is None  # x = 0 was tried twice
    comment = next(each for each in document["knobs"] if each["knob"] == "comment")
    assert comment["gain"]["trials"] == 10
    assert comment["gain"]["slower"] == pytest.approx(0, abs=0.05)


def test_too_few_trials_are_refused_in_one_line(tuner: Tuner) -> None:
    assert tuner("tune", "matmul", "8x8x8", "--trials", "5").code == 0
    done = tuner("show", "run:1", "--ablation")
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: run 1: ablation: found 5 measured trials of fake, it needs 20 or more\n"
