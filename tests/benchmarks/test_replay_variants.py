import json
from typing import Any

import pytest

from benchmarks import replay_variants
from benchmarks.replay_variants import Variant
from tuner.samplers import start


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr("sys.argv", ["replay_variants", *words])
    replay_variants.main()


def test_variants_are_compared_in_pairs_with_the_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ("--spaces", "2", "--evaluations", "12", "--processes", "1", "--json")
    run(monkeypatch, "local", "local:start.START_ROWS=6", "local:start.START_ROWS=12", *few)
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    base, same, other = document["rows"]
    assert base["difference"] == same["difference"] == same["difference_standard_error"] == 0
    assert same["p"] == base["p"]
    assert other["difference"] == pytest.approx(other["p"] - base["p"])
    assert other["difference"] != 0
    assert document["settings"] == {"spaces": 2, "first": 0, "evaluations": 12}


def test_constants_are_as_before_after_a_variant() -> None:
    before = start.START_ROWS
    with Variant.of("local:start.START_ROWS=11").applied():
        assert start.START_ROWS == 11
    assert before == start.START_ROWS


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("guess",), "sampler: found 'guess', allowed tpe, "),
        (("tpe:start.NONE=1",), "found 'start.NONE=1', allowed MODULE.CONSTANT=NUMBER of tuner.samplers"),
        (("tpe:none.ROWS=1",), "found 'none.ROWS=1', allowed MODULE.CONSTANT=NUMBER"),
        (("tpe:start.START_ROWS=six",), "found 'start.START_ROWS=six', allowed MODULE.CONSTANT=NUMBER"),
        (("tpe", "--spaces", "1"), "--spaces: found 1, allowed 2 or more"),
    ],
)
def test_wrong_words_are_told_in_a_line(
    words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run(monkeypatch, *words)
    assert message in capsys.readouterr().err
