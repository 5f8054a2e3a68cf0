import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.search.kernel_tuner import is_installed, replay_kernel_tuner, write_cache
from benchmarks.search.replay_space import ReplaySpace
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.recorded.reading import read_recorded
from tuner.space.search_space import Knob, SearchSpace


def space() -> ReplaySpace:
    knobs = (Knob("tile", (8, 16, 32)), Knob("order", ("mn", "nm")))
    feasible = FeasibleSet.of((SearchSpace("s", knobs, (parse("tile != 16", "c[0]"),)),))
    return ReplaySpace("s", feasible, np.array([2e-3, np.nan, 1e-3, 4e-3]))


def test_the_cache_it_reads_has_every_row(tmp_path: Path) -> None:
    write_cache(space(), tmp_path / "cache.json")
    document = json.loads((tmp_path / "cache.json").read_text())
    assert list(document["cache"]) == ["8,mn", "8,nm", "32,mn", "32,nm"]
    back = read_recorded(tmp_path / "cache.json")
    assert back.times_s == pytest.approx(space().times_s, nan_ok=True)


@pytest.mark.skipif(not is_installed(), reason="needs kernel-tuner")
def test_its_search_finds_the_best_of_the_allowed_rows(tmp_path: Path) -> None:
    write_cache(space(), tmp_path / "cache.json")
    done = replay_kernel_tuner(space(), tmp_path / "cache.json", "random_sample", seed=1, evaluations=4)
    assert done.found_s[-1] == pytest.approx(1e-3)
    assert done.evaluations == 4
