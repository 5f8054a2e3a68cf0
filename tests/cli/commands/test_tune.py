import dataclasses
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from tests.cli.conftest import Tuner, require, require_fields
from tests.space.recorded import values
from tests.tuning import fakes
from tests.tuning.test_rounds import CUT, cut_parts
from tuner.cli.commands.tune import HEADINGS, tune
from tuner.cli.tuned import compromise_lines, fleet_of_run, several_document
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, Stage
from tuner.core.machine import Machine
from tuner.core.requests import FleetRequest
from tuner.core.roofline import Roofline
from tuner.core.runs import SEED, SPACE_FILE, WARM_START, InitialConfiguration, RunSettings
from tuner.db.store import Store
from tuner.results.output.formatting import SUMMARY_COLUMNS, initial_configurations_text
from tuner.targets.backends import Backends
from tuner.targets.target import Plan
from tuner.tuning.events import Interruption
from tuner.tuning.run import begin
from tuner.tuning.tuned_run import TunedRun


def test_a_misspelt_operation_without_a_shape_is_what_is_wrong(tuner: Tuner) -> None:
    line = "error: operation: found 'matmull', allowed matmul, batch_matmul, grouped_matmul\n"
    line += "hint: did you mean matmul?\n"
    assert tuner.refused("tune matmull") == line


def test_the_help_lists_each_option_once_under_headings(tuner: Tuner) -> None:
    shown = tuner("tune --help").out
    names = [name for words in HEADINGS.values() for name in words.split()]
    assert len(names) == len(set(names))
    known = {flag for each in tune.params for flag in each.opts} | {"--help"}
    assert {f"--{name}" for name in names} <= known
    assert re.findall(r"^(\w[\w ]*):$", shown, re.MULTILINE) == [*HEADINGS]
    flags = re.findall(r"^  (?:-h, )?(--[\w-]+)", shown, re.MULTILINE)
    assert len(flags) == len(set(flags))
    written = {each.opts[0] for each in tune.params if each.opts[0].startswith("--")}
    assert written | {"--debug", "--help"} == set(flags)
    assert "--budget" in shown[shown.index("\nSearch:") : shown.index("\nMeasurement:")]
    assert list(HEADINGS)[-3:] == ["GPUs", "Quantized weights", "Fleet"]  # what most runs do not need


def test_a_run_ends_with_the_best_and_the_next_command_on_the_database_that_was_named(tuner: Tuner) -> None:
    done = tuner.done("tune matmul 8x8x8 --sampler exhaustive --trials 20")
    trial = re.search(r"best +trial (\d+) of run 1: fake", done.out)
    assert trial is not None
    assert [line.split()[0] for line in done.out.splitlines()] == ["best", "time", "ratio", "next", "more"]
    require(done.out, "2.00 times as fast as FakeBLAS 1.0", "20 trials in ", "tuner show run:1")
    counts = "20 trials: 20 measured, 0 failed, 10 of them reused"
    require(tuner.done("show run:1").out, "x=7", "200.0% of FakeBLAS 1.0", counts)
    assert f"tuner export --trial {trial[1]} -o best.mlir" in done.out
    exhausted = "search: all 20 feasible configurations have been tried\n"
    require(done.err, exhausted, f"all trials are stored in {tuner.database}\n")
    assert exhausted not in tuner.done("tune matmul 8x8x8 --trials 19 --fresh").err
    path = str(tuner.database.with_name("my results.db"))
    assert f"-o best.mlir --db '{path}'" in tuner("tune matmul 8x8x8 --trials 2 --db", path).out


def test_json_is_the_only_thing_on_stdout_and_a_baseline_that_fails_is_reported(tuner: Tuner) -> None:
    done = tuner("tune matmul 8x8x8 --trials 5 --json")
    assert (done.code, done.json["counts"]["proposed"]) == (0, 5)
    assert (done.json["best"]["baseline"]["name"], done.json["target"]) == ("FakeBLAS 1.0", "fake")
    assert "baseline: FakeBLAS" in done.err
    tuner.backends = fakes.backends(baseline=fakes.no_baseline)
    done = tuner.done("tune matmul 8x8x8 --trials 3")
    assert "baseline: not measured: openblas: exited with status 3" in done.err


