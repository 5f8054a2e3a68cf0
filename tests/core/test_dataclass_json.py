import json
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest

from tests.library.bundle.values import NOW, RESULTS, WRONG, measured, pending
from tuner.core.errors import UsageError
from tuner.core.remote_results import MeasuredTrial, Origin, PendingTrial, RemoteResults
from tuner.core.serialization import decode, encode, form, known_part, number, parsed, require_format, whole


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(encode(value), allow_nan=False))


@pytest.mark.parametrize("value", [RESULTS, pending(), measured(1, WRONG)])
def test_values_come_back_equal(value: RemoteResults | PendingTrial | MeasuredTrial) -> None:
    assert decode(type(value), through_json(value), "file") == value


@pytest.mark.parametrize(
    ("path", "found", "message"),
    [
        (("origin", "number"), "one", r"^file\.origin\.number: found 'one', allowed a whole number$"),
        (("origin", "number"), True, r"^file\.origin\.number: found True, allowed a whole number$"),
        (("origin", "number"), 2**63, r"^file\.origin\.number: found 9223372036854775808, allowed -9223"),
        (("origin",), [], r"^file\.origin: found \[\], allowed an object$"),
        (("finished",), "soon", r"^file\.finished: found 'soon', allowed a datetime$"),
        (("finished",), "2026-01-01T00:00:00", r"allowed a moment with its zone$"),
        (("problem", "dtype"), "f7", r"dtype: found 'f7', allowed f32"),
        (("stage_s",), [["load", 1.0, 2.0]], r"^file\.stage_s\[0\]: found .*, allowed a list of 2$"),
        (("stage_s",), 3, r"^file\.stage_s: found 3, allowed a list$"),
        (("outcome",), {"stage": "verify"}, r"^file\.outcome\.reason: missing$"),
        (("outcome",), None, r"^file\.outcome: found None, allowed Measurement or Failure$"),
        (("verdict",), "x" * 99, r"^file\.verdict: found 'x{59}\.\.\., allowed an object$"),
        (("extra",), 1, r"^file\.'extra': unknown, allowed artifact_sha256, "),
    ],
)
def test_what_does_not_fit_is_reported_by_its_place(
    path: tuple[str, ...], found: object, message: str
) -> None:
    document = through_json(measured())
    inner = document
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = found
    with pytest.raises(UsageError, match=message):
        decode(MeasuredTrial, document, "file")


def test_a_failure_of_no_stage_is_refused() -> None:
    document = through_json(measured(1, WRONG))
    document["outcome"]["stage"] = "moon"
    with pytest.raises(UsageError, match=r"^file\.outcome\.stage: found 'moon', allowed a Stage$"):
        decode(MeasuredTrial, document, "file")


def test_whole_numbers_are_taken_for_seconds() -> None:
    document = through_json(measured())
    document["outcome"]["median_s"] = 1
    outcome = decode(MeasuredTrial, document, "file").outcome
    assert outcome.median_s == 1.0  # type: ignore[union-attr]


def test_moments_keep_their_microseconds() -> None:
    assert encode(NOW) == "2026-03-04T05:06:07.000089+00:00"


def test_objects_are_written_by_their_fields() -> None:
    assert encode(Origin("r", 1)) == {"run": "r", "number": 1}


def of(pair: tuple[float, float]) -> complex:
    return complex(*pair)


@dataclass(frozen=True)
class Part:
    share: Annotated[float, number("a share", lambda share: 0 <= share <= 1)]
    count: Annotated[int, whole(1)] | None = None
    knobs: dict[str, int | str] = field(default_factory=dict)
    place: complex = field(default=0j, metadata=form(tuple[float, float], lambda z: (z.real, z.imag), of))


PART = Part(0.5, 3, {"tile": 4, "order": "mn"}, 1 + 2j)


def test_fields_may_have_another_form_in_a_document() -> None:
    document = through_json(PART)
    assert document["place"] == [1.0, 2.0]
    assert decode(Part, document, "file") == PART


@pytest.mark.parametrize(
    ("key", "found", "message"),
    [
        ("share", 2, r"^a file: share: found 2, allowed a share$"),
        ("share", True, r"^a file: share: found True, allowed a share$"),
        ("count", 0, r"^a file: count: found 0, allowed 1 or more$"),
        ("knobs", {"tile": [4]}, r"^a file: knobs\.tile: found \[4\], allowed a whole number or text$"),
        ("knobs", [], r"^a file: knobs: found \[\], allowed an object$"),
        ("place", [1.0], r"^a file: place: found \[1\.0\], allowed a list of 2$"),
    ],
)
def test_what_a_field_does_not_take_is_reported_in_its_words(key: str, found: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        decode(Part, through_json(PART) | {key: found}, "a file: ")


def test_what_other_versions_wrote_next_to_is_left_out() -> None:
    document = known_part(Part, through_json(PART) | {"later": 1}, "file")
    assert decode(Part, document, "file") == PART
    with pytest.raises(UsageError, match=r"^file: found 3, allowed an object$"):
        known_part(Part, 3, "file")


@pytest.mark.parametrize("text", ["{", "[" * 100_000, b"\xff"])
def test_text_that_is_no_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(UsageError, match=r"^file: is not JSON: "):
        parsed(text, "file")


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ([], "^file: found format None, allowed 'mine'$"),
        ({"format": "other"}, "^file: found format 'other', allowed 'mine'$"),
        ({"format": "mine", "version": 2}, "^file: found version 2 of mine, allowed 1$"),
    ],
)
def test_a_file_of_another_program_or_version_is_refused(head: object, message: str) -> None:
    require_format({"format": "mine", "version": 1}, "mine", 1, "file")
    with pytest.raises(UsageError, match=message):
        require_format(head, "mine", 1, "file")
