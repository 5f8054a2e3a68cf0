"""The examples of ``tuner fleet`` run as printed, on a server of these tests in place of the named one."""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest
from click.testing import CliRunner

from tests.cli.conftest import Tuner
from tests.docs.guide import ROOT, blocks_of
from tests.docs.test_examples import EXAMPLES, Example
from tests.elsewhere.fleet.conftest import LEASE_S, new_database
from tests.elsewhere.fleet.values import node
from tests.postgres_server import server_or_skip
from tests.support.crashed_postgres import restart_after_crash
from tests.trials import run
from tests.tuning import fakes
from tuner.cli import main
from tuner.db.store import Store
from tuner.elsewhere.fleet import tables
from tuner.elsewhere.fleet.install import install
from tuner.elsewhere.fleet.local_fleet import LocalNodes
from tuner.elsewhere.fleet.server import connected, session
from tuner.elsewhere.fleet.tables import FleetSettings

SCRIPTS = [each for each in EXAMPLES if each.words[:2] == ("fleet", "script")]
UP = [each for each in EXAMPLES if each.words[:2] == ("fleet", "up")]
WORKERS = [each for each in EXAMPLES if each.words[:2] == ("fleet", "worker")]
DATABASE = re.compile(r"postgresql://\S+")
NODE, RUN = "gpu-3", 7  # that the help names
LIMIT_S = 120.0


@pytest.fixture(scope="module")
def url(postgres_server: str) -> str:
    """Returns the address of a database in which each example of setting up has set up a fleet.

    Nodes hear of a drain with their lease, which is short here.
    """
    url = new_database(postgres_server)
    for example in UP:
        Tuner(Path("none.db"), fakes.backends()).done(*there(example.words, url))
    install(url, FleetSettings(LEASE_S))
    return url


def there(options: tuple[str, ...], url: str) -> tuple[str, ...]:
    return tuple(DATABASE.sub(lambda _named: url, given) for given in options)


def example_of(command: str, page: str) -> tuple[str, ...]:
    (found,) = (each for each in EXAMPLES if each.place == page and each.words[:2] == ("fleet", command))
    return found.words


@pytest.mark.parametrize("example", SCRIPTS, ids=str)
def test_a_script_is_printed(example: Example, tuner: Tuner) -> None:
    assert re.search(r"tuner\W+fleet\W+worker", tuner.done(*example.words).out)


@pytest.fixture
def fake_node(url: str) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.elsewhere.fleet.fake_node", url, "fake device"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, session(url) as connection:
        try:
            give_up_s = time.monotonic() + LIMIT_S
            while not tables.stored_nodes(connection) and time.monotonic() < give_up_s:
                time.sleep(0.02)
            yield
        finally:
            process.terminate()


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.usefixtures("fake_node")
def test_the_page_tunes_on_the_fleet_and_asks_how_it_is(tuner: Tuner, url: str) -> None:
    (tune,) = (each for each in EXAMPLES if each.words[0] == "tune" and "--fleet" in each.words)
    assert "20 trials in " in tuner.done(*there(tune.words, url)).out
    assert "fake device  fake" in tuner.done(*there(example_of("status", "fleet.md"), url)).out


