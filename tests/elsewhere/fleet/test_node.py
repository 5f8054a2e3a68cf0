"""A node as a process of its own, on a real server."""

import json
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.elsewhere.fleet.fake_node import REQUEST, queue_script, started_node
from tests.elsewhere.fleet.recorded_runs import TARGET
from tests.elsewhere.fleet.values import under_way
from tests.fakes import is_alive
from tests.support.small_disk import small_disk
from tests.tuning.fakes import FAKE
from tuner.core.errors import TunerError
from tuner.elsewhere.fleet import queues, tables
from tuner.elsewhere.fleet.install import install
from tuner.elsewhere.fleet.leftovers import MARK, cleaned_up_unless_ended, marked
from tuner.elsewhere.fleet.local_fleet import LocalNodes
from tuner.elsewhere.fleet.node import run_node
from tuner.elsewhere.fleet.server import session
from tuner.elsewhere.fleet.tables import LEAST_LEASE_S, FleetSettings
from tuner.runtime.workers.processes import PROCESSES

LIMIT_S = 120
DEEDS = ({"x": 3, "at": "compile", "deed": deed} for deed in ("sleep", "write"))
SLEEPING, WRITING = (json.dumps(deed).encode() for deed in DEEDS)


@pytest.fixture
def brief_url(empty_url: str) -> str:
    install(empty_url, FleetSettings(LEAST_LEASE_S))
    return empty_url


def test_a_node_without_package_does_not_begin() -> None:
    asking = replace(REQUEST, keep_free_bytes=1 << 60)
    with pytest.raises(TunerError, match=r": found \d+ MiB free, allowed 1099511627776 or more$"):
        run_node("postgresql://nobody@nowhere/none", asking, FAKE, print)


@pytest.mark.slow
@pytest.mark.postgres
def test_a_node_goes_on_after_a_lost_heartbeat_and_ends_by_two_ctrl_c(brief_url: str, run: str) -> None:
    with session(brief_url) as connection, started_node(brief_url) as node:
        assert node.stdout is not None
        assert ": works for fake on " in node.stdout.readline()
        connection.execute("ALTER TABLE fleet_node RENAME TO elsewhere")
        assert ': heartbeat: fleet: database: relation "fleet_node" does not exist' in node.stdout.readline()
        connection.execute("ALTER TABLE elsewhere RENAME TO fleet_node")
        queue_script(connection, run, SLEEPING)
        while not any(each.doing_count for each in queues.waiting(connection)):
            assert node.poll() is None
            time.sleep(0.02)
        node.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            node.wait(0.3)
        node.send_signal(signal.SIGINT)
        assert node.wait(LIMIT_S) != 0
        assert tables.stored_nodes(connection) == ()


# A real disk without room: a small file system of a node's own, that ends with it.

DISK_KIB = 512  # half of what the deed writes


@pytest.fixture
def little_disk_space(tmp_path: Path) -> tuple[str, ...]:
    try:
        return ("env", f"TMPDIR={tmp_path}", *small_disk(tmp_path, DISK_KIB))
    except TunerError as error:
        pytest.skip(str(error))


@pytest.mark.postgres
@pytest.mark.slow
def test_a_node_whose_disk_fills_up_gives_the_job_back_and_ends(
    fleet_url: str, run: str, little_disk_space: tuple[str, ...]
) -> None:
    with session(fleet_url) as connection:
        asked = queue_script(connection, run, WRITING)
        with started_node(fleet_url, *little_disk_space) as full:
            said, _ = full.communicate(timeout=LIMIT_S)
        assert full.returncode == 1
        gives, ends = said.splitlines()[-2:]
        reason = "compile worker: OSError: [Errno 28] No space left on device"
        assert f": gives compile of trial 0 back: {reason}" in gives
        assert f": ended: {reason}" in ends
        assert under_way(connection, run) == {(0, "compile")}
        assert not tables.has_outcome(connection, asked.key)


@pytest.mark.postgres
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


# What is left by processes that end by SIGKILL: nothing.

EVERYBODY = 0o755  # may enter: the server has a user of its own
OWNER = """
import subprocess, sys, time
from pathlib import Path
from tuner.elsewhere.fleet.leftovers import MARK, cleaned_up_unless_ended
mark, folder = sys.argv[1:]
with cleaned_up_unless_ended(mark, Path(folder)):
    sleeper = subprocess.Popen(["env", f"{MARK}={mark}", "sleep", "1000"])
    print(sleeper.pid, flush=True)
    time.sleep(1000)
"""


def wait_until(is_so: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < give_up_s
        time.sleep(0.05)


def test_a_killed_process_leaves_neither_processes_nor_its_folder(tmp_path: Path) -> None:
    mark, folder = uuid.uuid4().hex, tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    command = [sys.executable, "-c", OWNER, mark, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        sleeper = int(owner.stdout.readline())
        wait_until(lambda: marked(mark) == (sleeper,))
        owner.kill()
    wait_until(lambda: not is_alive(sleeper))
    wait_until(lambda: not folder.exists())


def test_what_ends_well_is_left_to_its_owner(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    with cleaned_up_unless_ended(mark, tmp_path):
        sleeper = subprocess.Popen(["env", f"{MARK}={mark}", "sleep", "1000"])
    assert sleeper.poll() is None
    assert tmp_path.exists()
    with pytest.raises(KeyError), cleaned_up_unless_ended(mark):
        raise KeyError
    assert sleeper.wait(LIMIT_S) != 0


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Gives a folder for temporary files, whose name is short: a socket's path is limited."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(EVERYBODY)
        yield Path(name)


def naming(phrase: str) -> tuple[str, ...]:
    found = []
    for entry in PROCESSES.glob("[0-9]*"):
        try:
            given = [(entry / name).read_bytes() for name in ("cmdline", "environ")]
        except OSError:  # it has ended
            continue
        if any(phrase.encode() in each for each in given):
            found.append(given[0].replace(b"\0", b" ").decode())
    return tuple(found)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.usefixtures("postgres_server")  # skipped where none can be
def test_a_killed_demo_leaves_nothing(short_folder: Path) -> None:
    phrase = ("fleet", "demo", "matmul", "48x64x40", "--target", TARGET)
    with subprocess.Popen(
        ["env", f"TMPDIR={short_folder}", sys.executable, "-m", "tuner", *phrase], stderr=subprocess.DEVNULL
    ) as demo:
        wait_until(lambda: any(" fleet worker " in each for each in naming(str(short_folder))))
        (server,) = short_folder.glob("pg-*/d/postmaster.pid")
        assert is_alive(int(server.read_text().splitlines()[0]))
        demo.kill()
    wait_until(lambda: not naming(str(short_folder)))
    assert list(short_folder.iterdir()) == []
