"""A real drill: a run is timed again beside busy loops, on this machine's processor, and its answer stays."""

import os
from pathlib import Path

import pytest

from benchmarks.busy_loops import spinning
from tuner import api
from tuner.core.problem import Matmul
from tuner.core.round_quality import OTHERS_LIMIT

pytestmark = pytest.mark.mlir
LOOPS_PER_PROCESSOR = 2


@pytest.mark.slow
def test_timing_again_next_to_busy_loops_replaces_no_quieter_answer(tmp_path: Path) -> None:
    """Whether the first round is a quiet one is this machine's affair; the second never is."""
    database = tmp_path / "drill.db"
    first = api.tune(Matmul(64, 64, 64), target="cpu", trials=3, db=database)
    assert first.selected is not None
    with spinning(LOOPS_PER_PROCESSOR * len(os.sched_getaffinity(0))):
        again = api.resume(first.run.id, database, retime=True)
    calm, disturbed = (each.quality for each in again.rounds)
    assert (
        disturbed.unreliable
    )  # of a virtual machine whose processors are taken too, that is the cause named
    assert disturbed.host is not None
    assert disturbed.host.others_cores > OTHERS_LIMIT
    keeps_first = calm.rank <= disturbed.rank
    assert keeps_first or calm.unreliable
    assert [each.is_answering for each in again.rounds] == [keeps_first, not keeps_first]
    assert (again.selected == first.selected) == keeps_first
    assert again.run.unreliable == (calm if keeps_first else disturbed).unreliable
