import json
from typing import Any

import pytest

from tests.bundle.values import NOW, RESULTS, WRONG, measured, pending
from tuner.core.dataclass_json import decode, encode
from tuner.core.errors import UsageError
from tuner.core.measured_elsewhere import ElsewhereResults, MeasuredTrial
from tuner.core.pending_trial import Origin, PendingTrial


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(encode(value), allow_nan=False))


@pytest.mark.parametrize("value", [RESULTS, pending(), measured(1, WRONG)])
def test_values_come_back_equal(value: ElsewhereResults | PendingTrial | MeasuredTrial) -> None:
    assert decode(type(value), through_json(value), "file") == value


@pytest.mark.parametrize(
    ("path", "found", "message"),
    [
        (("origin", "number"), "one", r"^file\.origin\.number: found 'one', allowed int$"),
        (("origin", "number"), True, r"^file\.origin\.number: found True, allowed int$"),
        (("origin", "number"), 2**63, r"^file\.origin\.number: found 9223372036854775808, allowed -9223"),
        (("origin",), [], r"^file\.origin: found \[\], allowed the fields of a Origin$"),
        (("finished",), "soon", r"^file\.finished: found 'soon', allowed a datetime$"),
        (("finished",), "2026-01-01T00:00:00", r"allowed a moment with its zone$"),
        (("problem", "dtype"), "f7", r"dtype: found 'f7', allowed f32"),
        (("stage_s",), [["load", 1.0, 2.0]], r"^file\.stage_s\[0\]: found .*, allowed a list of 2$"),
        (("stage_s",), 3, r"^file\.stage_s: found 3, allowed a list$"),
        (
            ("outcome",),
            {"stage": "verify"},
            r"^file\.outcome: found \['stage'\], allowed the fields reason, st",
        ),
        (("outcome",), None, r"^file\.outcome: found None, allowed Measurement or Failure$"),
        (("verdict",), "x" * 99, r"^file\.verdict: found 'x{59}\.\.\., allowed Verdict or NoneType$"),
        (("extra",), 1, r"^file: found \['artifact_sha256', .*\.\.\., allowed the fields"),
    ],
)
def test_what_does_not_fit_is_told_by_its_place(path: tuple[str, ...], found: object, message: str) -> None:
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
