"""Rows of a survey, appended to a file one by one: the same command goes on where it was stopped."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any


def add_kept_options(parser: argparse.ArgumentParser, unit: str) -> None:
    """Adds --kept, --seed, --jobs and --limit-s to a survey's command; ``unit``: what it checks, "sample"."""
    parser.add_argument(
        "--kept", type=Path, required=True, help="outcomes are appended here, and not found again"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--limit-s", type=float, default=float("inf"), help=f"begin no {unit} after so many seconds"
    )


def kept_rows(file: Path, drawn_by: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the rows of earlier commands; begins the file if it is missing.

    ``drawn_by``: the first line, such as the seed. Exits where the file has another one.
    """
    if not file.exists():
        keep_row(file, drawn_by)
        return []
    text = file.read_text()
    whole = text[: text.rindex("\n") + 1]  # the last line may have been cut off
    if whole != text:
        file.write_text(whole)
    first, *lines = whole.splitlines()
    if json.loads(first) != drawn_by:
        sys.exit(f"--kept: found samples of {first}, allowed those of {json.dumps(drawn_by)}")
    return [json.loads(line) for line in lines]


def keep_row(file: Path, row: dict[str, Any]) -> None:
    """Appends a row."""
    with file.open("a") as opened:
        opened.write(json.dumps(row) + "\n")