@pytest.mark.slow
@pytest.mark.postgres
def test_a_status_is_watched_until_ctrl_c(tuner: Tuner, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []

    def interrupted(seconds: float) -> None:
        waited.append(seconds)
        raise KeyboardInterrupt

    monkeypatch.setattr("tuner.elsewhere.fleet.commands.status.time.sleep", interrupted)
    done = replace(tuner, url=url)(*example_of("status", "fleet status --help"))
    assert (done.code, waited) == (130, [2.0])
    assert "no job\n" in done.out


@pytest.mark.postgres
def test_a_node_is_drained_and_a_run_cancelled(tuner: Tuner, url: str) -> None:
    on_server = replace(tuner, url=url)
    with Store.open(url) as store, session(url) as connection:
        plain = run()
        made = (plain.settings, plain.machine, plain.compiler, plain.tuner_version, None)
        while store.begin_run(*made) < RUN:
            pass
        tables.store_node(connection, node(NODE))
        drained = on_server.done(*example_of("drain", "fleet drain --help"))
        assert drained.out == f"{NODE} ends after its current work\n"
        tables.delete_node(connection, NODE, 1)
    cancelled = on_server.done(*example_of("cancel", "fleet cancel --help"))
    assert cancelled.out == f"cancelled 0 jobs of run {RUN}\n"


@pytest.mark.slow
@pytest.mark.postgres
def test_workers_are_at_work_until_they_are_drained(tuner: Tuner, url: str, tmp_path: Path) -> None:
    """Each example is a process, all of them at once; equal ones are one."""
    examples = dict.fromkeys(there(each.words, url) for each in WORKERS)
    with LocalNodes(url, "auto", tmp_path) as nodes, session(url) as connection:
        for number, options in enumerate(examples):
            nodes.start_command(str(number), options)
        give_up_s = time.monotonic() + LIMIT_S
        while len(found := tables.stored_nodes(connection)) < len(examples) and time.monotonic() < give_up_s:
            time.sleep(0.02)
        at_work = sorted((each.node.slots, bool(each.node.device)) for each in found)
        assert at_work == [(0, True), (8, False)], nodes.last_line("0")
        for each in found:
            assert tuner("fleet drain", each.node.name, "--db", url).code == 0
        assert [nodes.wait(str(number), LIMIT_S) for number in range(len(examples))] == [0, 0]


PAGE = blocks_of((ROOT / "docs" / "guides" / "fleet.md").read_text())


def test_the_page_shows_the_script_for_ssh_hosts_as_it_is_printed() -> None:
    (asked,) = (block.text for block in PAGE if block.text.startswith("tuner fleet script ssh "))
    (shown,) = (block.text for block in PAGE if block.text.startswith("ssh "))
    done = CliRunner().invoke(main, shlex.split(asked)[1:])
    assert (done.exit_code, done.stdout) == (0, shown)


# How a server is set up that takes nobody without a certificate.

(OPENSSL,) = [block.text for block in PAGE if block.text.startswith("openssl ")]
(SETTINGS,) = [block.text for block in PAGE if block.text.startswith("# postgresql.conf")]


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Gives the port of a server with the page's settings; what its commands make is in the test's folder."""
    commands = OPENSSL.replace("db.example.org", "localhost")
    subprocess.run(["bash", "-ec", commands], cwd=tmp_path, check=True, capture_output=True)
    with server_or_skip() as url:
        with session(url) as connection:
            connection.execute("CREATE DATABASE tuner")
        install(url.replace("/postgres?", "/tuner?"), FleetSettings(), "fleet_worker")
        with socket.socket() as free:
            free.bind(("localhost", 0))
            number = free.getsockname()[1]
        set_up(Path(url.rpartition("=")[2]) / "d", tmp_path, number)
        restart_after_crash(url)
        yield number


def set_up(folder: Path, certificates: Path, port: int) -> None:
    settings, _, access = SETTINGS.partition("# pg_hba.conf")
    with (folder / "postgresql.conf").open("a") as file:
        file.write(f"{settings}\nlisten_addresses = 'localhost'\nport = {port}\n")
    (folder / "pg_hba.conf").write_text(f"#{access}\n")
    for name in ("ca.crt", "server.crt", "server.key"):
        shutil.copy(certificates / name, folder / name)
        (folder / name).chmod(0o600)
        if os.geteuid() == 0:
            shutil.chown(folder / name, "postgres", "postgres")


@pytest.mark.postgres
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
@pytest.mark.slow
def test_a_node_gets_in_by_its_certificate_and_as_nobody_else(port: int, tmp_path: Path) -> None:
    files = {"sslrootcert": "ca.crt", "sslcert": "tls.crt", "sslkey": "tls.key"}
    own = {"sslmode": "verify-full", **{key: str(tmp_path / name) for key, name in files.items()}}
    of_fleet = {"host": "localhost", "port": port, "dbname": "tuner", "user": "fleet_worker"}
    with psycopg.connect("", **of_fleet, **own) as connection:  # type: ignore[arg-type]
        encrypted = connection.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        assert encrypted.fetchone() == (True,)
    url = f"postgresql://fleet_worker@localhost:{port}/tuner?{urlencode(own)}"
    with connected(url) as connection:  # hears of one that vanishes
        assert connection.execute("SHOW tcp_keepalives_idle").fetchone() == ("10",)
    for options, reason in (
        ({"sslmode": "disable"}, "no pg_hba.conf entry"),
        ({"sslmode": "require"}, "requires a valid client certificate"),
        ({**own, "user": "tuner"}, "certificate authentication failed"),
        ({**own, "host": "127.0.0.1"}, "does not match host name"),
    ):
        with pytest.raises(psycopg.OperationalError, match=reason):
            psycopg.connect("", **{**of_fleet, **options})  # type: ignore[arg-type]
