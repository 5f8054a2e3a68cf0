from pathlib import Path

import pytest

from tests.fleet.recorded_runs import TARGET
from tuner.core.errors import TunerError
from tuner.fleet.local_fleet import LocalNodes

pytestmark = pytest.mark.postgres


@pytest.mark.slow
def test_a_node_that_cannot_work_is_reported_of_and_none_is_left(shared_url: str, tmp_path: Path) -> None:
    with LocalNodes(shared_url, TARGET, tmp_path) as nodes:
        nodes.start("idler")
        with pytest.raises(TunerError, match=r"node idler: error: worker: nothing to do"):
            nodes.wait_until_ready("idler")
        nodes.start("worker", "--compile", "1")
        nodes.wait_until_ready("worker")
        with pytest.raises(TunerError, match=r"worker: did not end within 0\.1 s"):
            nodes.wait("worker", 0.1)
        assert nodes.orphans(within_s=0.0) != ()
        nodes.ask_to_end("worker")
        assert nodes.wait("worker", 120) == 0
    assert nodes.orphans() == ()
