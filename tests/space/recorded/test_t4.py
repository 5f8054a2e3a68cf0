"""Files in the format that autotuners share: tuner's come back whole, others' as far as the format goes."""

import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.t4_writer import Recording, invalidity_of, t4_bytes, t4_document
from tests.default_suite import ALL
from tests.space.recorded import values
from tests.tuning import fakes
from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.records import Measurement, Verdict
from tuner.space.recorded.reading import read_recorded
from tuner.space.recorded.recording import RecordedTime

UNITS_S = {None: 2e-3, "seconds": 2.0, "miliseconds": 2e-3, "ns": 2e-9}


def test_every_stage_has_a_word_and_words_of_failure_become_stages(tmp_path: Path) -> None:
    for stage in Stage:
        assert invalidity_of(Failure(stage, "no")) in ("compile", "runtime", "correctness")
        assert invalidity_of(Failure(stage, "timed out after 3 s")) == "timeout"
    phrase = ("compile", "runtime", "correctness", "timeout", "constraints")
    results = [point(2**place, invalidity=given, measurements=[]) for place, given in enumerate(phrase)]
    space = read(tmp_path, foreign(point(64), *results, point(128, measurements=[])))
    stages = [outcome.stage for outcome in space.outcomes if isinstance(outcome, Failure)]
    assert stages == [Stage.COMPILE, Stage.RUN, Stage.VERIFY, Stage.RUN, Stage.MEASURE]
    assert space.forbidden == 1


def test_every_result_has_what_the_schema_requires_and_equal_recordings_are_equal_bytes() -> None:
    """https://github.com/AutoTuningAssociation/autotuning_methodology, schemas/T4.json"""
    document = t4_document(values.recording())
    assert document["metadata"]["timeunit"] == "seconds"
    options = {"timeout", "compile", "runtime", "correctness", "constraints", "correct"}
    for result in document["results"]:
        assert {"configuration", "times", "invalidity", "correctness"} <= result.keys()
        assert result["invalidity"] in options
        assert result["correctness"] == int(result["invalidity"] == "correct")
        assert isinstance(result["times"]["compilation_time"], float)
        assert all(isinstance(each["unit"], str) for each in result["measurements"])
    assert {result["invalidity"] for result in document["results"]} == options - {"constraints"}
    recording = values.recording()
    packed, again = (t4_bytes(recording, is_compressed=True) for _ in range(2))
    assert (again, gzip.decompress(packed)) == (packed, t4_bytes(recording))
    unnamed = t4_document(dataclasses.replace(recording, spaces=()))
    choices = {knob.name: sorted(knob.choices, key=str if knob.is_text else None) for knob in values.KNOBS}
    assert unnamed["metadata"]["tuner"]["knobs"] == {"fabricated": choices}


def test_trials_that_do_not_compare_and_a_replay_are_refused() -> None:
    other = dataclasses.replace(values.RUN, machine=fakes.OTHER_MACHINE)
    settings = dataclasses.replace(values.RUN.settings, target=TargetName.parse("replay:space"))
    replay = dataclasses.replace(values.RUN, settings=settings)
    for runs, message in (
        ((values.RUN, other), "found trials of 2 problems, targets, machines or compilers"),
        ((), "found no trials, allowed one"),
        ((replay,), "run 3: is a replay: only runs that measured are exported"),
    ):
        with pytest.raises(UsageError, match=f"t4: {message}"):
            Recording(runs, ())


NAN = float("nan")
RESULT = {
    "configuration": {"block": 32, "unroll": 1},
    "times": {"compilation_time": 5.0, "runtimes": [1.0, 3.0]},
    "invalidity": "correct",
    "correctness": 1,
    "measurements": [{"name": "time", "value": 2.0, "unit": ""}],
    "objectives": ["time"],
}
SCORED = {"objectives": ["score"], "measurements": [{"name": "score", "value": 2.0, "unit": ""}]}


def foreign(*results: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"schema_version": "1.0.0", "metadata": metadata, "results": list(results)}


def read(folder: Path, document: dict[str, Any]) -> Any:
    path = folder / "foreign.json"
    path.write_text(json.dumps(document))
    return read_recorded(path)


