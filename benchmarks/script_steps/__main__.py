"""Which steps of the strategies' scripts change the code, over a sample of random candidates.

    python -m benchmarks.script_steps effects --points 40 --strategy matmul_cpu_direct --json
    python -m benchmarks.script_steps equal OLD_STRATEGIES --points 100

``effects`` leaves out each step of each script, one at a time, and compares the code: LLVM dialect, or PTX.
``equal`` compares the code of the templates in a folder, of another commit for instance, with that of the
shipped ones; it names each candidate whose code differs and exits with 1. Where a processor's LLVM dialect
differs, in the order of constants for instance, the machine code is compared.
"""

import argparse
import hashlib
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.results_file import add_report_options, emit, report
from benchmarks.script_steps.steps import steps_of
from tests.support.sampled_candidates import MACHINES, SampledCandidate, machine_code, sampled
from tuner.core.errors import CandidateError
from tuner.core.interfaces import Script
from tuner.space.scripts.strategy import strategy_folder

NOTHING, CHANGES, FAILS = "nothing", "changes", "fails"  # what leaving out a step does to the code


def main() -> int:
    """Runs the tool; returns the exit code."""
    asked = _arguments()
    candidates = sampled(asked.points, asked.seed, asked.strategy)
    if asked.command == "equal":
        return _compare(candidates, asked.folder.absolute())
    rows = list(_effect_rows(candidates, asked.steps))
    settings = {"points": asked.points, "seed": asked.seed, "strategy": asked.strategy, "steps": asked.steps}
    summary = _summary(rows)
    for line in _table(summary):
        print(line, file=sys.stderr)
    emit(report("script_steps", settings, rows, summary), asked.json, asked.output)
    return 0


def _effect_rows(candidates: Iterator[SampledCandidate], wanted: str) -> Iterator[dict[str, Any]]:
    for sample in candidates:
        start = time.perf_counter()
        try:
            effects = effects_of(sample, sample.script(strategy_folder()).text, wanted)
        except CandidateError as error:
            yield {"candidate": sample.text, "strategy": sample.candidate.strategy, "failure": str(error)}
            continue
        print(f"{time.perf_counter() - start:6.1f} s {sample.text}", file=sys.stderr, flush=True)
        yield {
            "candidate": sample.text,
            "strategy": sample.candidate.strategy,
            "effects": effects,
        }


def effects_of(sample: SampledCandidate, script: str, wanted: str = "") -> dict[str, str]:
    """Returns what leaving out each step does whose name has a match of ``wanted``, by name.

    Raises CandidateError where the whole script does not compile.
    """
    code = _code(sample, script)
    steps = (step for step in steps_of(script) if re.search(wanted, step.name))
    return {step.name: _effect(sample, step.left_out(script), code) for step in steps}


def _effect(sample: SampledCandidate, script: str, code: str) -> str:
    try:
        return NOTHING if _code(sample, script) == code else CHANGES
    except CandidateError:
        return FAILS


def _code(sample: SampledCandidate, script: str) -> str:
    return hashlib.sha256(sample.code(Script.of(script)).encode()).hexdigest()


def _compare(candidates: Iterator[SampledCandidate], folder: Path) -> int:
    """Prints the candidates whose code differs between two folders of templates; returns the exit code."""
    found: Counter[str] = Counter()
    for sample in candidates:
        outcome = compared(sample, folder)
        found[outcome] += 1
        if not outcome.startswith("equal "):
            print(f"{outcome}: {sample.text}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(found.items())))
    return int(any(not outcome.startswith("equal ") for outcome in found if outcome != "neither compiles"))


def compared(sample: SampledCandidate, folder: Path) -> str:
    """Returns how the script and the code of other templates differ from those of the shipped ones."""
    try:
        then, now = sample.script(folder), sample.script(strategy_folder())
    except CandidateError as error:
        return f"not bound ({error})"
    if then == now:
        return "equal script"
    codes = []
    for script in (then, now):
        try:
            codes.append(sample.code(script))
        except CandidateError:
            codes.append("")
    if codes[0] == codes[1]:
        return "equal code" if codes[0] else "neither compiles"
    if not all(codes):
        return "only one compiles"
    is_dialect = sample.machine in MACHINES
    is_equal = is_dialect and machine_code(codes[0]) == machine_code(codes[1])
    return "equal machine code" if is_equal else "other code"


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns per strategy and step how often leaving it out does what, of all candidates that have it."""
    counts: dict[str, dict[str, Counter[str]]] = {}
    for row in rows:
        steps = counts.setdefault(row["strategy"], {})
        for name, effect in row.get("effects", {}).items():
            steps.setdefault(name, Counter())[effect] += 1
    return {
        strategy: {name: dict(each) for name, each in steps.items()} for strategy, steps in counts.items()
    }


def _table(summary: dict[str, Any]) -> Iterator[str]:
    for strategy, steps in summary.items():
        yield strategy
        for name, counts in steps.items():
            yield f"  {name:<90} " + " ".join(f"{what} {count}" for what, count in counts.items())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    effects, equal = commands.add_parser("effects"), commands.add_parser("equal")
    for command in (effects, equal):
        command.add_argument("--points", type=int, default=20, help="candidates of each strategy")
        command.add_argument("--seed", type=int, default=0)
        command.add_argument("--strategy", default="", help="only those whose name begins so")
    effects.add_argument("--steps", default="", metavar="REGEX", help="only steps whose name has a match")
    equal.add_argument("folder", type=Path, help="of the other templates")
    add_report_options(effects)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
