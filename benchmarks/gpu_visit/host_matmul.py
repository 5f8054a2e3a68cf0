"""The processor next to the GPU, while the GPU works: matmuls of f32, bf16 and i8 against MKL and oneDNN.

    python -m benchmarks.gpu_visit.host_matmul --cores 8-15 --output benchmarks/results/host_visit.json

For 1, 2, 4 and 8 threads: what the shipped rule for this class of processors chooses at once, and what a
short search finds, each interleaved with every library that is installed. The process is pinned to the cores.
The most telling problems come first; results are written whole after each, until the seconds are over.
"""

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tuner
from benchmarks.paired_timing import contest, load
from benchmarks.results_file import RESULTS, report
from tuner.core.errors import TunerError, UsageError
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.problem_text import parse_shape
from tuner.core.text_files import replace_file
from tuner.runtime.cpu.host import describe_machine
from tuner.targets.cpu.baseline_libraries import MKL, ONEDNN, ONEDNN_TORCH, OPENBLAS, chosen_libraries
from tuner.tuning.pretuned import class_of, picks_of, shipped_rule
from tuner.tuning.rule import ProblemSpaces

CORES = tuple(range(8, 16))  # the GPU's timing keeps the lower ones
THREADS = (1, 2, 4, 8)
DTYPES = ("f32", "bf16", "i8")
SHAPES = ("1024x1024x1024", "2048x2048x2048", "16x4096x4096", "512x1536x384")
LIBRARIES = (MKL, ONEDNN, ONEDNN_TORCH, OPENBLAS)
SEARCH_S = 8.0  # of each problem
TOTAL_S = 480.0
RULE, SEARCH = "shipped rule", "search"


@dataclass(frozen=True)
class HostProblem:
    """One problem with a number of threads."""

    problem: Problem
    threads: int

    @property
    def libraries(self) -> tuple[str, ...]:
        """Returns the installed libraries that multiply the problem; OpenBLAS where there is no other."""
        able = [name for name in LIBRARIES[:-1] if is_installed(name, self.problem)]
        return tuple(able) or tuple(name for name in LIBRARIES[-1:] if is_installed(name, self.problem))


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    allowed = sorted(os.sched_getaffinity(0) & set(options.cores))
    if not allowed:
        sys.exit(f"error: cores: found {options.cores}, allowed of {sorted(os.sched_getaffinity(0))}")
    os.sched_setaffinity(0, allowed)
    end_s = time.monotonic() + options.seconds
    rows: list[dict[str, Any]] = []
    for wanted in problems(options.shapes, options.dtypes, options.threads, len(allowed)):
        if time.monotonic() > end_s:
            break
        for row in rows_of(wanted, options.search):
            rows.append(row)
            print(line_of(row), file=sys.stderr, flush=True)
            write(
                options.output,
                rows,
                {"cores": allowed, "seconds": options.seconds, "search_s": options.search},
            )


def problems(
    shapes: tuple[str, ...], dtypes: tuple[str, ...], threads: tuple[int, ...], cores: int
) -> Iterator[HostProblem]:
    """Yields problems, all types and threads of a shape before the next; none of more threads than cores."""
    for shape, count, dtype in itertools.product(shapes, threads, dtypes):
        if count <= cores:
            yield HostProblem(Matmul(*parse_shape(shape), dtype=dtype), count)


def rows_of(wanted: HostProblem, search_s: float) -> Iterator[dict[str, Any]]:
    """Yields a row for what the shipped rule chooses, and one for what a search finds."""
    for source in (RULE, SEARCH):
        facts = {"problem": wanted.problem.key, "threads": wanted.threads, "source": source, "load": load()}
        try:
            script, choice = by_rule(wanted) if source == RULE else by_search(wanted, search_s)
            yield facts | choice | {"libraries": contests(wanted, script)}
        except TunerError as error:
            yield facts | {"failure": str(error)}