def point(block: int, **changes: Any) -> dict[str, Any]:
    return {**RESULT, "configuration": {"block": block, "unroll": 1}, **changes}


@pytest.mark.parametrize("name", ["space.t4.json", "space.t4.json.gz"])
def test_what_was_written_is_read_back_and_equal_code_keeps_equal_numbers(tmp_path: Path, name: str) -> None:
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
        before = values.trial(number - 1).record.artifact_sha256
        is_same = bool(record.artifact_sha256) and record.artifact_sha256 == before
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


@pytest.mark.parametrize(("unit", "seconds"), UNITS_S.items())
def test_times_are_in_the_unit_of_the_file(tmp_path: Path, unit: str | None, seconds: float) -> None:
    space = read(tmp_path, foreign(point(32), device="A4000", **({"timeunit": unit} if unit else {})))
    assert space.outcomes == (RecordedTime(seconds, (seconds / 2, seconds * 1.5)),)
    assert (space.machine.name, space.feasible.candidate(0).text) == ("A4000", "foreign(block=32, unroll=1)")


def test_a_measurement_may_have_a_unit_of_its_own_that_fits_its_samples(tmp_path: Path) -> None:
    """Else a replay would answer the median of the samples, which is of another size than the time."""
    right, wrong = ([{"name": "time", "value": value, "unit": "us"}] for value in (2500.0, 2.0))
    assert read(tmp_path, foreign(point(32, measurements=right))).times_s[0] == pytest.approx(2.5e-3)
    message = r"foreign\.json: time: 2e-06 s does not fit samples of 0.001 to 0.003 s"
    with pytest.raises(UsageError, match=message):
        read(tmp_path, foreign(point(32, measurements=wrong)))


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("document", "message"),
    [
        (foreign(), "no point was tried"),
        (foreign(point(1, invalidity="constraints")), "no point was tried"),
        (foreign(point(1), timeunit="fortnights"), "timeunit: found 'fortnights', allowed nanoseconds, ns"),
        (foreign({"invalidity": "correct"}), "found no 'configuration' where its format has one"),
        (foreign(point(1, invalidity="odd")), "invalidity: found 'odd', allowed correct, constraints, comp"),
        (foreign(point(1, invalidity=[])), r"invalidity: found \[\], allowed"),
        (foreign(point(1), timeunit=[]), r"timeunit: found \[\], allowed nanoseconds"),
        (foreign(point(1, configuration=[1, 2])), "found another form"),
        (foreign(point(10**400)), r"knob 'block': found 1000+\.\.\., allowed numbers"),
        (foreign(point(1), RESULT | {"configuration": {"block": 2}}), "found no 'unroll' where its format"),
        (foreign(point(1), tuner={"version": 2}), r"tuner\.version: found 2, allowed 1"),
        (foreign(point(1, **SCORED)), "objective 'score': found unit '', allowed a time"),
        ({"rows": []}, r"found the keys 'rows', allowed 'results' \(T4\)"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, document: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(tmp_path, document)


@pytest.mark.parametrize(
    "samples", [[], [1.0, 0.0], [1.0, NAN], [NAN, 1.0], [1.0, None], ["1.0"], [1e20], [-1.0], [1e-300]]
)
def test_samples_count_only_where_all_are_times(tmp_path: Path, samples: list[object]) -> None:
    document = foreign(point(32, times={"compilation_time": 5.0, "runtimes": samples}))
    assert read(tmp_path, document).outcomes == (RecordedTime(2e-3),)


def put(document: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    for name in path[:-1]:
        document = document[name]
    document[path[-1]] = value


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        *((("inner_calls",), value, "allowed 1 or more") for value in (0, None, "2")),
        *((("interval_s",), value, "") for value in ([2.0, 1.0], [-1.0, 1.0], [NAN, 1.0], ["a", "b"])),
        *((("cold_median_s",), value, "allowed a time in seconds") for value in ("long", -1.0, 0)),
        (("verdict", "max_error"), "small", "allowed "),
        (("verdict", "elements"), [], "allowed "),
        (("verdict", "notes"), None, "allowed "),
    ],
)
def test_a_value_of_a_result_that_is_none_is_refused(
    tmp_path: Path, path: tuple[str, ...], value: object, message: str
) -> None:
    document = t4_document(values.recording())
    put(document["results"][0]["tuner"], path, value)
    with pytest.raises(UsageError, match=rf"tuner\.{'.'.join(path)}: found .*{message}"):
        read(tmp_path, document)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("path", "found"),
    [
        (("baseline", "median_s"), 0.0),
        (("baseline", "median_s"), NAN),
        (("baseline", "samples_s"), [-1.0]),
        (("baseline", "interval_s"), [2.0, 1.0]),
        (("baseline", "inner_calls"), 2**63),
        (("baseline", "threads"), "one"),
        (("baseline", "name"), None),
        (("machine", "physical_cores"), "two"),
        (("machine", "memory_bytes"), 2**70),
        (("machine", "name"), None),
        (("machine", "chip"), "sm_potato"),
        (("compiler", "packages"), [1]),
        (("problem", "shape"), [1.5, 2, 3]),
        *((("threads",), found) for found in (2**63, "two", 0, True, 1.5)),
        (("constraints",), "text"),
    ],
)
def test_what_cannot_be_stored_is_refused(tmp_path: Path, path: tuple[str, ...], found: object) -> None:
    """Taken as it comes it would end in a traceback, or be read as something else: 1.5 as 1."""
    document = t4_document(values.recording())
    timed = {"median_s": 1.0, "interval_s": [1.0, 1.0], "inner_calls": 1, "samples_s": [1.0]}
    document["metadata"]["tuner"]["baseline"] = {"name": "library", "threads": 1, **timed}
    assert read(tmp_path, document).baseline is not None
    put(document["metadata"]["tuner"], path, found)
    if path[-1] == "chip":  # of another vendor's GPU any word is allowed
        put(document["metadata"]["tuner"], (*path[:-1], "isa"), "ptx")
    message = "found 'sm_potato'" if path[-1] == "chip" else rf"tuner\.{path[0]}.*: found .*"
    with pytest.raises(UsageError, match=f"{message}, allowed "):
        read(tmp_path, document)


