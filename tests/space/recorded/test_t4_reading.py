"""Files in the format that autotuners share: ours come back whole, others' as far as the format goes."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.space.recorded import values
from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.records import Measurement, Verdict
from tuner.space.recorded.reading import read_recorded
from tuner.space.recorded.recording import RecordedTime
from tuner.space.recorded.t4 import Recording, t4_document

RESULT = {
    "configuration": {"block": 32, "unroll": 1},
    "times": {"compilation_time": 5.0, "runtimes": [1.0, 3.0]},
    "invalidity": "correct",
    "correctness": 1,
    "measurements": [{"name": "time", "value": 2.0, "unit": ""}],
    "objectives": ["time"],
}


def foreign(*results: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"schema_version": "1.0.0", "metadata": metadata, "results": list(results)}


def read(folder: Path, document: dict[str, Any]) -> Any:
    path = folder / "foreign.json"
    path.write_text(json.dumps(document))
    return read_recorded(path)


def point(block: int, **changes: Any) -> dict[str, Any]:
    return {**RESULT, "configuration": {"block": block, "unroll": 1}, **changes}


@pytest.mark.parametrize("name", ["space.t4.json", "space.t4.json.gz"])
def test_what_was_written_is_read_back_bit_by_bit(tmp_path: Path, name: str) -> None:
    space = read_recorded(values.write_recording(tmp_path, name))
    assert space.rows == space.feasible.rows == 120
    assert space.feasible.spaces[0].knobs == values.KNOBS
    assert (space.problem, space.threads) == (values.RUN.settings.problem, 1)
    assert (space.machine, space.compiler) == (values.RUN.machine, values.RUN.compiler)
    assert space.baseline == values.RUN.baseline
    for number, outcome in enumerate(space.outcomes):
        record = values.trial(number).record
        assert space.feasible.candidate(number) == record.candidate
        if isinstance(outcome, Failure):
            assert outcome == record.outcome
        else:
            assert (outcome.measurement, outcome.verdict) == (record.outcome, record.verdict)
            assert outcome.time_s == record.median_s


def test_equal_code_keeps_equal_numbers(tmp_path: Path) -> None:
    space = read_recorded(values.write_recording(tmp_path))
    for number in range(120):
        ours, before = values.trial(number).record, values.trial(number - 1).record
        is_same = bool(ours.artifact_sha256) and ours.artifact_sha256 == before.artifact_sha256
        assert number == 0 or (space.codes[number] == space.codes[number - 1]) == is_same


def test_other_programs_see_a_space_of_plain_times(tmp_path: Path) -> None:
    """Without our own part the file is still a recording, as another tuner would write it."""
    document = t4_document(values.recording())
    del document["metadata"]["tuner"]
    for result in document["results"]:
        del result["tuner"]
    space = read(tmp_path, document)
    ours = read_recorded(values.write_recording(tmp_path))
    assert np.array_equal(np.sort(space.times_s), np.sort(ours.times_s), equal_nan=True)
    assert space.problem is None


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({}, 2e-3),
        ({"timeunit": "seconds"}, 2.0),
        ({"timeunit": "miliseconds"}, 2e-3),
        ({"timeunit": "ns"}, 2e-9),
    ],
)
def test_times_are_in_the_unit_of_the_file(tmp_path: Path, given: dict[str, str], seconds: float) -> None:
    space = read(tmp_path, foreign(point(32), device="A4000", **given))
    assert space.outcomes == (RecordedTime(seconds, (seconds / 2, seconds * 1.5)),)
    assert space.machine.name == "A4000"
    assert space.feasible.candidate(0).text == "foreign(block=32, unroll=1)"


def test_a_measurement_may_have_a_unit_of_its_own(tmp_path: Path) -> None:
    measured = [{"name": "time", "value": 2500.0, "unit": "us"}]
    assert read(tmp_path, foreign(point(32, measurements=measured))).times_s[0] == pytest.approx(2.5e-3)


def test_a_time_and_its_samples_have_one_unit(tmp_path: Path) -> None:
    """Else a replay would answer the median of the samples, which is of another size than the time."""
    measured = [{"name": "time", "value": 2.0, "unit": "us"}]
    with pytest.raises(
        UsageError, match=r"foreign\.json: time: 2e-06 s does not fit samples of 0.001 to 0.003 s"
    ):
        read(tmp_path, foreign(point(32, measurements=measured)))


def test_words_of_failure_become_stages(tmp_path: Path) -> None:
    phrase = ("compile", "runtime", "correctness", "timeout", "constraints")
    results = [point(2**place, invalidity=given, measurements=[]) for place, given in enumerate(phrase)]
    space = read(tmp_path, foreign(point(64), *results, point(128, measurements=[])))
    stages = [outcome.stage for outcome in space.outcomes if isinstance(outcome, Failure)]
    assert stages == [Stage.COMPILE, Stage.RUN, Stage.VERIFY, Stage.RUN, Stage.MEASURE]
    assert space.forbidden == 1


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (foreign(), "no point was tried"),
        (foreign(point(1, invalidity="constraints")), "no point was tried"),
        (foreign(point(1), timeunit="fortnights"), "timeunit: found 'fortnights', allowed nanoseconds, ns"),
        (foreign({"invalidity": "correct"}), "found no 'configuration' where its format has one"),
        (
            foreign(point(1, invalidity="odd")),
            "invalidity: found 'odd', allowed correct, constraints, compile",
        ),
        (foreign(point(1, invalidity=[])), r"invalidity: found \[\], allowed"),
        (foreign(point(1), timeunit=[]), r"timeunit: found \[\], allowed nanoseconds"),
        (foreign(point(1, configuration=[1, 2])), "found another form"),
        (foreign(point(10**400)), r"knob 'block': found 1000+\.\.\., allowed numbers"),
        (
            foreign(point(1), {**RESULT, "configuration": {"block": 2}}),
            "found no 'unroll' where its format has one",
        ),
        (foreign(point(1), tuner={"version": 2}), r"tuner\.version: found 2, allowed 1"),
        (
            foreign(
                point(1, objectives=["score"], measurements=[{"name": "score", "value": 2.0, "unit": ""}])
            ),
            "objective 'score': found unit '', allowed a time",
        ),
        ({"rows": []}, r"found the keys 'rows', allowed 'results' \(T4\) or 'cache'"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(
    tmp_path: Path, document: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        read(tmp_path, document)


def test_our_point_without_samples_keeps_its_time(tmp_path: Path) -> None:
    document = t4_document(values.recording())
    for result in document["results"]:
        result["times"]["runtimes"] = []
    timed = [one for one in read(tmp_path, document).outcomes if isinstance(one, RecordedTime)]
    assert timed
    assert all(one.time_s > 0 and one.samples_s == () and one.measurement is None for one in timed)


@pytest.mark.parametrize("interval_s", [[2.0, 1.0], [-1.0, 1.0], [float("nan"), 1.0], ["a", "b"]])
def test_an_interval_that_is_none_is_refused(tmp_path: Path, interval_s: list[object]) -> None:
    document = t4_document(values.recording())
    for result in document["results"]:
        if "interval_s" in result["tuner"]:
            result["tuner"]["interval_s"] = interval_s
    with pytest.raises(UsageError, match=r"tuner\.interval_s: found \["):
        read(tmp_path, document)


@pytest.mark.parametrize("threads", ["two", 0, True, 1.5])
def test_threads_that_are_none_are_refused(tmp_path: Path, threads: object) -> None:
    document = t4_document(values.recording())
    document["metadata"]["tuner"]["threads"] = threads
    with pytest.raises(UsageError, match=r"tuner\.threads: found .*, allowed 1 or more"):
        read(tmp_path, document)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("calls", [0, None, "2"])
def test_calls_that_are_none_are_refused(tmp_path: Path, calls: object) -> None:
    document = t4_document(values.recording())
    for result in document["results"]:
        result["tuner"]["inner_calls"] = calls
    with pytest.raises(UsageError, match=r"tuner\.inner_calls: found .*, allowed 1 or more"):
        read(tmp_path, document)


@pytest.mark.parametrize(("key", "value"), [("max_error", "small"), ("elements", []), ("notes", None)])
def test_a_verdict_that_is_none_is_refused(tmp_path: Path, key: str, value: object) -> None:
    document = t4_document(values.recording())
    for result in document["results"]:
        if result["tuner"].get("verdict"):
            result["tuner"]["verdict"][key] = value
    with pytest.raises(UsageError, match=rf"tuner\.verdict\.{key}: found .*, allowed "):
        read(tmp_path, document)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("path", "found"),
    [
        (("baseline", "median_s"), 0.0),
        (("baseline", "median_s"), float("nan")),
        (("baseline", "samples_s"), [-1.0]),
        (("baseline", "interval_s"), [2.0, 1.0]),
        (("baseline", "inner_calls"), 2**63),
        (("baseline", "threads"), "one"),
        (("baseline", "name"), None),
        (("machine", "physical_cores"), "two"),
        (("machine", "memory_bytes"), 2**70),
        (("machine", "name"), None),
        (("compiler", "packages"), [1]),
        (("problem", "shape"), [1.5, 2, 3]),
        (("threads",), 2**63),
        (("constraints",), "text"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_its_place(
    tmp_path: Path, path: tuple[str, ...], found: object
) -> None:
    """Taken as it comes it would end in a traceback, or be read as something else: 1.5 as 1."""
    document = t4_document(values.recording())
    document["metadata"]["tuner"]["baseline"] = {
        "name": "library",
        "threads": 1,
        "median_s": 1.0,
        "interval_s": [1.0, 1.0],
        "inner_calls": 1,
        "samples_s": [1.0],
    }
    assert read(tmp_path, document).baseline is not None
    inner = document["metadata"]["tuner"]
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = found
    with pytest.raises(UsageError, match=rf"tuner\.{path[0]}.*: found .*, allowed "):
        read(tmp_path, document)


def test_no_word_of_our_own_part_moves_the_terminal_either(tmp_path: Path) -> None:
    document = t4_document(values.recording())
    own = document["metadata"]["tuner"]
    own["machine"]["name"] = own["machine"]["processor"] = own["compiler"]["mlir"] = "a\x1b[2J"
    document["results"][0]["tuner"]["verdict"]["notes"] = ["b\x1b[2J"]
    space = read(tmp_path, document)
    assert {space.machine.name, space.machine.processor, space.compiler.mlir} == {"a\\x1b[2J"}
    assert space.outcomes[0].verdict.notes == ("b\\x1b[2J",)


def test_a_chip_that_is_none_is_refused(tmp_path: Path) -> None:
    document = t4_document(values.recording())
    document["metadata"]["tuner"]["machine"]["chip"] = "sm_potato"
    with pytest.raises(UsageError, match="found 'sm_potato', allowed"):
        read(tmp_path, document)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("found", ["long", -1.0, 0])
def test_a_cold_median_that_is_none_is_refused(tmp_path: Path, found: object) -> None:
    document = t4_document(values.recording())
    document["results"][0]["tuner"]["cold_median_s"] = found
    with pytest.raises(UsageError, match=r"tuner\.cold_median_s: found .*, allowed a time in seconds"):
        read(tmp_path, document)


def test_a_verified_trial_is_correct_and_has_no_time(tmp_path: Path) -> None:
    trial = values.trial(0)
    verified = dataclasses.replace(trial.record, outcome=Verdict(0.5, 64))
    recording = Recording((values.RUN,), (dataclasses.replace(trial, record=verified),), (values.SPACE,))
    document = t4_document(recording)
    assert document["results"][0]["invalidity"] == "correct"
    assert document["results"][0]["measurements"] == []
    space = read(tmp_path, document)
    assert space.outcomes == (Failure(Stage.MEASURE, "recorded without a time"),)


def test_a_cold_median_of_a_gpu_comes_back(tmp_path: Path) -> None:
    trial = values.trial(0)
    time = Measurement((1.0,), 1, 1.0, (1.0, 1.0), cold_median_s=1.5)
    timed = dataclasses.replace(trial, record=dataclasses.replace(trial.record, outcome=time))
    space = read(tmp_path, t4_document(Recording((values.RUN,), (timed,), (values.SPACE,))))
    assert space.outcomes[0].measurement == time
