import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.search import kernel_tuner, search_replay
from tests.benchmarks.search.test_replay_space import SHIPPED

RUN = ("--evaluations", "30", "--seeds", "2", "--json")


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    monkeypatch.setattr("sys.argv", ["search_replay", *options])
    monkeypatch.setattr(kernel_tuner, "is_installed", lambda: False)
    monkeypatch.setattr(search_replay, "is_installed", lambda: False)
    search_replay.main()


def test_searches_are_compared_on_a_recording(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    written = tmp_path / "out.json"
    run(monkeypatch, str(SHIPPED), "--sampler", "random", "local", *RUN, "--output", str(written))
    out = capsys.readouterr().out
    document: dict[str, Any] = json.loads(out)
    assert json.loads(written.read_text()) == document
    assert [row["search"] for row in document["rows"]] == ["random", "local"]
    for row in document["rows"]:
        assert row["asks_per_evaluation"] == 1
        assert set(row["share_of_optimum"]) == {"25"}
        assert 0 < row["share_of_optimum"]["25"] <= 1
        assert row["p"] <= 1
        assert row["p_standard_error"] > 0
    assert set(document["summary"]["mean_p"]) == {"random", "local"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "found no space, allowed files and --synthetic N"),
        (("none.json",), "none.json: cannot be read"),
        ((str(SHIPPED), "--sampler", "guess"), "sampler: found 'guess', allowed tpe, "),
        ((str(SHIPPED), "--seeds", "0"), "--seeds: found 0, allowed 1 or more"),
        (
            (str(SHIPPED), "--output", "none/x"),
            "--output: found 'none/x', allowed a file in a folder that is",
        ),
        ((str(SHIPPED), "--kernel-tuner", "guess"), "--kernel-tuner: found 'guess', allowed random_sample, "),
        ((str(SHIPPED), "--kernel-tuner"), "--kernel-tuner: the package kernel_tuner is missing"),
    ],
)
def test_wrong_arguments_are_reported_in_a_line(
    options: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, *options)
    assert message in f"{ended.value.code} {capsys.readouterr().err}"
    assert ended.value.code not in (0, None)
