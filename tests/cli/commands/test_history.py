import csv
import io
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Tuner, counts, require, require_fields
from tests.db.test_campaigns import CAMPAIGN, MEMBERS, RESULT
from tests.db.values import COMPILER, MACHINE
from tests.fakes import bind
from tests.tuning import fakes
from tuner.core.candidate import Candidate
from tuner.core.errors import TunerError
from tuner.core.interfaces import Script
from tuner.core.machine import Machine
from tuner.core.runs import RunSettings
from tuner.db.store import Store
from tuner.results.output.tables import BEST_MARK, STOPPED_MARK
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace
from tuner.targets.registry import real_backends
from tuner.targets.target import Plan


def test_every_trial_is_in_the_table_in_json_and_in_csv(tuned: Tuner) -> None:
    done = tuned.done("history")
    header, *rows, shared, marks = done.out.splitlines()
    assert (len(rows), "GFLOP/s" in header) == (20, True)
    assert marks == f"{BEST_MARK}; {STOPPED_MARK}"
    unmarked = tuned("history --sort number --limit 1").out
    assert BEST_MARK not in unmarked
    assert STOPPED_MARK not in unmarked
    assert shared == "in every row: run 1, problem matmul 8x8x8 f32, target fake, threads 1"
    trials = tuned("history --json").json
    assert tuned("history --format json").json == trials
    assert [trial["status"] for trial in trials] == ["measured"] * 20
    cells = list(csv.DictReader(io.StringIO(tuned("history --format csv").out)))
    assert len(cells) == 20
    require_fields(cells[0], shape="8x8x8", unreliable="", stale="")


def test_a_table_has_the_latest_20_trials_and_says_of_how_many(tuned: Tuner) -> None:
    tuned.done("tune matmul 8x8x8 --sampler exhaustive --trials 20")
    *rows, shown = tuned.done("history").out.splitlines()
    assert shown == "the latest 20 of 40 trials; --limit 0 lists all"
    assert [row.split()[0] for row in rows[1:21]] == [str(trial) for trial in range(21, 41)]
    fastest = tuned.done("history --sort median").out
    assert fastest.endswith("the first 20 of 40 trials; --limit 0 lists all\n")
    assert "--limit 0" not in tuned.done("history --limit 0").out
    assert len(tuned.done("history --limit 0").out.splitlines()) > 40
    assert len(tuned.done("history --json").json) == 40
    assert len(tuned.done("history --format csv").out.splitlines()) == 41
    assert "limit: found -1, allowed 1 or more" in tuned.refused("history --limit -1")


@pytest.mark.slow
def test_a_table_has_the_latest_20_runs_and_says_of_how_many(tuned: Tuner) -> None:
    for _ in range(20):
        tuned.done("tune matmul 8x8x8 --trials 1")
    assert tuned.done("history --runs").out.endswith("the latest 20 of 21 runs; --limit 0 lists all\n")
    for phrase in ("history --runs --json", "history --runs --limit 0 --json"):
        assert len(tuned.done(phrase).json) == 21


@pytest.mark.parametrize(
    ("options", "trials"),
    [
        ("--limit 2", [19, 20]),  # the latest, in the order of a table
        ("--limit 2 --sort created", [19, 20]),
        ("--limit 2 --sort -created", [20, 19]),
        ("--limit 2 --shape 8x8x8", [19, 20]),
        ("--limit 30", [*range(1, 21)]),
    ],
)
def test_a_limit_leaves_the_latest_trials(tuned: Tuner, options: str, trials: list[int]) -> None:
    assert [each["trial"] for each in tuned(f"history --json {options}").json] == trials
    table = tuned.done(f"history {options}").out
    assert [int(number) for number in re.findall(r"^ *(\d+) ", table, re.MULTILINE)] == trials


def test_conditions_choose(tuned: Tuner) -> None:
    for conditions, count in (
        ("--op matmul --shape 8x8x8 --dtype f32 --target fake", 20),
        ("--sort median --limit 3", 3),
        ("--layout nn --epilogue none --threads 1 --machine fake", 20),
        ("--strategy fake --status measured --run 1 --since 2020-01-01", 20),
        *(("--shape 9x9x9", 0), ("--status failed", 0), ("--since 2999-12-31T23:59", 0)),
    ):
        assert len(tuned(f"history {conditions} --json").json) == count, conditions


