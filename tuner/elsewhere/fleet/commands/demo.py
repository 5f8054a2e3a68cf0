"""``tuner fleet demo``: a whole fleet on one machine, a run on it, and nothing left afterwards."""

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import click

from tuner.cli.main import screen_columns
from tuner.core.errors import TunerError, UsageError
from tuner.elsewhere.fleet.commands.status import read_fleet_status, status_text
from tuner.elsewhere.fleet.local_fleet import local_fleet

if TYPE_CHECKING:
    from tuner.elsewhere.fleet.local_fleet import LocalNodes

LOOK_S: Final = 0.2
END_LIMIT_S: Final = 30.0  # the time that a run may need to end after an interrupt


@click.command()
@click.argument("operation", default="matmul")
@click.argument("shape", metavar="[Bx]MxNxK", default="256x256x256")
@click.option("--trials", type=int, default=24, show_default=True, help="Of the run.")
@click.option("--target", default="cpu", show_default=True, help="cpu, cuda:sm_90, replay:FILE, ...")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the best script here."
)
def demo(operation: str, shape: str, trials: int, target: str, output: Path | None) -> None:
    """Tries a fleet on this machine: starts PostgreSQL, two nodes that compile and one that measures, tunes.

    Everything that it made is removed at the end, except the script in FILE. It needs the distribution's
    PostgreSQL (Debian: postgresql) and tuner's extra 'fleet'.

    Example: tuner fleet demo matmul 48x64x40
    --target replay:tuner/space/recorded/matmul_48x64x40.t4.json.gz --trials 4
    """
    if trials < 1:
        raise UsageError(f"trials: found {trials}, allowed 1 or more")
    began_s = time.monotonic()
    with local_fleet(target, lambda line: print(line, file=sys.stderr)) as nodes:
        what = (operation, shape, "--target", target, "--db", nodes.url)
        _tune(nodes, ("tune", *what, "--trials", str(trials), "--fleet"))
        if output is not None:
            _require_end(_started(nodes, ("export", *what, "-o", str(output))))
    print(f"all of it took {time.monotonic() - began_s:.0f} s", file=sys.stderr)


def _tune(nodes: "LocalNodes", options: tuple[str, ...]) -> None:
    process = _started(nodes, options, stdout=subprocess.PIPE)
    assert process.stdout is not None
    reader = threading.Thread(target=_print_result, args=(process.stdout, nodes.url))
    reader.start()
    try:
        is_shown = False
        while process.poll() is None:
            status = None if is_shown else read_fleet_status(nodes.url)
            # before the first trial a device measures the baseline
            if status is None:
                doing = []
            else:
                doing = [device.doing for device in status.devices if device.doing is not None]
            if status is not None and any(work.number >= 0 for work in doing):
                print(f"\ntuner fleet status:\n{status_text(status, screen_columns())}\n", flush=True)
                is_shown = True
            time.sleep(LOOK_S)
    finally:
        _require_end(process)
        reader.join()


def _print_result(lines: IO[bytes], url: str) -> None:
    """Prints a command's output without lines that name ``url``: this database ends with the fleet."""
    with lines:
        for line in lines:
            text = line.decode()
            if url not in text:
                print(text, end="", flush=True)


def _started(
    nodes: "LocalNodes", options: tuple[str, ...], stdout: int | None = None
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(nodes.command(*options), stdin=subprocess.DEVNULL, stdout=stdout)


def _require_end(process: "subprocess.Popen[bytes]") -> None:
    """Waits for a command's end; raises TunerError if it failed: its own output says why."""
    try:
        code = process.wait(None if sys.exc_info()[0] is None else END_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    if code != 0:
        raise TunerError(f"demo: a command ended with exit code {code}")
