"""``tuner judge``: a script or a stream of them, each answered by a document; a wrong line ends nothing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Tuner, require, require_fields
from tests.results.regression.test_submission import NoFacts
from tuner.results.regression import submission

PROBLEM = ("--problem", "matmul 8x8x8 f32", "--target", "fake")


@pytest.fixture(autouse=True)
def without_facts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(submission, "ScriptFactsChild", NoFacts)
    return iter([None])


@pytest.fixture
def script(tmp_path: Path) -> str:
    (tmp_path / "mine.mlir").write_text('{"x": 7}')
    return str(tmp_path / "mine.mlir")


def lines(tuner: Tuner, *documents: Any) -> list[dict[str, Any]]:
    texts = (each if isinstance(each, str) else json.dumps(each) for each in documents)
    done = tuner.done("judge -", *PROBLEM, stdin="".join(f"{text}\n" for text in texts))
    return [json.loads(line) for line in done.out.splitlines()]


def test_a_script_is_answered_by_one_document_and_stored_as_a_trial_of_a_run_judged(
    tuner: Tuner, script: str
) -> None:
    document = tuner.done("judge", script, *PROBLEM).json
    knobs = {"name": "mine", "sha256": document["knobs"]["sha256"]}
    require_fields(
        document, correct=True, status="measured", trial=1, is_best=True, strategy="judged", knobs=knobs
    )
    require(tuner.done("history --strategy judged").out, "measured, best")
    require(tuner.done("show run:1").out, "none: its scripts were given to tuner judge")
    require(tuner.done("export --trial 1").out, '"x": 7')
    assert "has no search to continue" in tuner.refused("tune --resume 1 --retime")


def test_a_wrong_script_is_answered_with_stage_and_reason_and_the_exit_code_is_1(
    tuner: Tuner, script: str
) -> None:
    Path(script).write_text('{"x": 7, "deed": "wrong", "at": "verify"}')
    require_fields(tuner.failed("judge", script, *PROBLEM).json, correct=False, stage="verify", median_s=None)


def test_each_line_is_answered_in_its_order_with_its_id_and_a_wrong_one_by_its_error(
    tuner: Tuner, script: str
) -> None:
    answers = lines(
        tuner,
        {"script": script, "id": "file"},
        "nonsense",
        {"script": '{"x": 3}', "name": "text", "id": 2},
        {"text": "x"},
        {"script": '{"x": 3}', "scripts": 1},
        {"script": '{"x": 3}', "problem": "matmul 8x8"},
        {"script": '{"x": 3}', "problem": 3},
        {"script": "none.mlir"},
        {"script": '{"x": 3, "deed": "raise", "at": "load"}'},
        {"script": '{"x": 6}', "problem": "matmul 16x16x16"},
    )
    assert [answer["id"] for answer in answers[:3]] == ["file", None, 2]
    assert [answer.get("correct") for answer in answers] == [True, None, True, *[None] * 5, False, True]
    errors = [answer["error"] for answer in answers if "error" in answer]
    require(errors[0], "line 2: is not JSON")
    require(errors[1], "line 4: found another form, allowed")
    require(errors[2], "line 5: key: found 'scripts', allowed script, problem, name, id")
    require(errors[3], "allowed MxNxK")
    require(errors[4], "line 7: problem: found 3, allowed a text")
    require(errors[5], "none.mlir: cannot be read")
    assert [(answer["run"], answer["trial"]) for answer in answers if "run" in answer] == [
        *((1, trial) for trial in (1, 2, 3)),
        (2, 4),
    ]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("line", "error"),
    [
        ('{"script": "{\\ud800"}', "line 1: script: has a character that no text has"),
        ('{"script": "{\\u0000"}', "line 1: script: has a character that no text has"),
        ("[" * 200_000, "line 1: is not JSON"),
        (json.dumps({"script": "x" * 5000}), "line 1: File name too long"),
        ('{"script": "{}", "id": NaN}', "line 1: id: allowed are a text and a whole number"),
    ],
)
def test_a_hostile_line_is_answered_and_the_next_one_is_read(tuner: Tuner, line: str, error: str) -> None:
    refused, answered = lines(tuner, line, {"script": '{"x": 6}', "id": 2})
    assert refused["error"].startswith(error)
    assert (answered["correct"], answered["id"]) == (True, 2)


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "the problem is missing"),
        (("--problem", "matmul"), "problem: found 'matmul', allowed OPERATION SHAPE"),
        (("--problem", "none.mlir"), "none.mlir: cannot be read"),
        ((*PROBLEM, "--memory", "1"), "memory: found 1, allowed 512 MiB or more"),
        ((*PROBLEM, "--timeout", "soon"), "found 'soon', allowed a time such as 60s"),
        ((*PROBLEM, "--threads", "0"), "threads: found 0, allowed 1 or more"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    tuner: Tuner, script: str, options: tuple[str, ...], message: str
) -> None:
    assert message in tuner.refused("judge", script, *options)
