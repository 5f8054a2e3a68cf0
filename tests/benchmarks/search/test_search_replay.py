"""Commands that compare searches: replays, ranks, warm starts."""

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.search import kernel_tuner, search_ranks, search_replay, transfer
from benchmarks.search.warm_start import STARTS, _is_good, _settings, _starts, _trials
from benchmarks.t4_writer import Recording, t4_bytes
from tests.benchmarks.search.test_replay_space import SHIPPED
from tests.space.recorded import values
from tuner.core.candidate import Candidate
from tuner.core.runs import SEED, WARM_START, InitialConfiguration
from tuner.space.recorded.reading import read_recorded
from tuner.space.search_space import SearchSpace

REPLAY = search_replay.main
SCORES = {"tpe": (0.8, 0.7, 0.6), "trees": (0.5, 0.75, 0.3), "random": (0.0, 0.1, -0.1)}
SPACE = read_recorded(SHIPPED)
BEST_ROW, WORST_ROW = int(np.nanargmin(SPACE.times_s)), int(np.nanargmax(SPACE.times_s))


def run(monkeypatch: pytest.MonkeyPatch, command: Callable[[], object], *options: str) -> None:
    monkeypatch.setattr("sys.argv", ["benchmark", *options])
    monkeypatch.setattr(kernel_tuner, "is_installed", lambda: False)
    monkeypatch.setattr(search_replay, "is_installed", lambda: False)
    command()


def test_searches_are_compared_on_a_recording(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    written = tmp_path / "out.json"
    options = "--sampler random local --evaluations 30 --seeds 2 --json --output"
    run(monkeypatch, REPLAY, str(SHIPPED), *options.split(), str(written))
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert json.loads(written.read_text()) == document
    assert [row["search"] for row in document["rows"]] == ["random", "local"]
    for row in document["rows"]:
        assert (row["asks_per_evaluation"], set(row["share_of_optimum"])) == (1, {"25"})
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
        ((str(SHIPPED), "--output", "none/x"), "found 'none/x', allowed a file in a folder that is"),
        ((str(SHIPPED), "--kernel-tuner", "guess"), "found 'guess', allowed random_sample, "),
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
        run(monkeypatch, REPLAY, *options)
    assert message in f"{ended.value.code} {capsys.readouterr().err}"
    assert ended.value.code not in (0, None)


def write(path: Path, scores: Mapping[str, tuple[float, ...]]) -> Path:
    rows = [
        {"search": name, "space": f"space {place}", "p": p, "p_standard_error": 0.01}
        for name, all_p in scores.items()
        for place, p in enumerate(all_p)
    ]
    path.write_text(json.dumps({"rows": rows}))
    return path


def ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *files: Path) -> list[dict[str, Any]]:
    output = tmp_path / "out.json"
    run(monkeypatch, search_ranks.main, *map(str, files), "--output", str(output))
    rows: list[dict[str, Any]] = json.loads(output.read_text())["rows"]
    return rows


def test_searches_are_ranked_space_by_space_where_they_have_all_of_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = ran(monkeypatch, tmp_path, write(tmp_path / "a.json", SCORES))
    assert [(row["search"], row["worst_rank"]) for row in rows] == [("tpe", 2), ("trees", 2), ("random", 3)]
    assert [row["mean_rank"] for row in rows] == pytest.approx([4 / 3, 5 / 3, 3])
    assert rows[0]["mean_rank_standard_error"] < 0.01  # 0.05 apart, errors of 0.01
    assert rows[0]["mean_p_standard_error"] == pytest.approx(0.01 / 3**0.5)
    files = write(tmp_path / "a.json", SCORES), write(tmp_path / "b.json", {"local": (0.9,)})
    assert "local" not in {row["search"] for row in ran(monkeypatch, tmp_path, *files)}
    with pytest.raises(SystemExit, match="found 1 searches that all spaces have, allowed 2 or more"):
        ran(monkeypatch, tmp_path, write(tmp_path / "c.json", {"tpe": (0.5,)}))


def trials(first: tuple[int, ...], limit: int) -> int:
    options = argparse.Namespace(sampler="random", trials=limit)
    points = tuple(InitialConfiguration(SPACE.feasible.candidate(row), SEED) for row in first)
    return _trials(_settings(SHIPPED, SPACE, options), points, SPACE, 0, 1.0)


@pytest.mark.parametrize(
    ("first", "limit", "expected"),
    [((BEST_ROW,), 40, 1), ((WORST_ROW, BEST_ROW), 40, 2), ((WORST_ROW,), 1, 2)],  # the last found none
)
def test_a_search_ends_with_the_first_good_trial(first: tuple[int, ...], limit: int, expected: int) -> None:
    assert trials(first, limit) == expected


def test_a_search_begins_with_known_points_and_good_is_within_a_share_of_the_optimum() -> None:
    settings = _settings(SHIPPED, SPACE, argparse.Namespace(sampler="random", trials=1))
    starts = _starts(SPACE, settings, (SHIPPED,))
    assert (tuple(starts), {point.origin for point in starts["warm"]}) == (STARTS, {WARM_START})
    assert starts["warm"][0].candidate == SPACE.feasible.candidate(BEST_ROW)
    assert {point.origin for point in starts["seeded"]} == {SEED}
    interleaved = [starts[name][0].candidate for name in ("warm", "seeded")]
    assert [point.candidate for point in starts["both"][:2]] == interleaved
    assert starts["cold"] == ()
    best = float(np.nanmin(SPACE.times_s))
    assert _is_good(np.array([best, best / 0.97, best / 0.9, np.nan]), SPACE, 0.96).tolist() == [1, 1, 0, 0]


def recorded(path: Path, strategy: str) -> None:
    """Writes the fabricated space as that of a strategy, recorded on a machine with the file's name."""
    run = replace(values.RUN, machine=replace(values.RUN.machine, name=path.name))
    trials = []
    for trial in values.recording().trials:
        candidate = Candidate.of(strategy, dict(trial.record.candidate.choices))
        trials.append(replace(trial, record=replace(trial.record, candidate=candidate)))
    space = SearchSpace(strategy, values.KNOBS)
    path.write_bytes(t4_bytes(Recording((run,), tuple(trials), (space,)), is_compressed=False))


def test_each_machine_of_a_space_is_left_out_and_a_space_of_one_machine_is_no_pair(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    recorded(tmp_path / "other_a.json", "other")
    with pytest.raises(SystemExit, match="found no space that two files have, allowed 1 or more"):
        run(monkeypatch, transfer.main, str(tmp_path))
    recorded(tmp_path / "space_a.json", "fabricated")
    recorded(tmp_path / "space_b.json", "fabricated")
    options = "--evaluations 8 --seeds 2 --json"
    run(monkeypatch, transfer.main, str(tmp_path), *options.split())
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [row["space"] for row in document["rows"]] == ["space_a", "space_b"]
    assert [row["from"] for row in document["rows"]] == [["space_b.json"], ["space_a.json"]]
    assert all(row["with"]["p"] > row["without"]["p"] for row in document["rows"])
    assert document["summary"]["mean_p_with"] > document["summary"]["mean_p_without"]
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(SystemExit, match=r"transfer: .*bad\.json"):
        run(monkeypatch, transfer.main, str(tmp_path))
