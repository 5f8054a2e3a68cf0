"""A visit to a GPU: what a quarter of an hour there must decide, with code compiled before.

    python -m benchmarks.gpu_visit prepare               here, without a GPU: compiles into build/gpu_visit
    python -m benchmarks.gpu_visit run                    there, 450 seconds, without a network or a compiler
    python -m benchmarks.gpu_visit run --device stub      a dry run here, on a stand-in for the driver

Results are written whole after each candidate: a run that is cut off at any second leaves what was decided.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.gpu_check.__main__ import exit_code, table
from benchmarks.gpu_check.budget import Budget
from benchmarks.gpu_check.checks import STATUSES, PartResult
from benchmarks.gpu_check.device_under_test import CUDA, STUB, Bed
from benchmarks.gpu_check.runner import Child, run_part
from benchmarks.gpu_visit.code_folder import FOLDER, LIMIT_BYTES, CodeFolder
from benchmarks.gpu_visit.decisions import decided
from benchmarks.gpu_visit.sections import SECTIONS, TOTAL_S, WEIGHTS
from benchmarks.results_file import RESULTS, report
from tuner.core.errors import DeviceError, UsageError
from tuner.core.text_files import replace_file

CHIP = "sm_90a"
MISUSE, INTERRUPTED = 2, 130
CHILD = "benchmarks.gpu_visit.child"


def main() -> None:
    """Prepares a visit, or makes it."""
    options = _arguments()
    try:
        sys.exit(options.command(options))
    except (DeviceError, UsageError) as error:
        print(f"error: {error}", file=sys.stderr)
        if isinstance(error, UsageError) and error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        sys.exit(MISUSE)


def prepare_visit(options: argparse.Namespace) -> int:
    """Compiles what is missing; prints what travels. Returns the exit code."""
    from benchmarks.gpu_visit.prepare import prepare  # loads MLIR, which a GPU machine may lack

    code = prepare(options.code, options.chip, is_quick=options.quick, report=_say)
    print(travel_list(code))
    return int(code.size_bytes > LIMIT_BYTES)


def travel_list(code: CodeFolder) -> str:
    """Returns what travels: the programs of each section, the files, and their size against the limit."""
    sections = dict.fromkeys(entry.section for entry in code.manifest.entries)
    lines = [f"{'section':20s} {'programs':>8s} {'missing':>8s}"]
    lines += [
        f"{section:20s} {len(code.of(section)):8d} {len(code.failures(section)):8d}" for section in sections
    ]
    mebibytes = code.size_bytes / 2**20
    lines.append(f"{len(code.files)} files, {mebibytes:.2f} MiB of {LIMIT_BYTES / 2**20:.0f}: {code.path}")
    return "\n".join(lines)


def make_visit(options: argparse.Namespace) -> int:
    """Runs the sections in order; returns the exit code."""
    code = CodeFolder.read(options.code)
    bed = visit_bed(options.device, code.manifest.chip, options.quick)
    output = options.output or default_output(bed)
    _require_folder(output)
    with tempfile.TemporaryDirectory() as folder:
        earlier = None if options.all else earlier_rows(output, Path(folder))
        visit = Visit(replace(bed, earlier=earlier), code, options.seconds, output, time.monotonic())
        try:
            visit.run_all(options.sections)
        except KeyboardInterrupt:
            _say(f"interrupted; {output} has what is known")
            return INTERRUPTED
    results = tuple(visit.results.values())
    print(table(results))
    for decision in decided(visit.rows):
        print(f"{decision.question} {decision.answer}")
    return exit_code(results)


def earlier_rows(output: Path, folder: Path) -> Path | None:
    """Returns a copy of the results of an earlier visit, which this one overwrites; None without any."""
    if not output.exists():
        return None
    return Path(shutil.copy(output, folder / "earlier.json"))


class Visit:
    """One visit: the results so far, which are written whole whenever a check has an outcome."""

    def __init__(self, bed: Bed, code: CodeFolder, total_s: float, output: Path, began_s: float) -> None:
        """Takes the device, the code, the seconds for all, the results file, and the moment of the start."""
        self.results: dict[str, PartResult] = {}
        self._bed = bed
        self._code = code
        self._total_s = total_s
        self._output = output
        self._began_s = began_s
        here = bed.here()
        self._gpu = None if here is None else here.facts.name

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Returns a row for each check that has an outcome."""
        return [row.document(result.name) for result in self.results.values() for row in result.rows]

    def limit_s(self, section: str, sections: tuple[str, ...]) -> float:
        """Returns the seconds of a section: its share of what is left; all of it on a stand-in for a GPU."""
        spent_s = time.monotonic() - self._began_s
        if not self._bed.is_hardware:
            return max(0.0, self._total_s - spent_s)
        return Budget(sections, self._total_s, WEIGHTS).limit_s(section, spent_s)

    def run_all(self, sections: tuple[str, ...]) -> None:
        """Runs sections in order, each within its share of what is left."""
        for section in sections:
            limit_s = self.limit_s(section, sections)
            _say(f"{section}: up to {limit_s:.0f} s")
            self.run(section, limit_s)
            _say(f"{section}: written")

    def run(self, section: str, limit_s: float) -> None:
        """Runs a section in child processes; writes the results after each check, and at its end."""
        child = Child(CHILD, ("--code", str(self._code.path.resolve())))
        self._take(run_part(section, self._bed, limit_s, child, self._take))

    def _take(self, result: PartResult) -> None:
        self.results[result.name] = result
        replace_file(self._output, (json.dumps(self._document(), indent=1) + "\n").encode())

    def _document(self) -> dict[str, Any]:
        settings = {"device": self._bed.device, "chip": self._bed.chip, "limit_s": self._total_s}
        settings |= {"gpu": self._gpu}
        settings |= {"ptxas": self._code.manifest.ptxas, "quick": self._bed.is_quick}
        summary = {
            "seconds": round(time.monotonic() - self._began_s, 1),
            "sections": {result.name: section_summary(result) for result in self.results.values()},
            "decided": [asdict(decision) for decision in decided(self.rows)],
        }
        return report("gpu_visit", settings, self.rows, summary)


