"""A run whose process is gone is interrupted: judged by whoever reads, where it can be known."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.cli.conftest import Tuner
from tests.db.test_campaigns import begin_campaign
from tests.db.test_database import connected, execute
from tests.db.test_stored_database import commands_on
from tests.db.values import begin
from tests.db.writer import start
from tuner.core.errors import UsageError
from tuner.core.queries import RunQuery
from tuner.core.serialization import encode
from tuner.db import run_process
from tuner.db.latest_ids import latest_runs
from tuner.db.run_process import RunProcess, present_status, this_process
from tuner.db.store import Store

Child = tuple[subprocess.Popen[str], dict[str, int]]


def working(url: str) -> Child:
    process = start("run_and_wait", url)
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())


@pytest.fixture
def child(url: str) -> Iterator[Child]:
    process, ids = working(url)
    yield process, ids
    process.kill()
    process.communicate()


def killed(process: subprocess.Popen[str]) -> None:
    """Kills a process and waits until it has ended; its parent has not asked how, so it is a zombie."""
    process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


@pytest.fixture
def here() -> RunProcess:
    found = this_process()
    if found is None:
        pytest.skip("the system has no /proc as of Linux")
    return found


@pytest.mark.slow
def test_runs_of_a_killed_process_are_interrupted_wherever_they_are_listed_until_they_are_resumed(
    url: str, child: Child, here: RunProcess
) -> None:
    process, ids = child
    with Store.open(url) as store:
        assert store.run(ids["run"]).status == store.campaign(ids["campaign"]).status == "running"
        killed(process)
        for _ in ("a zombie", "gone"):
            campaign = store.campaign(ids["campaign"])
            assert {store.run(ids["run"]).status, campaign.status} == {"interrupted"}
            assert {run.status for run in (*campaign.runs, *store.runs())} == {"interrupted"}
            process.wait()
    with connected(url) as connection:  # readers have not written it
        assert set(connection.execute(sa.text("SELECT status FROM run")).scalars()) == {"running"}
    tuner: Tuner = commands_on(url)
    assert {run["status"] for run in tuner("history", "--runs", "--json").json} == {"interrupted"}
    assert f"run       {ids['run']}: interrupted" in tuner("show", f"run:{ids['run']}").out
    assert tuner("show", f"campaign:{ids['campaign']}", "--json").json["status"] == "interrupted"
    assert len(tuner("history", "--runs", "--status", "interrupted", "--json").json) == 3
    assert tuner("history", "--runs", "--status", "running", "--json").json == []
    if "://" not in url:
        assert all(text.endswith(", interrupted") for _, text in latest_runs(Path(url), ""))
    with Store.open(url) as store:
        store.resume_run(ids["run"])
        store.set_campaign_status(ids["campaign"], "running")
        campaign = store.campaign(ids["campaign"])
        assert {run.status for run in (*campaign.runs, *store.runs())} == {campaign.status} == {"running"}


@pytest.mark.slow
def test_runs_are_asked_for_by_the_status_that_is_shown(url: str, child: Child, here: RunProcess) -> None:
    process, ids = child
    with Store.open(url) as store:
        ours, ended = begin(store), begin(store)
        store.finish_run(ended, "interrupted", 1.0)
        killed(process)
        of_campaign = {run.id for run in store.campaign(ids["campaign"]).runs}

        def asked(status: str, limit: int | None = None) -> list[int]:
            return [run.id for run in store.matching_runs(RunQuery(status=status, limit=limit))]

        assert asked("running") == asked("running", 1) == [ours]
        assert asked("interrupted", 1) == [ended]
        assert (set(asked("interrupted")), asked("done")) == ({ended, ids["run"], *of_campaign}, [])
        with pytest.raises(UsageError, match="limit: found 0"):
            asked("running", 0)


@pytest.mark.slow
def test_a_merged_run_belongs_to_its_own_process(store: Store, tmp_path: Path, here: RunProcess) -> None:
    theirs = str(tmp_path / "theirs.db")
    process, _ = working(theirs)
    killed(process)
    store.merge(theirs)
    assert {run.status for run in store.runs()} == {store.campaigns()[0].status} == {"interrupted"}
    process.communicate()
    with Store.open(theirs) as other:  # the copy that ran longer, of a living process
        other.resume_run(1)
        other.finish_run(1, "running", 1.0)
    store.merge(theirs)
    uuids = {run.uuid: run.status for run in store.runs()}
    with Store.open(theirs) as other:
        assert uuids[other.run(1).uuid] == "running"


OTHER = "another"
JUDGED: dict[str, tuple[dict[str, Any], str]] = {
    "alive": ({}, "running"),
    "another process has its id": ({"start_ticks": 1}, "interrupted"),
    "before the last boot": ({"boot_id": OTHER}, "interrupted"),
    "another machine": ({"host": OTHER, "start_ticks": 1}, "running"),
    "another machine, another boot": ({"host": OTHER, "boot_id": OTHER}, "running"),
    "another container": ({"pid_namespace": OTHER, "start_ticks": 1}, "running"),
    "another container, before the last boot": ({"pid_namespace": OTHER, "boot_id": OTHER}, "interrupted"),
}


@pytest.mark.parametrize("name", JUDGED)
def test_a_process_is_gone_only_where_that_is_known(name: str, here: RunProcess) -> None:
    changes, status = JUDGED[name]
    process = encode(replace(here, **changes))
    shown = {stored: present_status(stored, process) for stored in ("running", "done", "interrupted")}
    assert shown == {"running": status, "done": "done", "interrupted": "interrupted"}


def test_a_process_that_hides_its_folder_is_not_gone(
    here: RunProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    process = encode(here)
    monkeypatch.setattr(run_process, "this_process", lambda: here)
    monkeypatch.setattr(run_process, "PROCESSES", tmp_path)
    assert present_status("running", process) == "running"

    def refuse(_pid: int, _sign: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert present_status("running", process) == "running"


def test_without_proc_nothing_is_known(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = begin(store)
    monkeypatch.setattr(run_process, "BOOT_ID", tmp_path / "none")
    assert this_process() is None
    unknown, campaign = begin(store), begin_campaign(store)
    statuses = {store.run(known).status, store.run(unknown).status, store.campaign(campaign).status}
    assert statuses == {"running"}
    monkeypatch.undo()
    assert store.run(unknown).status == store.campaign(campaign).status == "running"


def test_a_machine_without_an_id_is_known_until_its_next_boot(
    here: RunProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(run_process, "MACHINE_ID", tmp_path / "none")
    before = this_process()
    assert before is not None
    assert present_status("running", encode(replace(before, start_ticks=1))) == "interrupted"
    (tmp_path / "boot_id").write_text("the next one\n")
    monkeypatch.setattr(run_process, "BOOT_ID", tmp_path / "boot_id")
    assert present_status("running", encode(before)) == "running"


WHOLE = encode(RunProcess("host", "boot", "namespace", 1, 1))


@pytest.mark.parametrize("found", [{}, [], {"pid": 1}, {**WHOLE, "pid": -1}, {**WHOLE, "pid": 2**40}])
def test_a_damaged_process_is_one_clear_line(found: object) -> None:
    with pytest.raises(UsageError, match="database: RunProcess"):
        present_status("running", found)


def test_a_run_that_names_no_process_stays_running(url: str, here: RunProcess) -> None:
    with Store.open(url) as store:
        run = begin(store)
    execute(url, "UPDATE run SET process = NULL")
    if "://" not in url:
        assert [text.rpartition(", ")[2] for _, text in latest_runs(Path(url), "")] == ["running"]
    with Store.open(url) as store:
        assert store.run(run).status == "running"
