import csv
import io
import re
from dataclasses import replace

import pytest

from tests.cli.conftest import Tuner
from tests.tuning import fakes
from tuner.core.candidate import Candidate
from tuner.core.machine import Machine
from tuner.core.runs import RunSettings
from tuner.db.store import Store
from tuner.targets.interface import Bind, Plan


def test_a_table_has_a_line_per_trial(tuned: Tuner) -> None:
    done = tuned("history")
    assert done.code == 0
    header, *rows, shared = done.out.splitlines()
    assert len(rows) == 20
    assert "GFLOP/s" in header
    assert shared == "in every row: run 1, problem matmul 8x8x8 f32, target fake, threads 1"


def test_json_is_a_list(tuned: Tuner) -> None:
    by_flag, by_format = tuned("history", "--json"), tuned("history", "--format", "json")
    assert by_flag.json == by_format.json
    assert len(by_flag.json) == 20
    assert {trial["status"] for trial in by_flag.json} == {"measured"}


@pytest.mark.parametrize("text", [("history",), ("export", "matmul", "8x8x8")])
def test_t4_is_json_already(tuned: Tuner, text: tuple[str, ...]) -> None:
    assert tuned(*text, "--format", "t4", "--json").json == tuned(*text, "--format", "t4").json


def test_csv_has_a_header_and_a_line_per_trial(tuned: Tuner) -> None:
    rows = list(csv.DictReader(io.StringIO(tuned("history", "--format", "csv").out)))
    assert len(rows) == 20
    assert rows[0]["shape"] == "8x8x8"
    assert (rows[0]["unreliable"], rows[0]["stale"]) == ("", "")


def test_sort_and_limit(tuned: Tuner) -> None:
    fastest = tuned("history", "--sort", "median", "--limit", "3", "--json").json
    times = [trial["median_s"] for trial in fastest]
    assert times == sorted(times)
    assert len(times) == 3
    assert fastest[0]["knobs"]["x"] == 7


def test_best_is_one_per_problem(tuned: Tuner) -> None:
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


@pytest.mark.parametrize("text", [("run:1",), ("--run", "1")])
def test_show_reports_a_run(tuned: Tuner, text: tuple[str, ...]) -> None:
    done = tuned("show", *text)
    assert "run       1: done" in done.out
    assert "exhaustive, seed 0, budget 20 trials" in done.out
    document = tuned("show", *text, "--json").json
    assert document["counts"]["measured"] == 20
    assert document["roofline"] == {"flop_per_s": 2e9, "bytes_per_s": 1e9, "flop_source": "measured"}


def test_explain_reports_the_stage_and_reason_of_a_failure(tuner: Tuner) -> None:
    tuner.backends = fakes.backends(bind=lambda *_: fakes.failing_bind)
    tuner("tune", "matmul", "8x8x8", "--trials", "1")
    done = tuner("explain", "1")
    assert "trial 1 failed at stage verify: element (0, 1): found 2, expected 1" in done.out
    assert tuner("explain", "1", "--json").json["stage"] == "verify"


def constrained(_settings: RunSettings, _machine: Machine) -> Plan:
    from tuner.space.expressions import parse
    from tuner.space.feasible_set import FeasibleSet
    from tuner.space.search_space import Knob, SearchSpace

    rule = parse("x < 3", "space.yaml: fake.constraints[0]")
    preference = parse("x != 1", "space.yaml: fake.preferences[0]")
    space = SearchSpace("fake", (Knob("x", (1, 2, 3, 4)),), (rule,), preferences=(preference,))
    return Plan(FeasibleSet.of((space,)))


def test_explain_names_the_constraint_that_rejects_a_point(tuner: Tuner) -> None:
    tuner.backends = fakes.backends(plan=constrained)
    text = ("explain", "matmul", "8x8x8")
    why = "fake(x=4) is not feasible for matmul 8x8x8 f32 nn none: space.yaml: fake.constraints[0]: x < 3"
    assert why in tuner(*text, "fake(x=4)").out
    assert tuner(*text, "fake(x=4)", "--json").json["constraint"] == "x < 3"
    assert "is feasible" in tuner(*text, "fake(x=2)").out


def test_explain_takes_some_of_the_knobs(tuner: Tuner) -> None:
    text = ("explain", "matmul", "8x8x8", "fake(x=7)")
    done = tuner(*text)
    assert "fake(x=7) is in 2 feasible combinations for matmul 8x8x8 f32 nn none\n" in done.out
    assert "it leaves out comment: with these" in done.out
    document = tuner(*text, "--json").json
    assert (document["missing"], document["feasible_combinations"]) == (["comment"], 2)
    assert (
        "knob of fake: found 'y', allowed x, comment" in tuner("explain", "matmul", "8x8x8", "fake(y=7)").err
    )


def test_explain_names_the_preference_by_which_a_point_comes_last(tuner: Tuner) -> None:
    tuner.backends = fakes.backends(plan=constrained)
    text = ("explain", "matmul", "8x8x8")
    why = "feasible for matmul 8x8x8 f32 nn none, and comes last: space.yaml: fake.preferences[0]: x != 1\n"
    assert f"fake(x=1) is {why}" in tuner(*text, "fake(x=1)").out
    assert tuner(*text, "fake(x=1)", "--json").json["preference"] == "x != 1"
    assert tuner(*text, "fake(x=2)", "--json").json["preference"] is None


def test_a_failure_to_bind_is_reported_without_a_script(tuner: Tuner) -> None:
    def bind(*_: object) -> Bind:
        from tests.fakes import bind as plain

        return lambda chosen: plain(
            Candidate.of("fake", dict(chosen.choices) | {"deed": "fail", "at": "bind"})
        )

    tuner.backends = fakes.backends(bind=bind)
    tuner("tune", "matmul", "8x8x8", "--trials", "1")
    assert "failed at stage bind" in tuner("explain", "1").out
    assert "script" not in tuner("explain", "1").out
    assert "has no script: it was never bound" in tuner("export", "--trial", "1").err


def test_passes_are_of_one_trial_that_compiles(tuned: Tuner) -> None:
    refused = tuned.refused("show", "run:1", "--passes")
    assert refused.startswith("error: --passes needs a trial's ID")
    assert tuned("show", "1", "--passes").code == 2


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
    gate_file = tuned.database.with_suffix(".json")
    recorded = tuned("gate", "--baseline", str(gate_file), "--record", "best")
    assert f": trial {next_best['trial']}" in recorded.err


def test_early_stopped_trials_look_like_no_result(tuned: Tuner) -> None:
    listed = tuned("history", "--json").json
    (trial, *_) = [each for each in listed if each["early_stopped_after"]]
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
    compared = tuned("diff", number, str(best), "--show", "none").out
    assert text in " ".join(compared.split())
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
    kind = fakes.changed_kind(tuned.backends.kinds["fake"], machine=lambda _target: fakes.OTHER_MACHINE)
    tuned.backends = replace(tuned.backends, kinds={**tuned.backends.kinds, "fake": kind})
    assert tuned("tune", "matmul", "8x8x8", "--target", "fake", "--trials", "1").code == 0
    header, *rows = tuned("history").out.splitlines()
    assert "machine" in header
    assert ["another" in row for row in rows].count(True) == 1
