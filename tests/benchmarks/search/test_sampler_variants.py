import json
from typing import Any

import pytest

from benchmarks.search import sampler_variants
from benchmarks.search.sampler_variants import Variant
from tuner.search import task


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    monkeypatch.setattr("sys.argv", ["sampler_variants", *options])
    sampler_variants.main()


@pytest.mark.slow
def test_variants_are_compared_in_pairs_with_the_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ("--spaces", "2", "--evaluations", "12", "--processes", "1", "--json")
    run(monkeypatch, "local", "local:task.START_ROWS=6", "local:task.START_ROWS=12", *few)
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    base, same, other = document["rows"]
    assert base["difference"] == same["difference"] == same["difference_standard_error"] == 0
    assert same["p"] == base["p"]
    assert other["difference"] == pytest.approx(other["p"] - base["p"])
    assert other["difference"] != 0
    assert document["settings"] == {"spaces": 2, "first": 0, "evaluations": 12}


def test_constants_are_as_before_after_a_variant() -> None:
    before = task.START_ROWS
    with Variant.of("local:task.START_ROWS=11").applied():
        assert task.START_ROWS == 11
    assert before == task.START_ROWS


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("guess",), "sampler: found 'guess', allowed tpe, "),
        (
            ("tpe:task.NONE=1",),
            "found 'task.NONE=1', allowed MODULE.CONSTANT=NUMBER of tuner.search",
        ),
        (("tpe:none.ROWS=1",), "found 'none.ROWS=1', allowed MODULE.CONSTANT=NUMBER"),
        (
            ("tpe:task.START_ROWS=six",),
            "found 'task.START_ROWS=six', allowed MODULE.CONSTANT=NUMBER",
        ),
        (("tpe", "--spaces", "1"), "--spaces: found 1, allowed 2 or more"),
    ],
)
def test_wrong_arguments_are_reported_in_a_line(
    options: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        run(monkeypatch, *options)
    assert message in capsys.readouterr().err
