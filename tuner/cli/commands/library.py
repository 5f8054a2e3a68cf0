"""``tuner library``: libraries of exported schedules."""

import sys
from pathlib import Path

import click

from tuner.cli.main import Commands
from tuner.cli.options import json_option, print_json
from tuner.core.text_file import read_text


@click.group(cls=Commands)
def library() -> None:
    """Works on libraries that 'tuner export --format library' wrote.

    Example: tuner library merge mine/library.mlir yours/library.mlir -o library.mlir
    """


@library.command()
@click.argument("libraries", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Write to this file.")
@json_option
def merge(libraries: tuple[Path, ...], output: Path, as_json: bool) -> None:
    """Writes the library that has the entries of several libraries of one machine.

    Where two have a schedule for the same contraction, both are timed interleaved on this machine, and the
    faster one stays.

    Example: tuner library merge mine/library.mlir yours/library.mlir -o library.mlir
    """
    from tuner.core.dataclass_json import encode
    from tuner.library.merge import LibraryText, merged
    from tuner.output.atomic_write import write_atomically

    found = merged(tuple(LibraryText(str(path), read_text(path, "MLIR text")) for path in libraries))
    write_atomically(output, found.text.encode())
    for duel in found.duels:
        print(duel.line, file=sys.stderr)
    print(f"wrote {output}: {found.entries} entries", file=sys.stderr)
    if as_json:
        duels = [encode(duel) for duel in found.duels]
        print_json({"files": [str(output)], "entries": found.entries, "compared": duels})
