"""The stored roofline is a bound of what a run reached, whatever the probe of it found."""

from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.tuning import fakes
from tuner.core.machine import Roofline


@pytest.mark.slow
def test_a_probe_below_what_the_best_trial_reached_is_raised_where_it_is_stored(tmp_path: Path) -> None:
    slow = fakes.backends(roofline=lambda _problem, _threads: Roofline(1.0, 1e9))
    tuner = Tuner(tmp_path / "results.db", slow)
    done = tuner("tune", "matmul", "8x8x8", "--trials", "6")
    assert done.code == 0, done.err
    (run,) = tuner("runs", "--json").json
    best_s = min(trial["median_s"] for trial in tuner("history", "--json").json if trial["median_s"])
    assert run["roofline"]["flop_per_s"] >= 2 * 8**3 / best_s
    assert run["roofline"]["flop_source"] == "reached by a kernel"
    (line,) = [each for each in tuner("show", "run:1").out.splitlines() if each.startswith("roofline")]
    assert line.startswith("roofline  100.0% of what 1 thread can do (")