def section_summary(result: PartResult) -> dict[str, Any]:
    """Returns the counts of a section, and the checks that there was no time for."""
    counts = {status: result.count(status) for status in STATUSES}
    return counts | {"left_out": list(result.left_out), "seconds": round(result.seconds, 1)}


def visit_bed(device: str, chip: str, is_quick: bool) -> Bed:
    """Returns the device. Raises DeviceError for no GPU, or for one that the code is not for."""
    bed = Bed(device, chip, is_quick)
    here = bed.here()
    assert here is not None
    if not chip.startswith(here.facts.chip):
        raise DeviceError(f"the code is for {chip}, the GPU here is {here.facts.name}, {here.facts.chip}")
    return bed


def default_output(bed: Bed) -> Path:
    """Returns the results file: of a GPU among the results that are kept, else next to the code."""
    folder = RESULTS if bed.is_hardware else FOLDER.parent
    return folder / (f"gpu_visit_{bed.chip}.json" if bed.is_hardware else "gpu_visit_dry_run.json")


def _require_folder(output: Path) -> None:
    if not output.absolute().parent.is_dir():
        raise UsageError(f"output: found no folder {output.parent}", f"mkdir -p {output.parent}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    commands = parser.add_subparsers(required=True, metavar="prepare|run")
    prepared = commands.add_parser("prepare", help="compiles everything that a visit runs")
    prepared.add_argument("--chip", default=CHIP)
    prepared.set_defaults(command=prepare_visit)
    made = commands.add_parser("run", help="makes the visit")
    made.add_argument("--device", choices=(CUDA, STUB), default=CUDA)
    made.add_argument("--seconds", type=float, default=TOTAL_S, help="for all sections together")
    made.add_argument("--sections", nargs="+", choices=WEIGHTS, default=tuple(WEIGHTS), metavar="SECTION")
    made.add_argument("--all", action="store_true", help="also what passed before with the same code")
    made.add_argument("--output", type=Path, help="write the results to this file")
    made.set_defaults(command=make_visit)
    for command in (prepared, made):
        command.add_argument("--code", type=Path, default=FOLDER, help="folder of compiled code")
        command.add_argument("--quick", action="store_true", help="a few programs of each section")
    options = parser.parse_args()
    if "sections" in options:
        options.sections = tuple(section.name for section in SECTIONS if section.name in options.sections)
    return options


if __name__ == "__main__":
    main()