def test_show_reports_a_trial_and_a_run(tuned: Tuner) -> None:
    best = tuned("history --best --json").json[0]["trial"]
    require(tuned("show", str(best)).out, "strategy  fake", "samples of 1 call", "interleaved")
    document = tuned("show", str(best), "--json").json
    assert document["trial"] == best
    assert document["script"]
    for command in ("show run:1", "show --run 1"):
        require(tuned(command).out, "run       1: done", "exhaustive, seed 0, budget 20 trials")
        document = tuned(f"{command} --json").json
        assert document["counts"]["measured"] == 20
        assert document["roofline"] == {"flop_per_s": 2e9, "bytes_per_s": 1e9, "flop_source": "measured"}


def test_show_lists_the_values_of_knobs_that_a_run_has_not_tried(tuner: Tuner, tuned: Tuner) -> None:
    assert tuned("show run:1 --json").json["untried"] == []  # an exhaustive search
    tuner.done("tune matmul 16x8x8 --sampler random --trials 3")
    tried = {trial["knobs"]["x"] for trial in tuner("history --run 2 --json").json}
    document = tuner("show run:2 --json").json
    (x,) = (knob for knob in document["untried"] if knob["knob"] == "x")
    assert {*x["values"], *tried} == set(range(10))
    listed = ", ".join(map(str, x["values"]))
    require(tuner("show run:2").out, f"untried   fake: x {listed} ({len(x['values'])} of 10)")


def test_explain_reports_the_stage_and_reason_of_a_failure_even_to_bind(tuner: Tuner) -> None:
    tuner.backends = fakes.backends(bind=lambda *_: fakes.failing_bind)
    tuner("tune matmul 8x8x8 --trials 1")
    why = "trial 1 failed at stage verify: element (0, 1): found 2, expected 1"
    assert why in tuner("explain 1").out
    assert tuner("explain 1 --json").json["stage"] == "verify"

    def fail(chosen: Candidate) -> Script:
        return bind(Candidate.of("fake", dict(chosen.choices) | {"deed": "fail", "at": "bind"}))

    tuner.backends = fakes.backends(bind=lambda *_: fail)
    tuner("tune matmul 8x8x8 --trials 1 --fresh")
    require(tuner("explain 2").out, "failed at stage bind", without="script")
    assert "has no script: it was never bound" in tuner("export --trial 2").err


def constrained(_settings: RunSettings, _machine: Machine) -> Plan:
    rule = parse("x < 3", "space.yaml: fake.constraints[0]")
    preference = parse("x != 1", "space.yaml: fake.preferences[0]")
    space = SearchSpace("fake", (Knob("x", (1, 2, 3, 4)),), (rule,), preferences=(preference,))
    return Plan(FeasibleSet.of((space,)))


def test_explain_names_the_constraint_or_the_preference_that_a_point_breaks(tuner: Tuner) -> None:
    tuner.backends = fakes.backends(plan=constrained)
    explain = "explain matmul 8x8x8"
    why = "fake(x=4) is not feasible for matmul 8x8x8 f32 nn none: space.yaml: fake.constraints[0]: x < 3"
    assert why in tuner(f"{explain} fake(x=4)").out
    assert tuner(f"{explain} fake(x=4) --json").json["constraint"] == "x < 3"
    assert "is feasible" in tuner(f"{explain} fake(x=2)").out
    last = "feasible for matmul 8x8x8 f32 nn none, and comes last: space.yaml: fake.preferences[0]: x != 1\n"
    assert f"fake(x=1) is {last}" in tuner(f"{explain} fake(x=1)").out
    assert tuner(f"{explain} fake(x=1) --json").json["preference"] == "x != 1"
    assert tuner(f"{explain} fake(x=2) --json").json["preference"] is None


