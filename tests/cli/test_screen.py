"""What commands print on a terminal of 80 columns."""

import contextlib
import fcntl
import os
import pty
import struct
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.tuning import fakes
from tuner.cli import main
from tuner.cli.main import USUAL_COLUMNS, screen_columns
from tuner.programs.request import ProgramReport
from tuner.targets.registry import real_backends

COLUMNS = 80
ASKED = (
    *("runs", "history", "show 1", "show run:1", "show run:1 --ablation", "diff 1 2", "diff run:1 2"),
    *("audit", "gate --baseline gate.json", "space matmul 8x8x8", "strategies", "targets", "explain 1"),
    *("explain matmul 8x8x8 fake(x=1)", "explain matmul 8x8x8 fake(x=1,comment=a)"),
)


@contextlib.contextmanager
def terminal(columns: int) -> Iterator[list[bytes]]:
    """Makes stdout a terminal so wide; what it shows is in the list when the block has ended."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown: list[bytes] = []
    reader = threading.Thread(target=lambda: shown.extend(chunks(ours)))
    reader.start()
    with os.fdopen(theirs, "w") as file, contextlib.redirect_stdout(file):
        yield shown
    reader.join()
    os.close(ours)


def chunks(descriptor: int) -> Iterator[bytes]:
    with contextlib.suppress(OSError):  # Linux's word for the end: the last writer has closed
        while chunk := os.read(descriptor, 1 << 16):
            yield chunk


@pytest.mark.parametrize(("columns", "found"), [(80, 80), (133, 133), (0, USUAL_COLUMNS)])
def test_a_terminal_reports_its_width(columns: int, found: int) -> None:
    with terminal(columns):
        assert screen_columns() == found


def test_a_pipe_has_no_width(capsys: pytest.CaptureFixture[str]) -> None:
    assert screen_columns() is None


def test_every_table_fits_a_terminal_of_80_columns(
    tuned: Tuner, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder: Path = tuned.database.parent
    assert tuned("tune", "matmul", "16x8x8", "--trials", "1", "--threads", "2").code == 0
    assert tuned("gate", "--baseline", str(folder / "gate.json"), "--record", "best").code == 0
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TUNER_DB", str(tuned.database))
    with terminal(COLUMNS) as shown:
        for asked in ASKED:
            with pytest.raises(SystemExit, match=r"^0$"):
                main(asked.split(), obj=fakes.backends())
    lines = b"".join(shown).decode().splitlines()
    assert [line for line in lines if len(line) > COLUMNS and "tuner " not in line] == []
    assert "not shown for want of width: failed (--json prints all)" in lines
    assert len(tuned("history").out.splitlines()[0]) > COLUMNS  # to a pipe


def test_what_a_program_asks_of_a_device_fits_it_too(tuned: Tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    call = f"launch @multiply, grid 4 x 4 x 1, block 128 x 1 x 1{', argument' * 9}"
    report = ProgramReport("main", (), ("64x64xf32",), (), 2, trace=(call,), is_simulated=True)
    monkeypatch.setattr("tuner.cli.commands.run.run_in_child", lambda *_: report)
    payload = tuned.database.with_name("payload.mlir")
    payload.write_text("module {}")
    with terminal(COLUMNS) as shown, pytest.raises(SystemExit, match=r"^0$"):
        main(["run", str(payload), "--target", "simulator"], obj=real_backends())
    lines = b"".join(shown).decode().splitlines()
    assert max(map(len, lines)) <= COLUMNS
    assert " ".join(" ".join(lines).split()).startswith(f"call {call} ran @main on simulator:sm_90, ")
