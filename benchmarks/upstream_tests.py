"""Upstream's own tests of the transform dialect by ``tuner apply``, compared with stock mlir-opt.

    python -m benchmarks.upstream_tests llvm-project/mlir/test --output benchmarks/results/upstream_tests.json

A test is one module of a file of LLVM's ``mlir/test`` (files are split at ``// -----``) that holds a payload
and its schedule, and whose command is ``mlir-opt`` with the transform interpreter and upstream passes. Both
sides get the same text. Findings: equal (the same module, printed by one printer), differs, "refused by both"
(tests of messages), refused (only ``tuner apply`` refuses, with its line), "only tuner" (mlir-opt refuses). A
module without a schedule is not counted.
"""

import argparse
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from shutil import which
from typing import Any

from benchmarks.results_file import add_report_options, emit, report
from tuner.core.errors import TunerError
from tuner.mlir.transform import new_context, parse, without_schedules
from tuner.runtime.workers.worker import call_in_child
from tuner.targets.children import apply_script

COMMAND = re.compile(r"RUN:\s*mlir-opt\b(?P<rest>[^|]*)")
INTERPRETER = re.compile(r"--?transform-interpreter(?=\s|$)")
# Of upstream's test executables alone, or of a pass with options, which is not part of the schedule.
OTHERS = re.compile(r"--?(test-|pass-pipeline|transform-preload-library|debug-)|transform-interpreter=")
PLACE = re.compile(r" (at \S+:\d+:\d+|line \d+:\d+:)(?=[ :]|$)")  # in a message
SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)
TIMEOUT_S = 60.0  # for the modules of a file
EQUAL, DIFFERS, BOTH, REFUSED, ONLY = "equal", "differs", "refused by both", "refused", "only tuner"


def main() -> None:
    """Runs the tests of a folder and prints the findings by file."""
    options = _options()
    files = [file for file in sorted(options.tests.rglob("*.mlir")) if _is_counted(file.read_text())]
    with ThreadPoolExecutor(options.jobs) as jobs:
        rows = list(jobs.map(lambda file: _row(file, options.tests, options.mlir_opt), files))
    findings = sum((Counter(row["findings"]) for row in rows), Counter[str]())
    version = subprocess.run(
        (options.mlir_opt, "--version"), text=True, capture_output=True, check=True
    ).stdout
    settings = {"mlir_opt": re.findall(r"version \S+", version)[0], "tests": options.release}
    emit(
        report("upstream_tests", settings, rows, {"files": len(rows), **findings}),
        options.json,
        options.output,
    )
    if not options.json:
        print(*(f"{row['file']}: {row['findings']} {row['reasons']}" for row in rows), sep="\n")
        print(f"{len(rows)} files: {dict(findings)}")


def _is_counted(text: str) -> bool:
    commands = [command["rest"] for command in COMMAND.finditer(text.replace("\\\n// RUN:", " "))]
    runs = any(INTERPRETER.search(command) and not OTHERS.search(command) for command in commands)
    return runs and any(_modules(text))


def _row(file: Path, tests: Path, mlir_opt: str) -> dict[str, Any]:
    modules = tuple(_modules(file.read_text()))
    found = _found_in_child(modules, mlir_opt)
    reasons = tuple(dict.fromkeys(PLACE.sub("", reason) for _, reason in found if reason))
    findings = dict(Counter(finding for finding, _ in found))
    return {
        "file": str(file.relative_to(tests)),
        "modules": len(modules),
        "findings": findings,
        "reasons": reasons,
    }


def _found_in_child(modules: tuple[str, ...], mlir_opt: str) -> list[tuple[str, str]]:
    """Returns (finding, reason) of each module; where one ends the child, each has a child of its own."""
    try:
        return call_in_child("apply", partial(_findings, modules, mlir_opt), TIMEOUT_S)
    except TunerError as error:
        if len(modules) == 1:
            return [(REFUSED, str(error))]
        return [found for text in modules for found in _found_in_child((text,), mlir_opt)]


def _findings(modules: tuple[str, ...], mlir_opt: str) -> list[tuple[str, str]]:
    return [_finding(text, mlir_opt) for text in modules]


def _modules(text: str) -> Iterator[str]:
    for part in SPLIT.split(text):
        if "transform.named_sequence" in part and "transform.with_named_sequence" in part:
            yield part


def _finding(text: str, mlir_opt: str) -> tuple[str, str]:
    stock = subprocess.run(
        (mlir_opt, "-", "--transform-interpreter", "--allow-unregistered-dialect"),
        input=text,
        text=True,
        capture_output=True,
    )
    try:
        ours = apply_script(text, text, allows_effects=False)
    except TunerError as error:
        return (BOTH, "") if stock.returncode else (REFUSED, str(error).splitlines()[0])
    if stock.returncode:
        return ONLY, stock.stderr.splitlines()[0]
    return (EQUAL, "") if _printed(ours) == _printed(stock.stdout) else (DIFFERS, "")


def _printed(text: str) -> str:
    with new_context() as context:
        context.allow_unregistered_dialects = True
        return str(without_schedules(parse(text, "result")))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tests", type=Path, help="the folder mlir/test of LLVM's sources")
    parser.add_argument("--release", default="22.1.8", help="of these sources; default %(default)s")
    parser.add_argument("--mlir-opt", default=which("mlir-opt-22") or "mlir-opt", help="default %(default)s")
    parser.add_argument("--jobs", type=int, default=2, help="tests at a time; default %(default)s")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    from benchmarks import upstream_tests  # children import functions by the module's name

    upstream_tests.main()