def test_the_name_of_a_device_stays_on_one_line(tmp_path: Path) -> None:
    assert read(tmp_path, foreign(point(32), device="A4000\nnext")).machine.name == "A4000\\nnext"


def test_no_word_of_our_own_part_moves_the_terminal_either(tmp_path: Path) -> None:
    document = t4_document(values.recording())
    own = document["metadata"]["tuner"]
    own["machine"]["name"] = own["machine"]["processor"] = own["compiler"]["mlir"] = "a\x1b[2J"
    document["results"][0]["tuner"]["verdict"]["notes"] = ["b\x1b[2J"]
    space = read(tmp_path, document)
    assert {space.machine.name, space.machine.processor, space.compiler.mlir} == {"a\\x1b[2J"}
    assert space.outcomes[0].verdict.notes == ("b\\x1b[2J",)


def test_a_verified_trial_has_no_time_and_others_keep_it_without_samples_or_cold(tmp_path: Path) -> None:
    document = t4_document(values.recording())
    for result in document["results"]:
        result["times"]["runtimes"] = []
    outcomes = [one for one in read(tmp_path, document).outcomes if isinstance(one, RecordedTime)]
    assert outcomes
    assert all(one.time_s > 0 and one.samples_s == () and one.measurement is None for one in outcomes)
    trial = values.trial(0)
    verified = dataclasses.replace(trial.record, outcome=Verdict(0.5, 64))
    recording = Recording((values.RUN,), (dataclasses.replace(trial, record=verified),), (values.SPACE,))
    document = t4_document(recording)
    (result,) = document["results"]
    assert (result["invalidity"], result["measurements"]) == ("correct", [])
    space = read(tmp_path, document)
    assert space.outcomes == (Failure(Stage.MEASURE, "recorded without a time"),)
    time = Measurement((1.0,), 1, 1.0, (1.0, 1.0), cold_median_s=1.5)
    timed = dataclasses.replace(trial, record=dataclasses.replace(trial.record, outcome=time))
    space = read(tmp_path, t4_document(Recording((values.RUN,), (timed,), (values.SPACE,))))
    assert space.outcomes[0].measurement == time
