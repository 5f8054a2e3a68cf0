"""Reads a file of configurations to try first: of a colleague, another tuner, or a program that writes them.

JSON lines, a configuration each: ``{"strategy": "matmul_cpu_packed", "knobs": {"tile_m": 8, ...}}``, or a
whole script: ``{"script": "best.mlir"}``, a path relative to the file. Other keys are left unread, so a line
may say where its configuration is from.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.core.serialization import parsed
from tuner.core.text_files import read_text

LIMIT_BYTES = 64 * 2**20
FORM = '{"strategy": NAME, "knobs": {NAME: VALUE, ...}} or {"script": FILE}'
Seed = Candidate | Path  # a configuration, or the file of a script


def seeds_of_files(paths: Iterable[Path | str]) -> tuple[Seed, ...]:
    """Returns the configurations, or paths of scripts, that files list to be tried first, in their order.

    Raises UsageError as ``read_seeds``.
    """
    return tuple(chain.from_iterable(read_seeds(Path(path)) for path in paths))


def read_seeds(path: Path) -> tuple[Seed, ...]:
    """Returns the configurations, or paths of scripts, that a file lists to be tried first, in its order.

    Raises UsageError, with the number of a wrong line, and for a file that is empty or cannot be read.
    """
    seeds = tuple(_seeds(read_text(path, "a file of seeds", LIMIT_BYTES), path))
    if not seeds:
        raise UsageError(f"{path}: found no line, allowed {FORM} on each")
    return seeds


def _seeds(text: str, path: Path) -> Iterator[Seed]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            place = f"{path}, line {number}"
            yield _seed(parsed(line, place), place, path.parent)


def _seed(document: Any, place: str, folder: Path) -> Seed:
    match document:
        case {"script": str(script), **others} if script and "strategy" not in others:
            return folder / script
        case {"strategy": str(strategy), "knobs": dict(knobs)}:
            pass
        case _:
            raise UsageError(f"{place}: found another form, allowed {FORM}")
    for name, value in knobs.items():
        if type(value) not in (int, str):
            raise UsageError(f"{place}: knob {name}: found {value!r}, allowed whole numbers and texts")
    return Candidate.of(strategy, knobs)