def test_explain_takes_some_of_the_knobs(tuner: Tuner) -> None:
    text = "explain matmul 8x8x8 fake(x=7)"
    feasible = "fake(x=7) is in 2 feasible combinations for matmul 8x8x8 f32 nn none\n"
    require(tuner(text).out, feasible, "it leaves out comment: with these")
    require_fields(tuner(f"{text} --json").json, missing=["comment"], feasible_combinations=2)
    assert "knob of fake: found 'y', allowed x, comment" in tuner(text.replace("x=", "y=")).err


def test_passes_are_of_a_trial_that_compiles_and_stages_of_a_script_that_applies(tuned: Tuner) -> None:
    assert tuned.refused("show run:1 --passes").startswith("error: --passes needs a trial's ID")
    assert tuned("show 1 --passes").code == 2

    def refuse(*_: object, **__: object) -> str:
        raise TunerError("apply: found no op to match")

    refusing = Tuner(tuned.database, fakes.changed(tuned.backends, apply=refuse))
    assert [stage["stage"] for stage in refusing("diff 1 2 --json").json["stages"]] == ["script"]


def test_the_best_is_marked_and_why_the_first_by_time_is_not_it(tuned: Tuner) -> None:
    with Store.open(str(tuned.database)) as store:
        best = tuned("history --best --json").json[0]["trial"]
        store.mark_stale(best, "failed in an audit")
    (next_best,) = tuned("history --best --json").json
    assert next_best["is_best"]
    listed = tuned("history --sort median")
    assert BEST_MARK not in listed.out
    assert f"best: trial {next_best['trial']}, not {best}: its time no longer holds" in listed.out
    (marked,) = [line for line in listed.out.splitlines() if "measured, best" in line]
    assert marked.split()[0] == str(next_best["trial"])
    assert "best: trial" not in tuned("history").out
    rows = csv.DictReader(io.StringIO(tuned("history --format csv").out))
    assert [row["trial"] for row in rows if row["is_best"] == "True"] == [str(next_best["trial"])]
    exported = tuned("export matmul 8x8x8 --target fake --json --format json")
    assert exported.json["trial"] == next_best["trial"]
    page = tuned.database.with_suffix(".html")
    assert tuned("report -o", str(page)).code == 0
    assert f"tuner export --trial {next_best['trial']} -o best.mlir" in page.read_text()
    recorded = tuned("check --baseline", str(tuned.database.with_suffix(".json")), "--record", "best")
    assert f": trial {next_best['trial']}" in recorded.err


def test_early_stopped_trials_look_like_no_result(tuned: Tuner) -> None:
    (trial, *_) = [each for each in tuned("history --json").json if each["early_stopped_after"]]
    least_ms, samples = trial["median_s"] * 1e3, trial["early_stopped_after"]
    number, bound = str(trial["trial"]), f"> {least_ms:.4g} ms"
    text = f"{bound}, early-stopped after {samples} samples"
    (row,) = [line for line in tuned("history").out.splitlines() if line.split()[0] == number]
    assert re.search(rf"early-stopped +{bound} +- +-", row)
    shown = tuned("show", number).out
    require(shown, f"time      {text} of 1 call", without="interval")
    assert "speed" not in shown
    document = tuned("show", number, "--json").json
    require_fields(document["measurement"], interval_s=None, is_complete=False)
    assert document["early_stopped_after"] == samples
    best = tuned("history --best --json").json[0]["trial"]
    assert text in " ".join(tuned("diff", number, str(best), "--show", "none").out.split())
    document = tuned("diff", number, str(best), "--show", "none", "--json").json
    assert document["first"]["early_stopped_after"] == samples
    rows = csv.DictReader(io.StringIO(tuned("history --format csv").out))
    assert {row["trial"]: row["early_stopped_after"] for row in rows}[number] == str(samples)
    assert text in tuned("explain", number).out
    page = tuned.database.with_suffix(".html")
    tuned("report -o", str(page))
    assert text.replace(">", "&gt;") in page.read_text()
    assert "95 % interval" not in tuned("export --trial", number).out


def test_the_machine_is_reported_where_the_trials_are_of_several(tuned: Tuner) -> None:
    assert "machine" not in tuned("history").out
    tuned.backends = fakes.backends(machine=lambda _target: fakes.OTHER_MACHINE)
    tuned.done("tune matmul 8x8x8 --target fake --trials 1")
    header, *rows = tuned("history").out.splitlines()
    assert "machine" in header
    assert ["another" in row for row in rows].count(True) == 1


