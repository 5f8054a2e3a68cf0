"""What is left by processes that end by SIGKILL: nothing. The processes are real ones."""

import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes import is_alive
from tuner.fleet.leftovers import MARK, cleaned_up_unless_ended, marked
from tuner.runtime.workers.processes import PROCESSES

LIMIT_S = 120
EVERYBODY = 0o755  # may enter: the server has a user of its own
RECORDING = Path(__file__).parents[2] / "tuner" / "space" / "recorded" / "matmul_48x64x40.t4.json.gz"
OWNER = """
import subprocess, sys, time
from pathlib import Path
from tuner.fleet.leftovers import MARK, cleaned_up_unless_ended
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
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, mark, str(folder)], stdout=subprocess.PIPE, text=True
    ) as owner:
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
    """Returns the command lines of the processes that have words there, or in a variable."""
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
    phrase = ("fleet", "demo", "matmul", "48x64x40", "--target", f"replay:{RECORDING}")
    with subprocess.Popen(
        ["env", f"TMPDIR={short_folder}", sys.executable, "-m", "tuner", *phrase], stderr=subprocess.DEVNULL
    ) as demo:
        wait_until(lambda: any(" fleet worker " in each for each in naming(str(short_folder))))
        (server,) = short_folder.glob("pg-*/d/postmaster.pid")
        assert is_alive(int(server.read_text().splitlines()[0]))
        demo.kill()
    wait_until(lambda: not naming(str(short_folder)))
    assert list(short_folder.iterdir()) == []
