"""Makes the rule files that come with tuner, ``tuner/pretuned/*.yaml``, for the class of this machine.

    python -m benchmarks.pretune --databases build/pretune

For each type and number of threads it tunes 31 problems as one campaign. The configurations that were best
for a problem, and 24 that serve many, are then timed on all problems, interleaved; the 12 that lose least are
the file: some 10 minutes each. A campaign that was interrupted goes on where it was: its database is kept in
the folder. No problem is one of a benchmark.

    python -m benchmarks.pretune --matrices benchmarks/results/many_shapes*.json

makes files of what ``benchmarks.many_shapes`` measured on other machines: f32, one thread, its 40 problems.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import tuner
from benchmarks.many_shapes.__main__ import matrix_of, read_document
from benchmarks.many_shapes.first_use_ratios import rule_of_cells
from benchmarks.many_shapes.timed_cells import Cells, timed_cells
from tuner.analysis.time_matrix import TimeMatrix
from tuner.core.candidate import Candidate
from tuner.core.machine import Machine
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.problem_text import parse_shape
from tuner.core.serialization import decode
from tuner.results.database import open_known
from tuner.results.portfolio import campaign_portfolio
from tuner.runtime.cpu.host import describe_machine
from tuner.targets.registry import real_backends
from tuner.tuning.pool import PoolProblem, projected_pool
from tuner.tuning.pretuned import FOLDER, SUFFIX, THREADS, class_of, speed_text
from tuner.tuning.rule import DispatchRule, ProblemSpaces, rule_text
from tuner.tuning.tuned_run import TunedCampaign

POOL, CONFIGURATIONS = 24, 12
BATCH = 5  # problems whose kernels are in memory together
TRIALS_OF_PROBLEM = 36  # on average
# Squares, few rows and large weights (decoding), layers, long and short sums, and ragged sizes
SHAPES = (
    *("48x48x48", "96x96x96", "160x160x160", "320x320x320", "640x640x640", "960x960x960"),
    *("1x1280x960", "1x3072x1792", "2x1536x896", "2x896x2560", "4x2560x1280"),
    # rows of B a power of two apart share sets of the caches
    *("2x2048x1536", "3x1024x4096", "12x1024x1536", "12x1152x640"),
    *("8x960x2560", "16x640x2560", "32x1920x640"),
    *("64x320x1280", "80x1600x480", "128x1792x448", "160x2304x576", "256x352x1408"),
    *("50x70x90", "100x37x210", "33x129x65", "197x590x190", "300x75x600"),
    *("1600x40x80", "784x160x320", "40x40x4000"),
)
DTYPES = ("f32", "bf16", "i8")


def main() -> None:
    """Writes the files that are asked for."""
    options = _arguments()
    for file in options.matrices:
        machine = decode(Machine, json.loads(file.read_text())["machine"], f"{file}: ")
        matrix, cells = _matrix(file, machine)
        rule = replace(rule_of_cells(matrix, cells, machine, CONFIGURATIONS), compiler="not recorded")
        _write(options.output, f"{class_of(machine)}_f32_1", rule)
    if options.matrices:
        return
    options.databases.mkdir(parents=True, exist_ok=True)
    for threads in options.threads:
        for dtype in options.dtypes:
            name = f"{class_of(describe_machine())}_{dtype}_{threads}"
            rule = _measured(options.databases / f"{name}.db", dtype, threads, options.trials)
            _write(options.output, name, rule)


def _write(folder: Path, name: str, rule: DispatchRule) -> None:
    (folder / f"{name}{SUFFIX}").write_text(rule_text(_rounded(rule)))
    print(f"{name}: {rule.regret}; nothing measured: {speed_text(rule)}", flush=True)


def _rounded(rule: DispatchRule) -> DispatchRule:
    """Returns the rule with four digits of each number: half the size."""
    problems = (
        replace(
            each,
            rounds_s=tuple(tuple(map(_digits, rounds)) for rounds in each.rounds_s),
            residuals=tuple(None if number is None else _digits(number) for number in each.residuals),
            baseline_s=None if each.baseline_s is None else _digits(each.baseline_s),
            best_s=None if each.best_s is None else _digits(each.best_s),
        )
        for each in rule.problems
    )
    return replace(rule, problems=tuple(problems))


def _digits(number: float) -> float:
    return float(f"{number:.4g}")


def _matrix(file: Path, machine: Machine) -> tuple[TimeMatrix, Cells]:
    pool, cells = read_document(file, machine)
    return matrix_of(pool, cells), cells


def _measured(database: Path, dtype: str, threads: int, trials: int) -> DispatchRule:
    if database.exists():
        campaign = tuner.resume_many(1, db=database, progress=True)
    else:
        problems = [Matmul(*parse_shape(shape), dtype=dtype) for shape in SHAPES]
        campaign = tuner.tune_many(
            problems,
            target="cpu",
            trials=trials * len(problems),
            count=_counts(problems),
            threads=threads,
            db=database,
            progress=True,
        )
    machine, columns = describe_machine(), _columns(database, campaign)
    space = ProblemSpaces.shipped(machine, threads)
    of_pool = tuple(PoolProblem(problem, 1, space.spaces(problem)) for problem in campaign.problems)
    pool = projected_pool(of_pool, columns, machine, threads)
    cells = timed_cells(pool, BATCH, threads)
    rule = rule_of_cells(matrix_of(pool, cells), cells, machine, CONFIGURATIONS, threads)
    rooflines = [run.run.roofline for run in campaign.runs if run.run.roofline is not None]
    return replace(rule, roofline=max(rooflines, key=lambda each: each.flop_per_s, default=None))


def _columns(database: Path, campaign: TunedCampaign) -> tuple[Candidate, ...]:
    """Returns configurations that serve many problems of the campaign, and the best one of each."""
    with open_known(database) as store:
        found = campaign_portfolio(campaign.campaign.id, POOL, real_backends(), store)
    best = (trial.record.candidate for trial in campaign.best if trial is not None)
    return tuple(dict.fromkeys((*found.columns, *best)))


def _counts(problems: list[Problem]) -> dict[Problem, int]:
    """Returns how often each problem occurs, such that all take a similar share of the total time."""
    most = max(problem.flop + problem.bytes for problem in problems)
    return {problem: max(1, round(most / (problem.flop + problem.bytes))) for problem in problems}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument("--threads", nargs="+", type=int, choices=THREADS, default=THREADS)
    parser.add_argument("--trials", type=int, default=TRIALS_OF_PROBLEM, help="of a problem, on average")
    parser.add_argument("--databases", type=Path, default=Path("build/pretune"), help="folder of databases")
    parser.add_argument("--matrices", nargs="+", type=Path, default=(), help="results of many_shapes")
    parser.add_argument("--output", type=Path, default=FOLDER)
    return parser.parse_args()


if __name__ == "__main__":
    main()