def by_rule(wanted: HostProblem) -> tuple[str, dict[str, Any]]:
    """Returns the script that the shipped rule chooses at once, and its configuration. Raises TunerError."""
    machine = describe_machine()
    shipped = shipped_rule(machine, wanted.problem.dtype, wanted.threads)
    if shipped is None:
        raise UsageError(f"no rule ships for {class_of(machine)}, {wanted.problem.dtype}")
    space = ProblemSpaces.shipped(machine, wanted.threads)
    picks = picks_of(shipped, space, wanted.problem)
    if picks is None:
        raise UsageError(f"nothing in the rule of {shipped.processors} applies")
    candidate = picks.candidates[0]
    choice = {"strategy": candidate.strategy, "knobs": dict(candidate.choices), "rule_of": shipped.processors}
    return space.script(wanted.problem, candidate).text, choice


def by_search(wanted: HostProblem, search_s: float) -> tuple[str, dict[str, Any]]:
    """Returns the script that a search finds within seconds, and its configuration. Raises TunerError."""
    with tempfile.TemporaryDirectory() as folder:
        tuned = tuner.tune(
            wanted.problem,
            target="cpu",
            threads=wanted.threads,
            budget=search_s,
            db=f"{folder}/host.db",
        )
    if tuned.best is None:
        raise UsageError("no candidate worked")
    candidate = tuned.best.record.candidate
    choice = {"strategy": candidate.strategy, "knobs": dict(candidate.choices)}
    return tuned.best.script_text, choice | {"proposed": tuned.counts.proposed, "seconds": tuned.seconds}


def contests(
    wanted: HostProblem, script: str, race: Callable[..., Any] = contest
) -> dict[str, dict[str, Any]]:
    """Returns, by library, both times and their ratio: above 1 the kernel is faster."""
    found = {}
    for library in wanted.libraries:
        try:
            found[library] = asdict(race(wanted.problem, script, wanted.threads, library))
        except TunerError as error:
            found[library] = {"failure": str(error)}
    return found


def is_installed(library: str, problem: Problem) -> bool:
    """Returns whether a library is here and multiplies the problem."""
    try:
        return chosen_libraries(library, problem) == (library,)
    except UsageError:
        return False


def write(output: Path, rows: list[dict[str, Any]], settings: dict[str, Any]) -> None:
    """Writes the results file, whole or not at all."""
    ratios = [each["ratio"] for row in rows for each in row.get("libraries", {}).values() if "ratio" in each]
    summary = {
        "rows": len(rows),
        "least_ratio": min(ratios, default=None),
        "class": class_of(describe_machine()),
    }
    text = json.dumps(report("host_visit", settings, rows, summary), indent=1)
    replace_file(output, (text + "\n").encode())


def line_of(row: dict[str, Any]) -> str:
    """Returns one line of a row."""
    head = f"{row['problem']}, {row['threads']} threads, {row['source']}"
    if "failure" in row:
        return f"{head}: {row['failure']}"
    ratios = (
        f"{name} {each['ratio']:.3f}" if "ratio" in each else f"{name}: {each['failure']}"
        for name, each in row["libraries"].items()
    )
    return f"{head}: {', '.join(ratios)} {row['strategy']}"


def cores_in(text: str) -> tuple[int, ...]:
    """Returns the numbers of a list such as "8-15" or "0,2". Raises ArgumentTypeError."""
    try:
        parts = [part.partition("-") for part in text.split(",")]
        numbers = [range(int(low), int(high or low) + 1) for low, _, high in parts]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"found {text!r}, allowed numbers such as 8-15 or 0,2") from error
    return tuple(itertools.chain(*numbers))


def _arguments() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--cores", type=cores_in, default=CORES, help="numbers of processors, such as 8-15")
    parser.add_argument("--threads", type=int, nargs="+", default=THREADS)
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument("--shapes", nargs="+", default=SHAPES, metavar="MxNxK")
    parser.add_argument("--search", type=float, default=SEARCH_S, help="seconds of each search")
    parser.add_argument("--seconds", type=float, default=TOTAL_S, help="for all problems together")
    parser.add_argument("--output", type=Path, default=RESULTS / "host_visit.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
