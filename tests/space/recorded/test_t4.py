"""The words of the format for failures."""

import dataclasses
import gzip

import pytest

from tests.space.recorded import values
from tests.tuning import fakes
from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, Stage, UsageError
from tuner.space.recorded.t4 import Recording, invalidity_of, t4_bytes, t4_document


@pytest.mark.parametrize("stage", list(Stage))
def test_every_stage_has_a_word(stage: Stage) -> None:
    assert invalidity_of(Failure(stage, "no")) in ("compile", "runtime", "correctness")
    assert invalidity_of(Failure(stage, "timed out after 3 s")) == "timeout"


# What is written in the format that autotuners share, and what is refused.


def test_equal_recordings_are_equal_bytes() -> None:
    recording = values.recording()
    assert t4_bytes(recording, is_compressed=True) == t4_bytes(recording, is_compressed=True)
    assert gzip.decompress(t4_bytes(recording, is_compressed=True)) == t4_bytes(recording)


def test_every_result_has_what_the_schema_requires() -> None:
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


def test_without_spaces_the_knobs_are_what_was_tried() -> None:
    recording = dataclasses.replace(values.recording(), spaces=())
    knobs = t4_document(recording)["metadata"]["tuner"]["knobs"]
    assert knobs == {
        "fabricated": {k.name: sorted(k.choices, key=str if k.is_text else None) for k in values.KNOBS}
    }


def test_trials_that_do_not_compare_are_refused() -> None:
    other = dataclasses.replace(values.RUN, machine=fakes.OTHER_MACHINE)
    with pytest.raises(UsageError, match="t4: found trials of 2 problems, targets, machines or compilers"):
        Recording((values.RUN, other), ())
    with pytest.raises(UsageError, match="t4: found no trials, allowed one"):
        Recording((), ())


def test_a_replay_is_never_written_as_a_recording() -> None:
    settings = dataclasses.replace(values.RUN.settings, target=TargetName.parse("replay:space"))
    replay = dataclasses.replace(values.RUN, settings=settings)
    with pytest.raises(UsageError, match="t4: run 3: is a replay: only runs that measured are exported"):
        Recording((replay,), ())
