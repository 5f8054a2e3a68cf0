"""The words of a fleet against a real server; nodes are rows."""

import tempfile
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner, require
from tests.elsewhere.fleet.conftest import new_database
from tests.elsewhere.fleet.values import COMPILER_BUILD, node, work
from tuner.elsewhere.fleet import local_fleet, queues, tables
from tuner.elsewhere.fleet.server import session
from tuner.elsewhere.fleet.work import compile_queue
from tuner.results.database_name import database_text

pytestmark = pytest.mark.postgres
URL = "postgresql://tuner@db.example.org/tuner"
FLEET = "fleet status --db"


@pytest.fixture(scope="module")
def url(postgres_server: str) -> str:
    return new_database(postgres_server)


@pytest.mark.slow
def test_a_fleet_is_set_up_and_reports_of_itself(tuner: Tuner, url: str) -> None:
    assert "this database has no fleet\nhint: tuner fleet up" in tuner.refused(FLEET, url)
    lost = "a node that says nothing for 20 s has lost its work"
    assert lost in tuner.done("fleet up --lease 20 --db", url).out
    start = f"no node; start one with: tuner fleet worker --compile 4 --measure{database_text(url)}"
    assert tuner(FLEET, url).out == f"{start}\n\nno device\n\nno job\n"
    with session(url) as connection:
        tables.store_node(connection, node("a", compiler_build="tuner 1, fake 2.0"))
        queues.defer(connection, compile_queue(COMPILER_BUILD), work("0123456789"), 0, alone=False)
    found, builds = tuner(FLEET, url).out, "compiler A: tuner 1, fake 1.0\ncompiler B: tuner 1, fake 2.0\n"
    waits = "compile  compiler A    0     1  run 01234567  no node compiles fake as tuner 1, fake 1.0"
    require(found, "a     works  fake    2 at once  here fake", waits, builds)
    document = tuner(FLEET, url, "--json").json
    assert (document["nodes"][0]["state"], document["queues"][0]["waits"]) == ("works", 1)
    assert tuner("fleet drain a --db", url).out == "a ends after its current work\n"
    assert "drains" in tuner(FLEET, url).out
    assert "node: found 'b', allowed a" in tuner("fleet drain b --db", url).err


def test_a_wait_of_no_time_and_a_run_without_nodes_are_refused(tuner: Tuner, url: str) -> None:
    assert "watch: found 0 s, allowed more than 0" in tuner(FLEET, url, "--watch", "0").err
    assert "rounds: found 0, allowed 1 or more" in tuner(FLEET, url, "--check", "--rounds", "0").err
    tuner("fleet up --db", url)
    with session(url) as connection:
        connection.execute("DELETE FROM fleet_node")
    refused = tuner.refused("tune matmul 8x8x8 --target fake --fleet --db", url)
    assert "not available here: no node of the fleet measures for it" in refused
    assert tuner("history --runs --db", url).out.startswith("no history yet")


MEETING = ("fleet status", "fleet up", "fleet worker --measure", "fleet drain a", "tune matmul 8x8x8 --fleet")


def test_a_file_is_no_place_to_meet(tuner: Tuner) -> None:
    for command in MEETING:
        refused = tuner.refused(command)
        assert "allowed postgresql://USER@HOST/DATABASE" in refused, command
        assert len(refused.strip().splitlines()) == 1


def test_options_that_cannot_be_combined(tuner: Tuner) -> None:
    for options, complaint in (
        ("--priority 3", "--priority needs --fleet"),
        (f"--fleet --on h200 --db {URL}", "--on: found 'h200', allowed two or more classes"),
        (f"--fleet --on a,b --machine a --db {URL}", "--machine and --on cannot be combined"),
    ):
        assert complaint in tuner.refused(f"tune matmul 8x8x8 {options}")


# The demo from a real server to its end, on a recording: seconds rather than minutes.

ROOT = Path(__file__).parents[3]
RECORDING = "replay:tuner/space/recorded/matmul_48x64x40.t4.json.gz"
# As the page and the help have it: tests/docs/test_examples.py compares.
DEMO = ("fleet", "demo", "matmul", "48x64x40", "--target", RECORDING, "--trials", "4")
PRINTED = (DEMO,)
EVERYBODY = 0o755  # may enter: the server has a user of its own


@pytest.mark.slow
def test_the_demo_tunes_and_leaves_nothing(tuner: Tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:  # short, unlike pytest's: a socket's path is limited
        Path(folder).chmod(EVERYBODY)
        with monkeypatch.context() as changed:
            changed.setattr("tempfile.tempdir", folder)
            done = tuner.done(*DEMO)
        assert list(Path(folder).iterdir()) == []
    require(done.out, "best      trial ", without="--db")  # it asks a database which is gone
    assert "nodes and server have ended; their folders are gone" in done.err


def test_a_demo_without_trials_or_without_postgresql_is_refused(
    tuner: Tuner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert "trials: found 0, allowed 1 or more" in tuner("fleet demo --trials 0").err
    monkeypatch.setattr(local_fleet, "PACKAGED", tmp_path)
    missing = f"no PostgreSQL server: found no initdb under {tmp_path}; install the package postgresql"
    assert missing in tuner.failed("fleet demo").err


# Scripts that start nodes.


def test_what_starts_nodes_is_printed(tuner: Tuner) -> None:
    certificate = '{name: "PGSSLCERT", value: "/etc/tuner-fleet/tls.crt"}'
    for text, found in (
        ("ssh build1 build2", "ssh -n build2 'TUNER_DB="),
        ("slurm --nodes 4 --sbatch=--partition=gpu", "#SBATCH --array=0-3\n"),
        ("slurm", "#SBATCH --cpus-per-task=6\n"),
        ("slurm --cores 9", "#SBATCH --cpus-per-task=9\n"),
        ("kubernetes --image tuner:1", 'cpu: "6"'),
        ("kubernetes --image tuner:1 --secret tls", certificate),
    ):
        asked = f"fleet script {text} --compile 6 --db {URL}"
        done = tuner.done(asked)
        assert found in done.out
        assert done.err == ""
        assert tuner(asked, "--json").json == {"kind": text.split()[0], "text": done.out}


def test_a_file_is_no_database_of_a_fleet_and_one_of_this_machine_is_reported(tuner: Tuner) -> None:
    done = tuner.done("fleet script slurm --compile 6 --db postgresql://tuner@localhost/tuner")
    assert done.err == "note: only this machine finds that database: name its host in --db\n"
    assert "allowed postgresql://USER@HOST/DATABASE" in tuner.refused("fleet script slurm --compile 6")
