"""Shipped results: dispatch rules per class of processor, which choose a configuration without a search.

A file, ``tuner/pretuned/zen5_f32_1.yaml``, is a dispatch rule of one class of processor, one type and one
number of threads: some configurations, and their times on some 30 problems. ``benchmarks.pretune`` writes
the files of the machine that it runs on.
"""

import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tuner.analysis.portfolio import held_out_choices, ranked_columns
from tuner.core.candidate import Candidate
from tuner.core.dtypes import CPU_DTYPES
from tuner.core.errors import UsageError
from tuner.core.instruction_sets import TILE_SETS
from tuner.core.interfaces import Script
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.problem_classes import MatmulProblem
from tuner.core.roofline import SHIPPED, Roofline, peak_set
from tuner.space.scripts.choice import first_configuration
from tuner.tuning.rule import DispatchRule, ProblemSpaces, parse_rule

FOLDER = Path(__file__).parent.parent / "pretuned"
SUFFIX = ".yaml"
MEASURED_LAYOUT = "nn"  # of the problems in the files
THREADS = (1, 2)  # that files are for; more threads take the last one's


@dataclass(frozen=True)
class ProcessorClass:
    """A class of processors with one microarchitecture, on which the same kernels are fast."""

    name: str  # in names of files
    isa: str
    pattern: str  # of ``Machine.name``, also of a processor that is only described: "znver5 (described, ...)"
    has_tiles: bool = False  # AMX


CLASSES = (
    ProcessorClass("zen5", "avx512", r"AMD .*\(family 26 model|znver5 \("),
    ProcessorClass("zen4", "avx512", r"AMD .*\(family 25 model|znver4 \("),
    ProcessorClass("zen3", "avx2", r"AMD (?!.* as ).*\(family 25 model|znver3 \("),
    ProcessorClass(
        "xeon_amx", "avx512", r".*Xeon.*\(family 6 model|(sapphire|granite)rapids \(", has_tiles=True
    ),
    # with AMX that the operating system or the hypervisor hides
    ProcessorClass("xeon", "avx512", r".*Xeon.*\(family 6 model \d+, avx512 bf16"),
    # any with AVX2, also one with more that is limited to it: its file serves the classes that have none
    ProcessorClass("avx2", "avx2", ""),
)


def class_of(machine: Machine) -> str:
    """Returns the name of a processor's class, "zen5"; if it has none, ``Machine.isa``, such as "avx512"."""
    for processors in CLASSES:
        is_alike = (processors.isa, processors.has_tiles) == (machine.isa, machine.has_amx_bf16)
        if is_alike and re.match(processors.pattern, machine.name):
            return processors.name
    return machine.isa


@dataclass(frozen=True)
class ShippedRule:
    """A shipped rule file that serves a machine, of the machine's class of processor or of a similar one."""

    rule: DispatchRule
    processors: str  # the class of the machine that it was measured on: "zen5"
    is_own: bool  # of the class of the machine that it serves, and its number of threads


def shipped_rule(machine: Machine, dtype: str, threads: int) -> ShippedRule | None:
    """Returns the rule of a machine's class of processor, else of the nearest class of its instruction set.

    For more threads than any shipped file has, the rule with the most threads. None without such a file, and
    if the machine multiplies the type by AMX and only classes without AMX have a file: their configurations
    are some five times slower.
    """
    own = class_of(machine)
    measured = min(threads, THREADS[-1])
    for name in _classes_like(machine, dtype):
        rule = rule_of_class(name, dtype, measured)
        if rule is not None:
            return ShippedRule(rule, name, (name, measured) == (own, threads))
    return None


def _classes_like(machine: Machine, dtype: str) -> list[str]:
    """Returns the names of the classes of processors whose file may serve a machine, in order of preference.

    First the machine's own class, then classes that have AMX tiles as the machine has, then the others.
    """
    own = class_of(machine)
    needs_tiles = peak_set(dtype, machine) in TILE_SETS
    alike = [
        processors
        for processors in CLASSES
        if processors.isa == machine.isa and processors.has_tiles >= needs_tiles
    ]
    alike.sort(key=lambda processors: (processors.name != own, processors.has_tiles != machine.has_amx_bf16))
    return [processors.name for processors in alike]


def rule_of_class(name: str, dtype: str, threads: int) -> DispatchRule | None:
    """Returns the shipped rule of a class of processors, a dtype and a number of threads.

    None without a file.
    """
    return _rule(FOLDER / f"{name}_{dtype}_{threads}{SUFFIX}")


@cache
def _rule(file: Path) -> DispatchRule | None:
    if file.is_file():
        return parse_rule(file.read_text(), file.name)
    return None


def shipped_roofline(machine: Machine, dtype: str, threads: int) -> Roofline | None:
    """Returns the shipped roofline of machines with exactly this name and threads; None if there is none."""
    shipped = shipped_rule(machine, dtype, threads)
    if shipped is None or not machine.is_named(shipped.rule.machine) or shipped.rule.threads != threads:
        return None
    roofline = shipped.rule.roofline
    return roofline and replace(roofline, flop_source=SHIPPED)