def test_no_working_candidate_reports_why_and_exits_with_1_and_a_null_best(tuner: Tuner) -> None:
    tuner.backends = fakes.backends(bind=lambda *_: fakes.failing_bind)
    done = tuner("tune matmul 8x8x8 --trials 3")
    assert (done.code, done.out) == (1, "")
    assert "no candidate worked: 3 trials: 0 measured, 3 failed" in done.err
    assert "3 x verify: element (0, 1): found 2, expected 1" in done.err
    done = tuner("tune matmul 8x8x8 --trials 3 --json")
    assert (done.code, done.json["best"]) == (1, None)


def test_why_no_candidate_worked_is_wrapped_between_words(tuner: Tuner) -> None:
    reason = "found no linalg.matmull in the payload, which has linalg.fill; did you mean linalg.matmul?"

    def failing(_chosen: Candidate) -> NoReturn:
        raise CandidateError(Stage.COMPILE, reason)

    tuner.backends = fakes.backends(bind=lambda *_: failing)
    lines = tuner("tune matmul 8x8x8 --trials 3").err.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("  3 x compile: "))
    assert " ".join(line.strip() for line in lines[first : first + 2]) == f"3 x compile: {reason}"
    assert max(map(len, lines[first : first + 2])) <= SUMMARY_COLUMNS


def test_a_run_that_is_done_resumes_to_its_trials_and_another_one_reuses_them(tuned: Tuner) -> None:
    done = tuned.done("tune --resume 1 --json")
    assert (done.json["run"], done.json["counts"]["proposed"]) == (1, 20)
    done = tuned("tune matmul 8x8x8 --trials 5 --json")
    assert done.json["counts"]["reused"] == 5
    assert all(trial["reused_from"] for trial in tuned("history --run 2 --json").json)


def test_resume_takes_no_settings_next_to_it(tuned: Tuner) -> None:
    flags = ("--workers 2", "--dtype f64", "--seed 0", "--fresh", "--baseline mkl", "--no-warm-start")
    for text in (*flags, "matmul 8x8x8"):
        refused = tuned.refused(f"tune {text} --resume 1")
        why = "the run has its stored settings"
        assert f"--resume cannot be combined with {text.split()[0]}: {why}" in refused


def test_settings_reach_the_run(tuner: Tuner) -> None:
    text = "--layout nt --epilogue bias_relu --dtype f64 --align 64 --cache cold"
    tuner.done(f"tune matmul 4x5x6 {text} --seed 3 --threads 2 --trials 1 --budget 5m --workers 2")
    run = tuner("show run:1 --json").json
    types = {"dtype": "f64", "layout": "nt", "epilogue": "bias_relu", "output": "f64"}
    assert run["problem"] == {"op": "matmul", "shape": [4, 5, 6], **types, "align": "64", "cache": "cold"}
    require_fields(run, seed=3, threads=2, trials=1, budget_s=300.0, workers=2)


def test_100_trials_are_the_default_and_a_budget_alone_limits_none(tuner: Tuner) -> None:
    for run, options, trials in ((1, "", 100), (2, " --budget 60s", None)):  # the second ends with the set
        tuner.done(f"tune matmul 8x8x8{options}")
        assert tuner(f"show run:{run} --json").json["trials"] == trials


def test_a_retiming_that_gains_no_round_says_so(tuner: Tuner) -> None:
    tuner.done("tune matmul 8x8x8 --trials 4")
    done = replace(tuner, backends=cut_parts()).failed("tune --resume 1 --retime")
    lost = f"run 1: --retime gained no round: the final re-measurement was lost: {CUT}"
    require(done.err, lost, "final re-measurement: lost, no times\n")


