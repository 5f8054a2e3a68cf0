"""Hashes of scripts, code and documents of 92 fixed candidates and 12 programs, compared with earlier ones.

    python -m benchmarks.golden_hashes --output benchmarks/results/golden_hashes.json
    python -m benchmarks.golden_hashes --compare benchmarks/results/golden_hashes.json
    python -m benchmarks.golden_hashes --keep FOLDER     # the texts themselves, for diff -r

What is hashed depends neither on the machine nor on the clock, but on the wheels that compile. Exits with 1
where a hash differs, and names the item and its parts.
"""

import argparse
import hashlib
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.golden_hashes.candidates import build, golden_candidates
from benchmarks.golden_hashes.command_line import CommandLine
from benchmarks.golden_hashes.comparison import Hashes, differences
from benchmarks.golden_hashes.database import write_database
from benchmarks.golden_hashes.documents import documents_of_all, documents_of_trial
from benchmarks.golden_hashes.programs import PROGRAMS, run_on_simulator
from benchmarks.golden_hashes.tuner_names import GPU_WHEELS, packages
from benchmarks.results_file import add_report_options, emit, report

Item = tuple[str, dict[str, str]]  # (name, part -> text)


def main() -> int:
    """Runs the tool; returns the exit code."""
    asked = _arguments()
    before = None if asked.compare is None else json.loads(asked.compare.read_text())
    start = time.perf_counter()
    items = {}
    for name, texts in _items():
        items[name] = {part: _sha256(text) for part, text in texts.items()}
        print(f"{time.perf_counter() - start:6.1f} s {name}: {len(texts)} hashes", file=sys.stderr)
        if asked.keep is not None:
            _keep(asked.keep, name, texts)
    rows = [{"item": name, "sha256": hashes} for name, hashes in items.items()]
    summary: dict[str, Any] = {"items": len(items), "hashes": sum(map(len, items.values()))}
    emit(
        report("golden_hashes", {"packages": dict(packages(GPU_WHEELS))}, rows, summary),
        asked.json,
        asked.output,
    )
    return 0 if before is None else compared(before, items)


def _items() -> Iterator[Item]:
    """Yields (name, texts) of every item that is hashed."""
    candidates = tuple(build(golden) for golden in golden_candidates())
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "golden.db"
        trials = write_database(database, candidates)
        tuner = CommandLine(database)
        for built in candidates:
            documents = documents_of_trial(tuner, trials[built.golden.number])
            yield built.golden.name, built.texts | documents
        yield "documents", dict(documents_of_all(tuner, candidates))
        for program in PROGRAMS:
            yield program.name, program.texts | {"run": run_on_simulator(tuner, program)}


def compared(before: Mapping[str, Any], now: Hashes) -> int:
    """Prints the differences from an earlier report; returns the exit code."""
    lines = differences({row["item"]: row["sha256"] for row in before["rows"]}, now)
    made_by = before["settings"]["packages"]
    if lines and made_by != dict(packages(GPU_WHEELS)):
        lines.append(f"other compilers: {made_by} then, {dict(packages(GPU_WHEELS))} now")
    print("\n".join(lines) if lines else f"all of {len(now)} items are equal", file=sys.stderr)
    return int(bool(lines))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _keep(folder: Path, name: str, texts: Mapping[str, str]) -> None:
    """Writes the texts of an item to a folder named after it."""
    item = folder / _file_name(name)
    item.mkdir(parents=True, exist_ok=True)
    for part, text in texts.items():
        (item / f"{_file_name(part)}.txt").write_text(text)


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--compare", type=Path, metavar="FILE", help="earlier hashes; differences exit with 1"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write every text that is hashed here")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