def retimed(tuned: Tuner) -> list[int]:
    trials = [trial["trial"] for trial in tuned("history --sort -median --json").json]
    return [trial for trial in trials if tuned("show", str(trial), "--json").json["final"] is not None]


def test_two_trials_are_compared_by_what_differs(tuned: Tuner) -> None:
    slow, *_, fast = retimed(tuned)
    header, *lines = tuned.done("diff", str(slow), str(fast)).out.splitlines()
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
    out = tuned("diff run:1 run:1").out
    require(out, "knobs     the same", "differ    at no stage", "script    the same")
    interval = "the 95 % interval of the ratio of times is 1.000 .. 1.000"
    assert f"change    none: not distinguishable, {interval}" in out
    assert "+++ script of trial 2" in tuned("diff 1 2").out
    assert "+++" not in tuned("diff 1 2 --show none").out
    assert "+++" not in tuned("diff 1 2 --show payload").out  # which is the same


def test_first_times_are_not_compared(tuned: Tuner) -> None:
    final_times = retimed(tuned)
    first = next(each["trial"] for each in tuned("history --json").json if each["trial"] not in final_times)
    why = "not timed interleaved in one round"
    assert f"change    unknown: {why}" in tuned("diff", str(first), "run:1").out
    document = tuned("diff", str(first), "run:1", "--json").json
    assert document["second"]["trial"] == tuned("show run:1 --json").json["best"]["trial"]
    require_fields(document, slowdown=None, slowdown_interval=None, slowdown_unknown=why)


@pytest.mark.slow
@pytest.mark.mlir
def test_the_code_of_a_gpu_is_counted_by_its_instructions(tmp_path: Path) -> None:
    tuner = Tuner(tmp_path / "results.db", real_backends())
    options = "--target simulator --strategy matmul_gpu_simt --sampler random --trials 2 --workers 1"
    tuner.done(f"tune matmul 16x16x16 {options}")
    document = tuner("diff 1 2 --json").json
    stages = [stage["stage"] for stage in document["stages"]]
    assert stages == ["script", "payload", "kernels", "nvvm", "code"]
    require_fields(document, first_stage="script", slowdown=None)
    assert any(name.startswith(("ld.shared", "fma", "st.shared")) for name in document["instructions"])


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Tuner:
    """Gives a database with a run of 8x8x8 of which nothing failed, and one of 16x8x8 of which all failed."""
    tuner = Tuner(tmp_path_factory.mktemp("several") / "results.db", fakes.backends())
    tuner.done("tune matmul 8x8x8 --sampler exhaustive --trials 20")
    tuner.backends = fakes.backends(bind=lambda *_: fakes.failing_bind)
    tuner.failed("tune matmul 16x8x8 --trials 2")
    return tuner


@pytest.mark.slow
def test_a_run_is_a_line_with_its_best_and_the_latest_comes_first(several: Tuner) -> None:
    header, latest, first, shared = several("history --runs").out.splitlines()
    assert " ".join(header.split()) == "run begun problem status trials failed best reliability GFLOP/s"
    assert shared == "in every row: target fake"
    assert latest.split()[0] == "2"
    assert latest.split()[-5:] == ["2", "2", "-", "-", "-"]
    assert first.split()[0] == "1"
    require(first, "matmul 8x8x8 f32", "1 ms")
    listed = {run["run"]: run for run in several("history --runs --json").json}
    assert listed[1]["best"] == several("show run:1 --json").json["best"]
    require_fields(listed[2], best=None, counts=counts(proposed=2, failed=2))


def test_conditions_choose_runs(several: Tuner) -> None:
    for conditions, runs in (
        ("--shape 8x8x8", [1]),
        ("--op matmul --dtype f32 --layout nn --output-dtype f32", [2, 1]),
        ("--target fake --machine fake --threads 1 --epilogue none", [2, 1]),
        *(("--threads 2", []), ("--status done", [2, 1]), ("--status interrupted", []), ("--limit 1", [2])),
        *(("--since 2020-01-01", [2, 1]), ("--since 2999-01-01", [])),
    ):
        found = several(f"history --runs {conditions} --json").json
        assert [run["run"] for run in found] == runs, conditions


