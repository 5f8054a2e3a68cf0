"""A real fleet: what is measured of its queue, devices and nodes; a full disk; runs whose parts all fail."""

import contextlib
import datetime
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fleet import processor_use, verify_resume
from benchmarks.fleet.device_idle import device_of_last_run
from benchmarks.fleet.fault_check import FleetCheck, check_fleet
from benchmarks.fleet.fault_injection import FAULTS
from benchmarks.fleet.measured_queue import gaps, hops, idle, throughput
from benchmarks.fleet.node_noise import row_of
from benchmarks.fleet.processor_use import children_of, family_s, parent_of, processor_s, wakes
from benchmarks.fleet.sleeping_nodes import sleeping_nodes, wait_until
from tests.cli.conftest import Tuner
from tests.elsewhere.fleet.conftest import LEASE_S, new_database
from tests.elsewhere.fleet.recorded_runs import RECORDING, calm_trials, replayed
from tests.elsewhere.fleet.values import work
from tests.postgres_server import server_or_skip
from tests.support.small_disk import fill_disk, small_disk
from tuner.analysis.slowdown import PairedSlowdown
from tuner.core.errors import TunerError
from tuner.elsewhere.fleet import local_fleet, tables
from tuner.elsewhere.fleet.install import install
from tuner.elsewhere.fleet.noise_check import NoiseCheck
from tuner.elsewhere.fleet.server import session
from tuner.elsewhere.fleet.tables import FleetSettings
from tuner.elsewhere.fleet.work import COMPILE, EVALUATE

BEGAN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
DISK_KIB = 64
WORDS = (
    "verify-resume",
    "--fleet",
    "--runs",
    "1",
    "--sampler",
    "tpe",
    "--trials",
    "2",
    "--seed",
    "0",
    "--file",
    str(RECORDING),
)


@pytest.fixture
def url(postgres_server: str) -> str:
    """Returns the address of a fleet without nodes, which measurements of the queue have to themselves."""
    url = new_database(postgres_server)
    install(url, FleetSettings())
    return url


@pytest.mark.postgres
@pytest.mark.slow
def test_a_sleeping_node_does_each_job_once_and_is_measured(url: str) -> None:
    with sleeping_nodes(url, 1, 4, 1000) as nodes:
        found = throughput(url, nodes, 20)
        assert 0 < found["jobs_per_s"] <= found["deferred_per_s"]
        assert gaps(url, 5)["overlaps"] == 0
        assert hops(url, 2)["median_ms"] > 0
        assert 0 <= idle(url, nodes[0], 0.1)["node_processor_share"] < 1
    with session(url) as connection:
        for table in ("fleet_work", "fleet_blob"):  # each has code of its own
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (27,)


