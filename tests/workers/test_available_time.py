"""Time limits count the time in which the waiting process could run."""

import itertools
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.workers.available_time import LONGEST_STEP_S, AvailableTime
from tuner.workers.timed_command import run_command

STEPS_S = st.lists(st.floats(0.0, 2 * LONGEST_STEP_S) | st.floats(1.0, 1e5), min_size=1, max_size=30)


@given(STEPS_S)
def test_short_steps_count_and_of_a_pause_almost_nothing(steps_s: list[float]) -> None:
    moments_s = itertools.accumulate(steps_s, initial=7.0)
    clock = AvailableTime(lambda: next(moments_s))
    counted_s = itertools.accumulate(min(step_s, LONGEST_STEP_S) for step_s in steps_s)
    assert [clock() for _ in steps_s] == pytest.approx(list(counted_s))


def test_a_command_is_not_ended_for_a_pause(tmp_path: Path) -> None:
    looks = itertools.count()

    def clock() -> float:
        """Goes on by a thousand seconds with each look; the command ends after the third."""
        number = next(looks)
        if number == 3:
            (tmp_path / "go").touch()
        return 1000.0 * number

    script = f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo done; echo why >&2; exit 3"
    done = run_command(["sh", "-c", script], 60.0, clock)
    assert (done.returncode, done.stdout, done.stderr) == (3, "done\n", "why\n")


def test_a_command_that_hangs_is_ended() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_command(["sleep", "1000"], 0.1)
