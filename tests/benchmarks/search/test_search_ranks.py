import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.search import search_ranks

SCORES = {"tpe": (0.8, 0.7, 0.6), "trees": (0.5, 0.75, 0.3), "random": (0.0, 0.1, -0.1)}


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
    options = ["search_ranks", *map(str, files), "--output", str(output)]
    monkeypatch.setattr(sys, "argv", options)
    search_ranks.main()
    rows: list[dict[str, Any]] = json.loads(output.read_text())["rows"]
    return rows


def test_searches_are_ranked_space_by_space(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = ran(monkeypatch, tmp_path, write(tmp_path / "a.json", SCORES))
    assert [(row["search"], row["mean_rank"], row["worst_rank"]) for row in rows] == [
        ("tpe", pytest.approx(4 / 3), 2),
        ("trees", pytest.approx(5 / 3), 2),
        ("random", 3.0, 3),
    ]
    assert rows[0]["mean_rank_standard_error"] < 0.01  # 0.05 apart, errors of 0.01
    assert rows[0]["mean_p_standard_error"] == pytest.approx(0.01 / 3**0.5)


def test_what_a_space_lacks_is_not_ranked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = write(tmp_path / "a.json", SCORES), write(tmp_path / "b.json", {"local": (0.9,)})
    assert "local" not in {row["search"] for row in ran(monkeypatch, tmp_path, *files)}


def test_one_search_has_no_rank(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="found 1 searches that all spaces have, allowed 2 or more"):
        ran(monkeypatch, tmp_path, write(tmp_path / "a.json", {"tpe": (0.5,)}))
