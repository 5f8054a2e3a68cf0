"""A real disk without room: a small file system of a node's own, that ends with it."""

import json
from pathlib import Path

import pytest

from benchmarks.fleet.small_disk import small_disk
from tests.fleet.fake_node import queue_script, started_node
from tests.fleet.values import under_way
from tuner.core.errors import TunerError
from tuner.fleet import tables
from tuner.fleet.server import session

pytestmark = pytest.mark.postgres
SCRIPT = json.dumps({"x": 3, "at": "compile", "deed": "write"}).encode()
DISK_KIB = 512  # half of what the deed writes
LIMIT_S = 120


@pytest.fixture
def little_disk_space(tmp_path: Path) -> tuple[str, ...]:
    """Returns the words before a command whose temporary files have little room."""
    try:
        return ("env", f"TMPDIR={tmp_path}", *small_disk(tmp_path, DISK_KIB))
    except TunerError as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_a_node_whose_disk_fills_up_gives_the_job_back_and_ends(
    fleet_url: str, run: str, little_disk_space: tuple[str, ...]
) -> None:
    with session(fleet_url) as connection:
        asked = queue_script(connection, run, SCRIPT)
        with started_node(fleet_url, *little_disk_space) as full:
            said, _ = full.communicate(timeout=LIMIT_S)
        assert full.returncode == 1
        gives, ends = said.splitlines()[-2:]
        reason = "compile worker: OSError: [Errno 28] No space left on device"
        assert f": gives compile of trial 0 back: {reason}" in gives
        assert f": ended: {reason}" in ends
        assert under_way(connection, run) == {(0, "compile")}
        assert not tables.is_reported(connection, asked.key)