@pytest.mark.postgres
@pytest.mark.slow
def test_what_does_not_come_ends_the_wait(postgres_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.fleet.sleeping_nodes.LIMIT_S", 0.01)
    limit = r"found no, allowed yes within 0\.01 s"
    with session(postgres_server) as connection, pytest.raises(TimeoutError, match=limit):
        wait_until(connection, "SELECT %s > 1", 1)


def interval(began_s: float, ended_s: float) -> tables.Interval:
    return tables.Interval(*(BEGAN + datetime.timedelta(seconds=each) for each in (began_s, ended_s)))


@pytest.mark.postgres
@pytest.mark.slow
def test_a_device_is_idle_between_its_measurements(url: str) -> None:
    with session(url) as connection:
        for run, number, stage, whole, timed in (
            ("earlier", 0, EVALUATE, interval(0, 1), None),
            ("asked", 0, COMPILE, interval(5, 9), None),
            ("asked", 0, EVALUATE, interval(10, 14), interval(12, 14)),
            ("asked", 1, EVALUATE, interval(15, 18), interval(16, 17)),
            ("asked", 2, EVALUATE, interval(18, 20), None),  # it was wrong
        ):
            execution = tables.Execution("n", "device", whole, timed)
            tables.store_execution(connection, work(run, number, stage), execution)
        found = device_of_last_run(connection)
    shares = {"idle_share": 0.1, "timed_share": 0.3}
    gaps_ms = {"median_gap_ms": 500.0, "longest_gap_ms": 1000.0}
    assert found == {"evaluated": 3, **shares, **gaps_ms, "trials_per_s": 0.3}


@pytest.mark.parametrize(("upper", "is_quiet"), [(0.0029, True), (0.0031, False)])
def test_a_node_is_quiet_where_more_than_is_allowed_is_ruled_out(upper: float, is_quiet: bool) -> None:
    found = NoiseCheck("measure", 40, PairedSlowdown(0.001, (-0.0005, upper), 0.002))
    percents = {"longer_percent": 0.1, "noise_percent": 0.2, "allowed_percent": 0.3}
    interval = {"interval_percent": [-0.05, round(100 * upper, 3)]}
    assert row_of(found) == {"measured": "noise", "rounds": 40, **percents, **interval, "is_quiet": is_quiet}


def test_a_child_is_counted_and_one_that_ends_is_its_parents(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = "import time\nwhile time.process_time() < 0.1: pass\nprint(flush=True); input()"
    command = [sys.executable, "-c", busy]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert child.pid in children_of(os.getpid())
        assert parent_of(child.pid) == os.getpid()
        assert processor_s(child.pid) > 0
        child.kill()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    monkeypatch.setattr(processor_use, "children_of", lambda _process: (gone.pid,))
    before_s = processor_s(os.getpid())
    assert before_s <= family_s(os.getpid()) <= processor_s(os.getpid())
    before = wakes(os.getpid())
    time.sleep(0.001)
    assert wakes(os.getpid()) > before  # sleeping is counted as waking


def test_a_disk_of_one_process_is_filled_and_one_that_cannot_be_mounted_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        before = small_disk(tmp_path, DISK_KIB)
    except TunerError as error:
        pytest.skip(str(error))
    command, pipe = [*before, "sh", "-c", "echo; read _; cp $0/all $0/more", str(tmp_path)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        process.stdout.readline()  # the disk is there
        fill_disk(process.pid, tmp_path)
        used = os.statvfs(f"/proc/{process.pid}/root{tmp_path}")
        assert (used.f_bavail, used.f_blocks * used.f_frsize) == (0, DISK_KIB << 10)
        _, said = process.communicate(b"\n")
    assert b"No space left on device" in said
    assert list(tmp_path.iterdir()) == []
    if shutil.which("unshare") is not None:
        with pytest.raises(TunerError, match=r"^small disk: found no leave to mount one: .*absent"):
            small_disk(tmp_path / "absent", DISK_KIB)
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(TunerError, match=r"^small disk: found no unshare, which gives a process"):
        small_disk(tmp_path, DISK_KIB)


# Every part of a fleet fails in the middle of a run, which ends as one that nothing happened to.

TRIALS = 56  # more than all faults last


@pytest.fixture
def killed_url() -> Iterator[str]:
    with server_or_skip() as url:
        install(url, FleetSettings(LEASE_S))
        yield url


@pytest.mark.postgres
@pytest.mark.slow
def test_a_run_survives_every_fault(killed_url: str, tmp_path: Path) -> None:
    settings = replayed(trials=TRIALS, sampler="random")
    calm = calm_trials(settings, tmp_path)
    check = check_fleet(killed_url, settings, RECORDING, calm, np.random.default_rng(0))
    assert (set(check.faults), check.trials) == (set(FAULTS), TRIALS)
    assert check.is_exact, check
    assert " jobs wait for " in check.untrusted


def test_a_check_is_exact_if_no_more_was_repeated_than_failed() -> None:
    # repeated, overlaps, orphans, strange
    for counts in ((1, 0, 0, 0), (2, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)):
        found = FleetCheck("tpe", ("driver killed",), 9, (), *counts, "")
        assert found.is_exact == (counts == (1, 0, 0, 0))


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize(("repeated", "code"), [(2, 0), (3, 1)])
def test_what_became_of_runs_on_a_fleet_is_reported(
    tuner: Tuner, postgres_server: str, monkeypatch: pytest.MonkeyPatch, repeated: int, code: int
) -> None:
    check = FleetCheck("tpe", ("driver killed", "database killed"), 2, (), repeated, 0, 0, 0, "")
    url = new_database(postgres_server)
    monkeypatch.setattr(verify_resume, "server", lambda: contextlib.nullcontext(url))
    monkeypatch.setattr(verify_resume, "check_fleet", lambda *_text: check)
    done = tuner(*WORDS)
    assert done.code == code
    assert "1/1 tpe: driver killed, database killed, 2 trials, 0 differences" in done.err
    assert "runs         1 with 2 faults" in done.out
    assert f"done again   {repeated} pieces" in done.out


def test_a_machine_without_postgresql_says_what_is_missing(
    tuner: Tuner, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    pytest.importorskip("procrastinate")
    monkeypatch.setattr(local_fleet, "PACKAGED", tmp_path)
    done = tuner(*WORDS)
    assert done.code == 1
    assert "error: no PostgreSQL server: found no initdb under" in done.err
