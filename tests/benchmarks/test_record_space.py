"""Recording a space, and everything that reads one: replays, T4 from history and export."""

import dataclasses
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner, require
from tests.space.recorded import values
from tests.support.run_differences import differences
from tests.tuning import fakes
from tuner.core.interfaces import AbstractRunner, BoundRecord
from tuner.core.machine import Machine
from tuner.core.queries import TrialQuery
from tuner.core.runs import RunSettings
from tuner.core.trials import StoredTrial
from tuner.db.store import Store
from tuner.runtime.workers.runner import RunnerOrder
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.recorded.reading import read_recorded
from tuner.space.search_space import Knob, SearchSpace
from tuner.targets.target import Plan, RunnerSettings


@pytest.fixture
def file(tuner: Tuner) -> Path:
    return tuner.database.with_name("space.t4.json.gz")


def trials_of(tuner: Tuner, run: int) -> Iterator[StoredTrial]:
    """Yields a run's trials as if they were of one target, without finals."""
    with Store.open(str(tuner.database)) as store:
        for trial in store.trials(TrialQuery(run=run, sort="number")):
            record = dataclasses.replace(trial.record, script_sha256="", artifact_sha256="")
            yield dataclasses.replace(trial, record=record, final=None)


def test_a_recorded_space_replays_to_the_same_run(tuner: Tuner, file: Path) -> None:
    done = tuner.done("record-space matmul 8x8x8 --json -o", str(file))
    assert (done.json["counts"]["measured"], done.json["bytes"]) == (20, file.stat().st_size)
    again = tuner.done("tune matmul 8x8x8 --sampler exhaustive --target", f"replay:{file}")
    require(again.out, "best      trial", "tuner show")  # a replay has no script to export
    assert differences(tuple(trials_of(tuner, 1)), tuple(trials_of(tuner, 2))) == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["space.t4.json.gz", "space.json"])
def test_the_knobs_keep_their_order_and_the_file_its_next_command(tuner: Tuner, name: str) -> None:
    file = tuner.database.with_name(name)
    done = tuner("record-space matmul 8x8x8 -o", str(file))
    assert f"tuner tune matmul 8x8x8 --target replay:{file}" in done.out
    space = read_recorded(file)
    if file.suffix == ".json":  # without gz it is plain JSON
        assert len(json.loads(file.read_text())["results"]) == 20
    assert [(knob.name, len(knob.choices)) for knob in space.knobs] == [("x", 10), ("comment", 2)]
    assert space.machine == fakes.MACHINE


def preferring(_settings: RunSettings, _machine: Machine) -> Plan:
    knobs = (Knob("x", tuple(range(10))), Knob("comment", ("a", "b")))
    return Plan(FeasibleSet.of((SearchSpace("fake", knobs, preferences=(parse("x < 7", "f"),)),)))


@pytest.mark.parametrize("limit", [(), ("--limit", "17")], ids=["no limit", "limit"])
def test_what_comes_last_is_not_recorded(tuner: Tuner, file: Path, limit: tuple[str, ...]) -> None:
    tuner.backends = fakes.backends(plan=preferring)
    done = tuner("record-space matmul 8x8x8", *limit, "-o", str(file), "--json")
    assert done.json["counts"]["measured"] == 14
    space = read_recorded(file)
    assert (space.rows, space.constraints) == (14, ("x < 7",))
    assert {dict(space.feasible.candidate(row).choices)["x"] for row in range(14)} == set(range(7))


def test_a_limit_draws_from_the_whole_set(tuner: Tuner, file: Path) -> None:
    assert tuner("record-space matmul 8x8x8 --limit 7 -o", str(file)).code == 0
    rows = sorted(trial.row for trial in trials_of(tuner, 1))
    assert len(rows) == read_recorded(file).rows == 7
    assert rows != list(range(7))


@pytest.mark.slow
def test_an_interrupted_recording_goes_on(tuner: Tuner, file: Path) -> None:
    def runner(order: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
        local = fakes.local_runner(order, how)
        finish, left = local.finish, iter(range(6))

        def interrupted() -> BoundRecord:
            if next(left, None) is None:
                signal.raise_signal(signal.SIGINT)
            return finish()

        local.finish = interrupted  # type: ignore[method-assign]
        return local

    tuner.backends = fakes.backends(runner=runner)
    broken = tuner("record-space matmul 8x8x8 -o", str(file))
    assert broken.code == 130
    assert f"python -m benchmarks record-space --resume 1 -o {file}" in broken.err
    assert not file.exists()
    tuner.backends = fakes.backends()
    assert tuner("record-space --resume 1 -o", str(file)).code == 0
    assert read_recorded(file).rows == 20


def test_a_folder_that_is_not_there_is_found_before_anything_is_measured(tuner: Tuner) -> None:
    record = "record-space matmul 8x8x8 -o"
    assert "no such folder: /nowhere/at" in tuner.refused(record, "/nowhere/at/all.json")
    assert "is a folder, not a file to write" in tuner.refused(record, str(tuner.database.parent))
    assert not tuner.database.exists()


@pytest.mark.slow
@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("--trials 5", "a search by tpe on fake"),
        ("--trials 5 --sampler exhaustive", "a search by exhaustive on fake"),  # may reuse times of others
        ("--trials 5 --sampler random --target replay:FILE", "a search by random on replay:space"),
    ],
)
def test_a_search_is_no_recording(tuner: Tuner, file: Path, text: str, found: str) -> None:
    tuner("record-space matmul 8x8x8 -o", str(file))
    tuner(f"tune matmul 8x8x8 {text.replace('FILE', str(file))}")
    other = file.with_name("other.json")
    refused = tuner.refused("record-space --resume 2 -o", str(other))
    assert f"run 2 is {found}, not one that record-space began" in refused
    assert not other.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "the shape are missing\nhint: python -m benchmarks record-space matmul 64x64x64 -o x.json"),
        ("matmul 8x8x8 --resume 1", "--resume cannot be combined with matmul"),
        ("matmul 8x8x8 --target replay:x", "target 'replay:x' measures nothing"),
        ("--resume 1 --limit 5", "--resume cannot be combined with --limit"),
        ("--resume 1 --dtype f64", "--resume cannot be combined with --dtype"),
        ("matmul 8x8x8 --limit 0", "limit: found 0, allowed 1 or more"),
        ("--resume 1", "run: found 1, allowed none: the database has no run"),
    ],
)
def test_what_cannot_be_recorded_is_refused(tuner: Tuner, options: str, message: str) -> None:
    assert message in tuner.refused(*f"record-space {options} -o x.json".split())


@pytest.mark.drawn(2)
@pytest.mark.parametrize("form", ["script", "source", "payload", "ptx", "cubin"])
def test_a_replay_has_nothing_to_export_but_its_record(tuner: Tuner, form: str) -> None:
    file = values.write_recording(tuner.database.parent)
    tuner("tune matmul 8x8x8 --trials 2 --sampler exhaustive --target", f"replay:{file}")
    assert "replay" in tuner.refused("export --trial 1 --format", form)
    assert tuner("export --trial 1 --format json").json["target"] == "replay:fabricated"


def test_a_space_on_a_recording_is_its_points(tuner: Tuner) -> None:
    file = values.write_recording(tuner.database.parent)
    assert tuner("space matmul 8x8x8 --json --target", f"replay:{file}").json["feasible"] == 120
