"""Random command lines over all options: ``python -m tests.cli.command_lines --count 2000 --seed 0``.

Each one must end in a result or in one clear line. Prints those that do not; exits with 1 when there is one.
Left out: what serves until Ctrl-C, and the demo of a fleet, which tunes.
"""

import argparse
import contextlib
import itertools
import json
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from docs.generators.commands import all_commands
from tests.cli.conftest import Tuner
from tests.tuning import fakes
from tuner.cli.main import Commands

LEFT_OUT = {"dashboard", "measure", "demo"}
OPTION_SHARE = 0.2  # of the options of a command that a line has
NUMBERS = ("1", "2", "3", "0", "-1", "20", "21", "99999999999999999999", "1.5", "many", "")
WORDS = (
    *("matmul", "8x8x8", "9x9x9", "8x8", "f32", "f64", "bf16", "f16", "tf32", "nn", "nt", "none"),
    *("bias_relu", "fake", "gpu", "cpu", "auto", "replay:none.json", "simulator:sm_90", "sm_90", "tpe"),
    *("random", "exhaustive", "optuna:nsgaii", "measured", "failed", "done", "60s", "5%", "0s", "1h"),
    *("2026-01-31", "median", "-number", "1", "run:1", "run:9", "fake(x=4)", "fake(x=99)", "fake(", "-"),
    *("", " ", "\u00e9", "x" * 300, "a\nb", "--", "\x1b[31m", "0=[8x8]1.0", "main"),
)
FILES = (
    *("empty.mlir", "odd.mlir", "script.mlir", "none.mlir", "folder", "space.yaml", "new.out", "none/new"),
    "",
)
# Argument or option -> words that mostly fit, so that many lines get past the first check.
FITTING = {
    "operation": ("matmul",),
    "shape": ("8x8x8", "8x8x8", "16x8x8"),
    "dtype": ("f32", "f64"),
    "target": ("fake", "auto"),
    "layout": ("nn", "nt"),
    "align": ("16", "64"),
    "cache": ("warm", "cold"),
    "strategy": ("fake",),
    "trial": ("1", "7"),
    "run": ("1",),
    "resume": ("1",),
    "name": ("1", "run:1"),
    "arguments": ("1", "matmul", "8x8x8"),
    "trials": ("1", "3"),
}
FITTING_SHARE = 0.7


def leaves() -> tuple[tuple[tuple[str, ...], click.Command], ...]:
    """Returns the commands that do something, with their names."""
    found = ((names[1:], command) for names, command in all_commands() if names[-1] not in LEFT_OUT)
    return tuple((names, command) for names, command in found if not isinstance(command, Commands))


def command_lines(seed: int) -> Iterator[tuple[str, ...]]:
    """Yields lines without end, the commands in turn."""
    rng = random.Random(seed)
    for names, command in itertools.cycle(leaves()):
        yield (*names, *_text(command, rng))


def _text(command: click.Command, rng: random.Random) -> list[str]:
    options = []
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            count = rng.choice((1, 3)) if parameter.nargs < 0 else int(rng.random() < 0.9)
            options += [_value(parameter, rng) for _ in range(count)]
        elif rng.random() < OPTION_SHARE and parameter.name != "database":
            options.append(rng.choice((*parameter.opts, *parameter.secondary_opts)))
            if not (isinstance(parameter, click.Option) and parameter.is_flag):
                options.append(_value(parameter, rng))
    return options


def _value(parameter: click.Parameter, rng: random.Random) -> str:
    fitting = FITTING.get(parameter.name or "")
    if fitting and rng.random() < FITTING_SHARE:
        return rng.choice(fitting)
    match parameter.type:
        case click.Choice() as choice:
            return rng.choice((*map(str, choice.choices), *map(str, choice.choices), "nonsense"))
        case click.Path():
            return rng.choice(FILES)
        case kind if kind is click.INT or kind is click.FLOAT:
            return rng.choice(NUMBERS)
    return rng.choice(WORDS)


def complaint(options: tuple[str, ...], tuner: Tuner) -> str:
    """Runs a line; returns what is wrong with how it ended, '' for nothing."""
    try:
        done = tuner(*options)
    except Exception as error:  # noqa: BLE001 - whatever it is, the line did not end well
        return f"raised {type(error).__name__}: {error}"
    if done.code not in (0, 1, 2):
        return f"exit code {done.code}"
    if "defect:" in done.err or ("Traceback" in done.err and "--debug" not in options):
        return f"stderr: {done.err[-300:]}"
    if done.code == 2:
        said = [line for line in done.err.splitlines() if line.startswith("error: ")]
        if len(said) != 1 or done.out:
            return f"exit code 2 with {len(said)} lines, stdout {done.out[:80]!r}, stderr {done.err[-200:]!r}"
    if done.code == 1 and not done.err and not done.out:
        return "exit code 1 without a word"
    if done.code == 0 and "--json" in options and not _is_json(done.out):
        return f"--json printed {done.out[:120]!r}"
    return ""


def _is_json(text: str) -> bool:
    with contextlib.suppress(ValueError):
        json.loads(text)
        return True
    return all(_is_json(line) for line in text.splitlines()) if text.count("\n") > 1 else False


@contextlib.contextmanager
def bed(folder: Path) -> Iterator[Tuner]:
    """Gives the command a folder with files and a database of one run, on fakes; none of it stays changed."""
    tuner = Tuner(folder / "results.db", fakes.backends())
    tuner("tune", "matmul", "8x8x8", "--sampler", "exhaustive", "--trials", "20")
    (folder / "folder").mkdir()
    (folder / "empty.mlir").write_text("")
    (folder / "odd.mlir").write_text("this is not MLIR \x00\x1b[31m\n")
    (folder / "space.yaml").write_text("strategies: [\n")
    tuner("export", "matmul", "8x8x8", "-o", str(folder / "script.mlir"))
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield tuner
    finally:
        os.chdir(before)


def complaints(count: int, seed: int) -> Iterator[tuple[tuple[str, ...], str]]:
    with tempfile.TemporaryDirectory() as name, bed(Path(name)) as tuner:
        kept = Path(name) / "kept.db"
        shutil.copy(tuner.database, kept)
        for options in itertools.islice(command_lines(seed), count):
            shutil.copy(kept, tuner.database)
            said = complaint(options, tuner)
            if said:
                yield options, said


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cli.command_lines", description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    found: Counter[str] = Counter()
    for options, said in complaints(asked.count, asked.seed):
        found[options[0]] += 1
        sys.stdout.write(f"tuner {options}\n    {said}\n")
    sys.stdout.write(f"{asked.count} command lines, {found.total()} ended badly: {dict(found)}\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(_main())
