"""Formats values as short text for people."""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence

from tuner.core.candidate import Value
from tuner.core.group_facts import text_hash
from tuner.core.printable import printable
from tuner.core.problem import Problem
from tuner.core.record import Measurement
from tuner.core.runs import SEED, SPACE_FILE, WARM_START, FirstPoint, StoredTrial
from tuner.core.time_text import seconds_text

LINE_LIMIT = 2000  # characters of a message
SUMMARY_COLUMNS, SUMMARY_INDENT = 80, 10  # width of a summary; indent of its text, right of the lines' names
COMMAND = re.compile(r"\btuner [a-z]")  # a command to type, unlike the version text "tuner 0.1.0"


def bound_text(measurement: Measurement) -> str:
    """Returns the lower bound of an early-stopped measurement's time, its fastest sample: '> 12 ms'."""
    return f"> {seconds_text(measurement.least_s)}"


def early_stopped_text(measurement: Measurement) -> str:
    """Returns an early-stopped measurement's bound and samples: '> 12 ms, early-stopped after 3 samples'."""
    return (
        f"{bound_text(measurement)}, early-stopped after {count_text(len(measurement.samples_s), 'sample')}"
    )


def trial_time_text(trial: StoredTrial) -> str:
    """Returns the time that counts for a trial as text, such as '1.2 ms', or '-' for an untimed trial.

    For an early-stopped trial it is the lower bound with the number of samples.
    """
    if trial.early_stopped is not None:
        return early_stopped_text(trial.early_stopped)
    return "-" if trial.best_s is None else seconds_text(trial.best_s)


def speed_text(gflop_per_s: float | None) -> str:
    """Returns a speed with its unit; '-' for None (not timed)."""
    return "-" if gflop_per_s is None else f"{gflop_per_s:.4g} GFLOP/s"


def problem_text(problem: Problem) -> str:
    """Returns a problem without the parts that have default values: 'matmul 64x64x64 f16 -> f16 nt'.

    A group of operations is named by the hash of its text: 'rows 128x256x1 f32 group 0a1b2c3d4e5f'.
    """
    options = [problem.operation, problem.shape, problem.dtype]
    options += [f"-> {problem.output}"] * bool(problem.output)
    options += [given for given in (problem.layout, problem.epilogue) if given not in ("nn", "none")]
    options += [f"group {text_hash(problem.group)}"] * bool(problem.group)
    return " ".join((*options, *problem.memory_options))


def knobs_text(knobs: Sequence[tuple[str, Value]]) -> str:
    """Returns the (name, value) pairs of knobs as one line: 'tile_m=4 tile_n=16'."""
    return " ".join(f"{name}={value}" for name, value in knobs)


def knobs_line(knobs: Sequence[tuple[str, Value]]) -> str:
    """Returns the line 'knobs     tile_m=4 tile_n=16' of a summary; 'none' in place of no knobs."""
    return f"knobs     {knobs_text(knobs) or 'none'}"


def one_line(text: str) -> str:
    """Returns a text as one line, control characters escaped, cut after LINE_LIMIT (2000) characters."""
    plain = printable(" ".join(text.split()))
    return plain if len(plain) <= LINE_LIMIT else f"{plain[:LINE_LIMIT]}..."


def count_text(count: int, noun: str) -> str:
    """Returns a count with its noun, in the plural with an s: '1 trial', '2 trials'."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


WORDS = {SPACE_FILE: "{} of the space file", SEED: "{} seed configurations"}


def first_points_text(points: tuple[FirstPoint, ...]) -> str:
    """Returns the origins of the first configurations of a run, which were tried before the sampler's.

    For example 'warm start from 8x8x8 (run 3): 2 points, interleaved with 4 seed configurations'; '' for ().
    """
    counts = Counter(point.origin for point in points)
    others = ", then ".join(text.format(counts[origin]) for origin, text in WORDS.items() if counts[origin])
    sources = tuple(dict.fromkeys(point.source for point in points if point.origin == WARM_START))
    if not sources:
        return others
    warm = f"warm start from {', '.join(sources)}: {count_text(counts[WARM_START], 'point')}"
    return f"{warm}, interleaved with {others}" if others else warm


def wrapped(lines: Iterable[str], columns: int | None = SUMMARY_COLUMNS) -> list[str]:
    """Returns lines of a summary wrapped at ``columns`` characters (None: not at all).

    Continued lines are indented by SUMMARY_INDENT (10). A line with a command to type is not wrapped, and no
    word is broken. Empty lines are left out, unless ``columns`` is None. Control characters are escaped.
    """
    lines = map(printable, lines)
    if columns is None:
        return [*lines]
    found: list[str] = []
    for line in lines:
        if COMMAND.search(line):
            found.append(line)
        else:
            indent = " " * SUMMARY_INDENT
            found += textwrap.wrap(
                line,
                columns,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
    return found
