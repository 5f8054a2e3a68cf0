"""The form of every results file: settings, machine, date, and rows."""

import argparse
import datetime
import json
import os
import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tuner.runtime.cpu.host import describe_machine
from tuner.version import __version__

RESULTS = Path(__file__).parent / "results"


def report(
    benchmark: str, settings: dict[str, Any], rows: list[dict[str, Any]], summary: dict[str, Any]
) -> dict[str, Any]:
    """Returns one JSON document."""
    return {
        "benchmark": benchmark,
        "settings": settings,
        "summary": summary,
        "rows": rows,
        "machine": asdict(describe_machine()),
        "system": {
            "kernel": platform.release(),
            "python": platform.python_version(),
            "load": os.getloadavg(),
        },
        "tuner": __version__,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def day_of(document: dict[str, Any]) -> str:
    """Returns the day on which a results document was made, in UTC: "2026-01-31"."""
    day, _, _ = document["date"].partition("T")
    return str(day)


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``emit``: --json and --output."""
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--output", type=_results_file, help="write the document to this file too")


def emit(document: dict[str, Any], is_json: bool, output: Path | None) -> None:
    """Prints the document as JSON where ``is_json``, and writes it to ``output`` where that is given."""
    text = json.dumps(document, indent=1)
    if output is not None:
        output.write_text(text + "\n")
    if is_json:
        print(text)


def _results_file(name: str) -> Path:
    """Returns a file to write to. Raises ArgumentTypeError at once for a path that cannot be written."""
    file = Path(name)
    if not file.absolute().parent.is_dir() or file.is_dir():
        raise argparse.ArgumentTypeError(f"found {name!r}, allowed a file in a folder that is there")
    return file


def seconds_option(text: str) -> float:
    """Returns the seconds of a command-line option, more than 0. Raises ArgumentTypeError for others."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"found {text!r}, allowed seconds above 0")
    return seconds
