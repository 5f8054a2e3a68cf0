"""``tuner c-library``: an exported program as a library for C programs."""

import sys
from pathlib import Path

import click

from tuner.cli.options import json_option, print_json
from tuner.models.c_library import c_library as written_library


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="Write into this folder."
)
@click.option("--prefix", help="What the names of functions and files begin with. Default: FOLDER's name.")
@json_option
def c_library(folder: Path, output: Path, prefix: str | None, as_json: bool) -> None:
    """Writes a program that Python exported, program.export(FOLDER), as a library for C programs.

    One function runs a program of static sizes, or each n of the range of a dynamic size. The library needs
    neither Python nor tuner; it runs on x86-64 and Linux.

    Example: tuner c-library mlp -o mlp_c
    """
    paths = list(map(str, written_library(folder, output, prefix)))
    for path in paths:
        print(f"wrote {path}", file=sys.stderr)
    if as_json:
        print_json({"files": paths})
