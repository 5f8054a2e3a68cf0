"""Nothing that a call stored is lost: kills, other writers, full disks, for real."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.db.processes import facts, start
from tests.db.values import PROBLEM, SCRIPT, TOO_WIDE, add, begin, outcome, timed
from tuner.core.runs import Counts
from tuner.db.store import Store


def test_a_closed_store_opens_again_with_all_that_it_held(url: str) -> None:
    with Store.open(url) as store:
        trial = add(store, begin(store), 0, outcome(timed(1.0)))
    with Store.open(url) as store:
        assert store.trial(trial).record == outcome(timed(1.0))


@pytest.mark.slow
def test_a_killed_process_loses_nothing_that_it_proposed(url: str) -> None:
    given = facts(start("propose_and_die", url), status=-signal.SIGKILL)
    with Store.open(url) as store:
        first, second = store.proposals(given["run"])
        assert first.trial is not None
        assert first.trial.record == outcome(timed(0.5))
        assert (second.id, second.row, second.trial) == (given["trial"], 42, None)
        store.resume_run(given["run"])
        store.record(second.id, outcome(TOO_WIDE), SCRIPT)
        assert store.counts(given["run"]) == Counts(proposed=2, measured=1, failed=1)


@pytest.mark.drawn(1)
def test_processes_that_open_and_write_at_once_all_succeed(url: str) -> None:
    writers = [start("write", url, "20") for _ in range(3)]
    runs = [facts(writer)["run"] for writer in writers]
    with Store.open(url) as store:
        assert sorted(run.id for run in store.runs()) == sorted(runs)
        assert {store.counts(run) for run in runs} == {Counts(proposed=20, measured=20)}
        assert store.info().problems == (PROBLEM.key,)


@pytest.fixture(params=["tmpfs", "file limit"])
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, object]]:
    if request.param == "file limit":
        yield facts(start("fill", f"{tmp_path}/small.db", str(1024 * 1024)))
        return
    yield facts(start("fill", f"{tmp_path}/small.db", before=small_disk(tmp_path)))


def small_disk(folder: Path) -> tuple[str, ...]:
    """Returns the words that run a program with a disk of 1 MiB at the folder."""
    mount = f"mount -t tmpfs -o size=1m none '{folder}'"
    tried = ("unshare", "--map-root-user", "--mount", "sh", "-c")
    try:
        tested = complaint((*tried, mount))
    except FileNotFoundError:
        tested = "found no unshare"
    if tested:
        pytest.skip(f"no small disk can be mounted: {tested}")
    return (*tried, f'{mount} && exec "$@"', "sh")


def complaint(options: tuple[str, ...]) -> str:
    """Returns what a command complains about; nothing when it works."""
    done = subprocess.run(options, capture_output=True, text=True, check=False)
    return done.stderr.strip() or f"exit {done.returncode}" if done.returncode else ""


@pytest.mark.drawn(1)
def test_a_full_disk_loses_nothing_stored_before(filled: dict[str, object]) -> None:
    assert "the disk" in str(filled["message"])
    assert "\n" not in str(filled["message"])
    assert filled["stored"] == filled["found"]
    assert int(str(filled["stored"])) > 5


@pytest.mark.slow
def test_a_new_database_on_a_full_disk_is_refused(tmp_path: Path) -> None:
    given = facts(start("open_full", f"{tmp_path}/new.db", before=small_disk(tmp_path)))
    assert "the disk is full" in given["message"]
    assert given["has_cause"]
