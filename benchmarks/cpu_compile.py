"""How much processor time a CPU candidate takes from knobs to object code, for any described processor.

    python -m benchmarks.cpu_compile --json                    # AMX; runs on a processor without AMX too
    python -m benchmarks.cpu_compile 333x1777x901 --dtypes bf16 --layouts tn --drawn 8

For each problem: the configurations that a search begins with, and ``--drawn`` random ones. Stages: bind
(template to script), lower (script on payload, to LLVM dialect), object (machine code, by LLVM). The least
time of all rounds counts: what disturbs a process only makes it slower.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.results_file import add_report_options, emit, report
from tuner.core.candidate import Candidate
from tuner.core.matmul import Matmul
from tuner.core.problem import LAYOUTS, Problem
from tuner.core.problem_text import parse_shape
from tuner.core.processors import PROCESSORS, DescribedProcessor, processor_of
from tuner.mlir.cpu.llvm_modules import compiled_for
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import first_rows, load_space_file, spaces_for
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.strategy import Binder, load_strategy
from tuner.targets.cpu.compiler import CpuCompiler, write_object

SHAPES = ("512x512x512", "100x100x100", "300x300x300", "1003x701x331", "333x1777x901")
STAGES = ("bind", "lower", "object")
Result = TypeVar("Result")


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    processor = processor_of(options.cpu)
    rows = []
    for problem in _problems(options):
        builder = _Builder(problem, processor, options.strategy)
        for candidate in builder.candidates(options.drawn, options.seed):
            rows.append(_row(builder, candidate, options.rounds))
            row = rows[-1]
            print(f"{row['processor_s']:.3f} s {row['point']}", file=sys.stderr, flush=True)
    times = [row["processor_s"] for row in rows]
    summary = {"median_processor_s": statistics.median(times), "slowest_processor_s": max(times)}
    settings = {name: value for name, value in vars(options).items() if name not in ("json", "output")}
    emit(report("cpu_compile", settings, rows, summary), options.json, options.output)


class _Builder:
    """Compiles candidates of one problem for one processor, in one MLIR context."""

    def __init__(self, problem: Problem, processor: DescribedProcessor, strategy: str) -> None:
        machine, self._space = processor.machine, load_space_file(default_space_file())
        variables = (*problem.variables(), *machine.limits(), ("threads", 1))
        spaces = spaces_for(self._space, problem, machine.isa, variables, (strategy,))
        self._feasible = FeasibleSet.of(spaces)
        self._binder = Binder((load_strategy(strategy),), problem, variables, 1)
        self._compiler, self._processor = CpuCompiler(), processor
        self.problem = problem

    def candidates(self, drawn: int, seed: int) -> list[Candidate]:
        """Returns the configurations that a search begins with, and ``drawn`` others, each one once."""
        first = first_rows(self._space, self._feasible)
        others = np.random.default_rng(seed).permutation(self._feasible.rows)[:drawn]
        return [self._feasible.candidate(int(row)) for row in dict.fromkeys((*first, *others.tolist()))]

    def build(self, candidate: Candidate, folder: Path) -> dict[str, float]:
        """Writes the object code of a candidate to a folder; returns the processor seconds of each stage."""
        script, bind_s = _timed(lambda: self._binder.bind(candidate))
        artifact, lower_s = _timed(lambda: self._compiler.compile(self.problem, script))
        code = compiled_for(artifact.code.text, self._processor.name, self._processor.features)
        _, object_s = _timed(lambda: write_object(code, folder / "code.o"))
        return dict(zip(STAGES, (bind_s, lower_s, object_s), strict=True))


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    start_s = time.process_time()
    result = work()
    return result, time.process_time() - start_s


def _problems(options: argparse.Namespace) -> Iterator[Problem]:
    for shape in options.shapes:
        for dtype in options.dtypes:
            for layout in options.layouts:
                yield Matmul(*parse_shape(shape), dtype=dtype, layout=layout, epilogue=options.epilogue)


def _row(builder: _Builder, candidate: Candidate, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        builder.build(candidate, Path(folder))  # the first also loads dialects and compiles the template
        built = [builder.build(candidate, Path(folder)) for _ in range(rounds)]
    least = min(built, key=lambda stages: sum(stages.values()))
    point = f"{builder.problem.key} {candidate.text}"
    return {"point": point, "processor_s": sum(least.values()), "stages": least}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shapes", nargs="*", default=SHAPES, help="MxNxK ...")
    parser.add_argument("--cpu", default="sapphirerapids", choices=PROCESSORS)
    parser.add_argument("--strategy", default="matmul_cpu_amx")
    parser.add_argument("--dtypes", nargs="+", default=("bf16", "i8"))
    parser.add_argument("--layouts", nargs="+", default=LAYOUTS, choices=LAYOUTS)
    parser.add_argument("--epilogue", default="none")
    parser.add_argument("--drawn", type=int, default=0, help="random configurations of each problem")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