# ``tuner show campaign:N``: a campaign with the program that it tuned, as text and as JSON.


def stored(tuner: Tuner, *, has_program: bool) -> None:
    with Store.open(str(tuner.database)) as store:
        campaign = store.begin_campaign(CAMPAIGN, MEMBERS, MACHINE, COMPILER, "0.1.0", None)
        if has_program:
            store.set_program_result(campaign, RESULT)


def test_the_program_of_a_campaign_is_shown_with_its_fusions_and_baselines(tuner: Tuner) -> None:
    stored(tuner, has_program=True)
    lines = tuner("show campaign:1").out.splitlines()
    require(lines, "campaign  1: 2 problems, 0 trials in 0 s", "loops   g1 linalg.pooling: no schedule")
    require(lines, "time    10 us a call, 20 us without tuning", "reliable yes")
    assert "gain    2.00 times as fast (95 % interval 1.90 .. 2.10): worth it" in lines
    assert lines[-1].split() == ["onnxruntime", "-", "-", "not", "compared:", "not", "installed"]
    (row,) = (line.split() for line in lines if line.startswith("g0"))
    assert row[:9] == ["g0", "contraction", "15", "us", "8", "us", "reliable", "100%", "50%"]
    document = tuner("show campaign:1 --json").json
    assert len(document["problems"]) == 2
    program = document["program"]
    require_fields(program, call_s=1e-5, speedup_interval=[1.9, 2.1])
    assert [each["origin"] for each in program["fusions"]] == ["tuned"]
    assert [each["reason"] for each in program["baselines"]] == [None, "not installed"]


def test_a_campaign_of_shapes_has_no_program_and_what_is_no_campaign_is_refused(tuner: Tuner) -> None:
    stored(tuner, has_program=False)
    assert tuner("show campaign:1 --json").json["program"] is None
    tuner.done("show campaign:1")
    stored(tuner, has_program=False)
    assert "campaign" in tuner.refused("show campaign:7")
    assert "campaign:1 cannot be combined with --run" in tuner.refused("show campaign:1 --ablation")
    assert "campaign" in tuner.refused("show campaign:one")


def test_the_ablation_of_a_run_in_tables(tuned: Tuner) -> None:
    lines = tuned.done("show run:1 --ablation").out.splitlines()
    assert lines[0].startswith("ablation  run 1: 20 measured trials of fake")
    headers = [number for number, line in enumerate(lines) if line.startswith("knob ")]
    assert [lines[number].split()[1] for number in headers] == ["held", "without"]
    for number in headers:
        assert sorted(line.split()[0] for line in lines[number + 1 : number + 3]) == ["comment", "x"]
    assert lines[-1].split()[:3] == ["fake", "20", "0"]
    legend = {line.split()[0].strip(":") for line in lines[: headers[0]] if line}
    columns = {"gain", "p-value", "importance"}
    assert columns <= legend
    assert columns <= set(lines[headers[0]].split())


@pytest.mark.parametrize("options", ["run:1", "1", "--run 1"])
def test_the_ablation_as_json(tuned: Tuner, options: str) -> None:
    document = tuned(f"show {options} --ablation --json").json
    require_fields(document, run=1, strategy="fake", measured=20)
    knob = next(each for each in document["knobs"] if each["knob"] == "x")
    require_fields(knob, best=7, held=0, gain=None)  # x = 0 was tried twice
    comment = next(each for each in document["knobs"] if each["knob"] == "comment")
    assert comment["gain"]["trials"] == 10
    assert comment["gain"]["slower"] == pytest.approx(0, abs=0.05)


def test_too_few_trials_are_refused_in_one_line(tuner: Tuner) -> None:
    tuner.done("tune matmul 8x8x8 --trials 5")
    why = "run 1: ablation: found 5 measured trials of fake, it needs 20 or more"
    assert tuner("show run:1 --ablation") == Done(1, "", f"error: {why}\n")