@dataclass(frozen=True)
class ShippedPicks:
    """The configurations that a shipped rule chooses for a problem, the first to try first."""

    candidates: tuple[Candidate, ...]  # as they are on the problem, each once
    shipped: ShippedRule

    @property
    def origin(self) -> str:
        """Returns a text that says where the choice comes from: "shipped results of zen5 (24 shapes)"."""
        rule = self.shipped.rule
        return f"shipped results of {self.shipped.processors} ({len(rule.problems)} shapes)"


def shipped_picks(space: ProblemSpaces, problem: Problem) -> ShippedPicks | None:
    """Returns the configurations that the rule for the machine of ``space`` chooses for a problem.

    None if there is no rule, none of its configurations applies, or the problem is not a MatmulProblem, nor
    a fusion that is scheduled as one.
    """
    problem = problem.scheduled_as
    if not isinstance(problem, MatmulProblem):
        return None
    shipped = shipped_rule(space.machine, problem.dtype, space.threads)
    if shipped is None:
        return None
    return picks_of(shipped, space, problem)


def initial_configuration(
    problem: Problem, machine: Machine, skipped: int = 0
) -> tuple[Candidate, Script] | None:
    """Returns (configuration, its script for one thread) for a fusion that was not tuned.

    The first configuration of a matmul is the one that the shipped results choose; then come those of
    ``first_configuration``. ``skipped``: number of configurations to skip in this order, because they did not
    compile in time. None if no strategy supports the problem on the machine, or no configuration is left.
    """
    space = ProblemSpaces.shipped(machine, threads=1)
    picks = shipped_picks(space, problem)
    if picks is None:
        return first_configuration(problem, machine, skipped)
    if skipped:
        return first_configuration(problem, machine, skipped - 1)
    return picks.candidates[0], space.script(problem, picks.candidates[0])


def picks_of(shipped: ShippedRule, space: ProblemSpaces, problem: Problem) -> ShippedPicks | None:
    """Returns the configurations that one rule chooses for a problem; None if it chooses none.

    That is: no strategy supports the problem, no configuration of the rule applies, or, in a layout that was
    not measured, all that apply break a preference.
    """
    try:
        projected = space.projected(problem, shipped.rule.columns)
    except UsageError:
        return None  # no strategy is for the problem
    columns = ranked_columns(shipped.rule.matrix(), projected.new_problem).columns
    if problem.layout != MEASURED_LAYOUT:  # no time speaks for what breaks a preference there
        columns = tuple(sorted(columns, key=projected.is_demoted.__getitem__))
        if columns and projected.is_demoted[columns[0]]:
            return None
    order = (projected.candidates[column] for column in columns)
    candidates = tuple(dict.fromkeys(candidate for candidate in order if candidate is not None))
    if candidates:
        return ShippedPicks(candidates, shipped)
    return None


def held_out_speeds(rule: DispatchRule) -> tuple[float, ...]:
    """Returns, sorted, the speed on each problem of what the rule would choose without that problem's times.

    Speeds are relative to the fastest known configuration, 0 to 1. Problems without either time are left out.
    """
    matrix = rule.matrix()
    speeds = []
    rows = {tuned.problem: row for row, tuned in enumerate(rule.problems)}
    for choice in held_out_choices(matrix):
        row = rows[choice.problem]
        time_s = matrix.times_s[row][choice.column]
        best_s = rule.problems[row].best_s
        if time_s is not None and best_s is not None:
            speeds.append(min(1.0, best_s / time_s))
    return tuple(sorted(speeds))


def shipped_text(machine: Machine) -> str:
    """Returns a sentence on the shipped results that are used for ``machine``, for ``tuner targets``."""
    own = class_of(machine)
    files = []
    peak = ""
    for dtype in CPU_DTYPES:
        for threads in THREADS:
            shipped = shipped_rule(machine, dtype, threads)
            if shipped is not None and shipped.is_own:
                files.append(f"{dtype} x{threads}")
                roofline = shipped.rule.roofline
                if roofline is not None and not peak:
                    rates = f"{roofline.flop_per_s / 1e9:.0f} GFLOP/s, {roofline.bytes_per_s / 1e9:.1f} GB/s"
                    peak = f"; roofline there, {files[-1]}: {rates}"
    if files:
        return f"shipped results of {own}, this processor's class: {', '.join(files)}{peak}"
    nearest = shipped_rule(machine, "f32", 1)
    if nearest is None:
        return f"no shipped results for {own}: a cost model chooses what is tried first"
    return (
        f"no shipped results for this processor ({own}): the nearest class is {nearest.processors}, expected "
        f"{speed_text(nearest.rule)} there, unknown here; used only after a comparison with the baseline"
    )


def speed_text(rule: DispatchRule) -> str:
    """Returns the range of a rule's held-out speeds.

    For example "0.91 .. 1.00 of the fastest known, on 9 shapes held out".
    """
    speeds = held_out_speeds(rule)
    if not speeds:
        return "an unknown part of the fastest known"
    return f"{speeds[0]:.2f} .. {speeds[-1]:.2f} of the fastest known, on {len(speeds)} shapes held out"
