"""Records what commands print as an SVG picture of a terminal: ``docs/first-run.svg`` of the README.

python -m benchmarks.terminal_recording docs/first-run.svg "tuner tune matmul 512x512x512 --budget 60s" ...

The commands run for real, in an empty folder with a database of its own. The picture fetches nothing.
"""

import argparse
import fcntl
import io
import os
import re
import struct
import subprocess
import sys
import tempfile
import termios
from dataclasses import dataclass
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

COLUMNS = 80
FONT_FACE = re.compile(r"\s*@font-face \{\{.*?\}\}", re.DOTALL)  # rich's, which are fetched from a server
CONTROL = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|([^\x1b])")  # (parameters, command) or a character
STILL_FORMAT = FONT_FACE.sub("", CONSOLE_SVG_FORMAT)


@dataclass(frozen=True)
class Typed:
    """A command, and its output on both streams."""

    command: str
    printed: str


def record(commands: tuple[str, ...], folder: Path) -> tuple[Typed, ...]:
    """Runs the commands one after another in a folder. Raises RuntimeError for the first that fails."""
    return tuple(Typed(command, _output(command, folder)) for command in commands)


def svg(session: tuple[Typed, ...], columns: int = COLUMNS) -> str:
    """Returns the picture of a session; equal sessions give equal pictures."""
    console = Console(
        record=True, width=columns, file=io.StringIO(), force_terminal=True, legacy_windows=False
    )
    for typed in session:
        console.print(Text.assemble(("$ ", "bold green"), (typed.command, "bold")))
        console.print(Text(typed.printed.rstrip("\n")))
    return console.export_svg(title="tuner", code_format=STILL_FORMAT, unique_id="session")


def _output(command: str, folder: Path) -> str:
    """Returns what a terminal of 80 columns shows when the command has ended."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("TUNER_DB", "XDG_DATA_HOME")
    }
    environment |= {"HOME": str(folder), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    with subprocess.Popen(
        ["bash", "-c", command], cwd=folder, env=environment, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        printed = screen(b"".join(iter(lambda: _read(ours), b"")).decode())
    os.close(ours)
    if process.returncode != 0:
        raise RuntimeError(f"{command}: exited with {process.returncode}: {printed}")
    return printed


def screen(printed: str, columns: int = COLUMNS) -> str:
    """Returns the text that a terminal shows after ``printed``, whose control codes move and erase lines."""
    lines: dict[int, dict[int, str]] = {}  # row -> column -> character
    row = 0
    column = 0
    for parameters, control, character in CONTROL.findall(printed):
        if control == "A":
            row = max(0, row - int(parameters or 1))
        elif control == "K":
            lines[row] = {}
        elif character == "\r":
            column = 0
        elif character == "\n":
            row += 1
        elif character:
            if column == columns:
                row += 1
                column = 0
            lines.setdefault(row, {})[column] = character
            column += 1
    return "".join(f"{_line_of(lines.get(number, {}))}\n" for number in range(row + 1)).rstrip("\n") + "\n"


def _line_of(characters: dict[int, str]) -> str:
    width = max(characters, default=-1) + 1
    return "".join(characters.get(column, " ") for column in range(width)).rstrip()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux reports the end of a terminal as an error
        return b""


def main(options: list[str]) -> int:
    """Writes the picture and prints the session as text."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path, help="the file to write")
    parser.add_argument("commands", nargs="+", help="each as it is typed, in quotes")
    arguments = parser.parse_args(options)
    with tempfile.TemporaryDirectory() as folder:
        session = record(tuple(arguments.commands), Path(folder))
    arguments.output.write_text(svg(session), encoding="utf-8")
    print("".join(f"$ {typed.command}\n{typed.printed}" for typed in session), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