def test_a_finished_run_goes_on_to_another_limit(tuner: Tuner) -> None:
    tuner.done("tune matmul 8x8x8 --target fake --sampler exhaustive --trials 3")
    document = tuner.done("tune --resume 1 --trials 20 --json").json
    assert (document["run"], document["counts"]["proposed"]) == (1, 20)
    assert document["best"]["knobs"]["x"] == 7
    refused = tuner.refused("tune --resume 1 --trials 9")
    assert "trials: found 9, but run 1 has 20 trials already" in refused
    tuner.done("tune --resume 1 --budget 1h")
    assert tuner("show run:1 --json").json["trials"] is None
    assert "budget 3600 s" in tuner("show run:1").out


# What is printed of runs on several classes of machines; the runs are real ones of fakes.

FLEET = FleetRequest("postgresql://tuner@db.example.org/tuner")


def tuned(store: Store, machine: str, seed: int = 0, trials: int = 6) -> TunedRun:
    other = replace(fakes.MACHINE, name=machine)
    backends = fakes.backends(machine=lambda _target: other)
    return begin(fakes.settings(trials, seed=seed), backends, store, Interruption())


def test_the_compromise_is_reported_with_its_time_on_each_machine(store: Store) -> None:
    both = (tuned(store, "big"), tuned(store, "small"))
    first, knobs, *others = compromise_lines(both, store)
    assert first == "compromise fake, not distinguishable from the best"
    assert knobs.startswith("knobs     ")
    assert [line.split(" on ")[1].split(":")[0] for line in others] == ["big", "small"]
    document = several_document(both, store)
    assert [each["run"] for each in document["runs"]] == [1, 2]
    assert document["compromise"]["slowdowns"] == [None, None]
    assert all("not distinguishable" in each for each in document["compromise"]["slowdowns_unknown"])
    best = [each.best for each in both]
    assert document["compromise"]["trials"] == [trial.id for trial in best if trial is not None]


def test_machines_that_share_no_candidate_have_no_compromise(store: Store) -> None:
    first, other = tuned(store, "big", seed=1, trials=1), tuned(store, "small", seed=2, trials=1)
    assert compromise_lines((first, other), store) == ["compromise: no candidate has a time on each machine"]
    assert several_document((first, other), store)["compromise"] is None


def test_a_run_goes_on_on_its_own_class_of_machine(store: Store, tmp_path: Path) -> None:
    run = tuned(store, "small").run.id
    database = str(tmp_path / "results.db")
    assert fleet_of_run(FLEET, run, database).machine == "small"
    named = replace(FLEET, machine="big")
    assert fleet_of_run(named, run, database) == named
    assert fleet_of_run(FLEET, None, database) == FLEET


@pytest.mark.slow
def test_a_roofline_below_what_the_best_trial_reached_is_raised_where_it_is_stored(tuner: Tuner) -> None:
    tuner.backends = fakes.backends(roofline=lambda _problem, _threads, _wait: Roofline(1.0, 1e9))
    tuner.done("tune matmul 8x8x8 --trials 6")
    (run,) = tuner("history --runs --json").json
    best_s = min(trial["median_s"] for trial in tuner("history --json").json if trial["median_s"])
    assert run["roofline"]["flop_per_s"] >= 2 * 8**3 / best_s
    assert run["roofline"]["flop_source"] == "reached by a kernel"
    (line,) = [each for each in tuner("show run:1").out.splitlines() if each.startswith("roofline")]
    assert line.startswith("roofline  100.0% of what 1 thread can do (")


def known_strategy() -> Backends:
    """Returns parts whose strategy is among those of the shipped file, which a run takes by default."""

    def renamed(settings: RunSettings, machine: Machine) -> Plan:
        feasible = fakes.FAKE.plan(settings, machine).feasible
        spaces = tuple(dataclasses.replace(space, strategy="matmul_cpu_packed") for space in feasible.spaces)
        return Plan(dataclasses.replace(feasible, spaces=spaces))

    return fakes.backends(plan=renamed)


