"""The page about fleets says how a server is set up that takes nobody without a certificate."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest

from benchmarks.fleet.crashed_postgres import restart_after_crash
from tests.docs.guide import ROOT, blocks_of
from tests.postgres_server import server_or_skip
from tuner.fleet.install import install
from tuner.fleet.server import connected, session
from tuner.fleet.tables import FleetSettings

TEXTS = [block.text for block in blocks_of((ROOT / "docs" / "guides" / "fleet.md").read_text())]
(COMMANDS,) = [text for text in TEXTS if text.startswith("openssl ")]
(SETTINGS,) = [text for text in TEXTS if text.startswith("# postgresql.conf")]

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl"),
]


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """Returns a folder with what the page's commands make, for a server here."""
    commands = COMMANDS.replace("db.example.org", "localhost")
    subprocess.run(["bash", "-ec", commands], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


@pytest.fixture
def port(certificates: Path) -> Iterator[int]:
    """Gives the port of a server with the page's settings."""
    with server_or_skip() as url:
        with session(url) as connection:
            connection.execute("CREATE DATABASE tuner")
        install(url.replace("/postgres?", "/tuner?"), FleetSettings(), "fleet_worker")
        with socket.socket() as free:
            free.bind(("localhost", 0))
            number = free.getsockname()[1]
        set_up(Path(url.rpartition("=")[2]) / "d", certificates, number)
        restart_after_crash(url)
        yield number


def set_up(folder: Path, certificates: Path, port: int) -> None:
    """Puts the page's settings into the server's folder, and what they name."""
    settings, _, access = SETTINGS.partition("# pg_hba.conf")
    with (folder / "postgresql.conf").open("a") as file:
        file.write(f"{settings}\nlisten_addresses = 'localhost'\nport = {port}\n")
    (folder / "pg_hba.conf").write_text(f"#{access}\n")
    for name in ("ca.crt", "server.crt", "server.key"):
        shutil.copy(certificates / name, folder / name)
        (folder / name).chmod(0o600)
        if os.geteuid() == 0:
            shutil.chown(folder / name, "postgres", "postgres")


@pytest.mark.slow
def test_a_node_gets_in_by_its_certificate_and_as_nobody_else(port: int, certificates: Path) -> None:
    own = {
        "sslmode": "verify-full",
        "sslrootcert": str(certificates / "ca.crt"),
        "sslcert": str(certificates / "tls.crt"),
        "sslkey": str(certificates / "tls.key"),
    }
    of_fleet = {"host": "localhost", "port": port, "dbname": "tuner", "user": "fleet_worker"}
    with psycopg.connect("", **of_fleet, **own) as connection:  # type: ignore[arg-type]
        encrypted = connection.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        assert encrypted.fetchone() == (True,)
    with connected(
        f"postgresql://fleet_worker@localhost:{port}/tuner?{urlencode(own)}"
    ) as connection:  # hears of one that vanishes
        seconds = connection.execute("SHOW tcp_keepalives_idle")
        assert seconds.fetchone() == ("10",)
    refusals = (
        ({"sslmode": "disable"}, "no pg_hba.conf entry"),
        ({"sslmode": "require"}, "requires a valid client certificate"),
        ({**own, "user": "tuner"}, "certificate authentication failed"),
        ({**own, "host": "127.0.0.1"}, "does not match host name"),
    )
    for options, reason in refusals:
        with pytest.raises(psycopg.OperationalError, match=reason):
            psycopg.connect("", **{**of_fleet, **options})  # type: ignore[arg-type]