@pytest.mark.slow
def test_a_second_problem_begins_with_the_best_of_the_first_and_says_so(tuner: Tuner) -> None:
    tuner.backends = known_strategy()
    tuner("tune matmul 8x8x8 --sampler exhaustive --trials 20")
    done = tuner("tune matmul 8x8x16 --trials 3 --json")
    assert "; initial configurations: warm start from 8x8x8 (run 1): 8 configurations" in done.err
    sources = {(point["origin"], point["source"]) for point in done.json["first"]}
    assert sources == {("warm start", "8x8x8 (run 1)")}
    assert done.json["best"]["knobs"]["x"] == 7
    assert 0 <= done.json["idle_share"] <= 1
    assert "initial   warm start from 8x8x8 (run 1): 8 configurations" in tuner("show run:2").out
    assert tuner("show run:2 --json").json["warm_start"] is True


def test_no_warm_start_begins_with_nothing_known(tuner: Tuner) -> None:
    tuner.backends = known_strategy()
    tuner("tune matmul 8x8x8 --sampler exhaustive --trials 20")
    for flag in ("--no-warm-start", "--fresh"):
        done = tuner("tune matmul 8x8x16 --trials 3 --json", flag)
        assert "warm start" not in done.err
        assert done.json["first"] == []


def test_a_replay_learns_from_recordings_that_are_named_and_readable(tuner: Tuner, tmp_path: Path) -> None:
    file = values.write_recording(tmp_path)
    text = f"tune matmul 8x8x8 --target replay:{file} --trials 3 --json"
    best = min(values.outcome_of(n).median_s for n in range(120) if n % 7 != 3)  # type: ignore[union-attr]
    assert tuner(text).json["first"] == []
    warm = tuner(text, "--warm-start", str(file)).json
    assert (len(warm["first"]), warm["best"]["median_s"]) == (4, best)  # of its own space: that differ most
    assert "gone.t4.json: cannot be read" in tuner.refused(text, "--warm-start", "gone.t4.json")


def test_seeds_are_tried_before_all_others_and_those_that_are_not_feasible_are_refused(
    tuner: Tuner, tmp_path: Path
) -> None:
    recording = values.write_recording(tmp_path)
    text = f"tune matmul 8x8x8 --target replay:{recording} --trials 3 --json"
    tried = tuner(text).json["best"]
    seed = {"strategy": tried["strategy"], "knobs": tried["knobs"]}
    seeds = tmp_path / "seeds.jsonl"
    seeds.write_text(f"{json.dumps(seed)}\n{json.dumps(seed)}\n")
    done = tuner(text, "--trials", "1", "--seeds", str(seeds))
    assert [point["origin"] for point in done.json["first"]] == ["given"]
    assert "initial configurations: 1 of --seeds" in done.err
    assert done.json["best"]["knobs"] == tried["knobs"]
    seeds.write_text(json.dumps({"strategy": "nothing", "knobs": {}}))
    assert "strategy: found 'nothing'" in tuner.refused(text, "--seeds", str(seeds))
    seeds.write_text(json.dumps({"script": "best.mlir"}))
    assert "a replay compiles no script" in tuner.refused(text, "--seeds", str(seeds))
    refused = tuner.refused("tune matmul 1..8x8x8 --seeds", str(seeds))
    assert "--seeds cannot be combined with a range of m" in refused


def test_first_points_are_reported_by_where_they_come_from() -> None:
    candidate = Candidate.of("s", {"x": 1})
    warm = [InitialConfiguration(candidate, WARM_START, f"8x8x{k} (run 1)") for k in (8, 16, 8)]
    listed, seed = InitialConfiguration(candidate, SPACE_FILE), InitialConfiguration(candidate, SEED)
    assert initial_configurations_text(()) == ""
    text = initial_configurations_text((listed, seed, seed))
    assert text == "1 of the search-space file, then 2 of the cost model"
    given = "warm start from 8x8x8 (run 1), 8x8x16 (run 1): 3 configurations"
    assert initial_configurations_text(tuple(warm)) == given
    assert initial_configurations_text((*warm, listed)) == (
        f"{given}, interleaved with 1 of the search-space file"
    )
