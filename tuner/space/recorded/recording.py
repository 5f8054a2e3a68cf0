"""A recorded search space: the file, its configurations and their outcomes.

``open_recorded`` reads any JSON file. ``feasible_set_of`` makes a feasible set of the listed configurations
(``Points``). ``RecordedSpace`` joins that set, the outcomes and the machine.
"""

import gzip
import hashlib
import json
import math
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from tuner.core.candidate import Value
from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.records import Measurement, Verdict
from tuner.core.runs import Baseline, Compiler
from tuner.core.serialization import LARGEST, printable, quoted
from tuner.core.text_files import unreadable
from tuner.space.enumeration import Rows
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import CHOICES_LIMIT, Knob, SearchSpace

BYTES_LIMIT = 1 << 30  # uncompressed
GZIP_MAGIC = b"\x1f\x8b"
LONE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # or half of a pair, which UTF-8 cannot encode alone
SUFFIXES = (".gz", ".json", ".t4")
Raw = int | float | bool | str  # a knob's value in JSON
UNLIKE = 10.0  # factor: no mean, median or minimum of samples differs from all samples by so much
UNTIMED = Failure(Stage.MEASURE, "recorded without a time")
LONGEST = 1e20  # in any unit
SMALLEST = 1e-12  # in any unit: below the resolution of clocks; keeps speeds finite


@dataclass(frozen=True)
class RecordedFile:
    """A file of recorded tuning results: its name, its hash and its JSON document."""

    name: str  # without folder and suffixes
    sha256: str  # of the bytes on disk
    document: dict[str, Any]


def open_recorded(path: Path) -> RecordedFile:
    """Reads a JSON file of recorded results, compressed by gzip or not; does not check the format further.

    Raises UsageError for a file that cannot be read, is not a JSON object, or has more than 1 GiB.
    """
    try:
        with path.open("rb") as file:
            content = _limited(path, file.read(BYTES_LIMIT + 1))  # a device may be endless
    except OSError as error:
        raise unreadable(path, error, "recorded results") from None
    document = _parsed(path, _unpacked(path, content))
    if not isinstance(document, dict):
        raise UsageError(f"{path}: is JSON but no object; allowed is T4")
    return RecordedFile(name_of(path), hashlib.sha256(content).hexdigest(), document)


def name_of(path: Path) -> str:
    """Returns the name of a recording: the file's name without folder, ``.gz``, ``.json`` and ``.t4``."""
    name = path.name
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return printable(" ".join(name.split()))


def printable_text(text: str) -> str:
    """Returns a text of several lines, fit for terminals: unprintable characters but newlines are escaped."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def _unpacked(path: Path, content: bytes) -> bytes:
    if not content.startswith(GZIP_MAGIC):
        return content
    try:
        with gzip.open(path) as file:
            return _limited(path, file.read(BYTES_LIMIT + 1))
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path}: damaged gzip ({error})") from None


def _limited(path: Path, content: bytes) -> bytes:
    if len(content) > BYTES_LIMIT:
        raise UsageError(f"{path}: found more than {BYTES_LIMIT} bytes, allowed {BYTES_LIMIT}")
    return content


def _parsed(path: Path, content: bytes) -> object:
    try:
        text = content.decode()
        document = json.loads(text)
        if LONE_SURROGATE.search(text):
            json.dumps(document, ensure_ascii=False).encode()
        return document
    except UnicodeEncodeError:
        raise UsageError(f"{path}: half of a surrogate pair, which UTF-8 cannot write") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start} is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: is not JSON ({error}), allowed T4 or a Kernel Tuner cache") from None


@dataclass(frozen=True)
class Points:
    """The configurations of one strategy that a file lists, in the file's order; one may be listed twice."""

    strategy: str
    names: tuple[str, ...]  # of the knobs
    listed: tuple[tuple[Raw, ...], ...]  # per knob, the choices in the order the file gives; () for none
    values: list[tuple[Raw, ...]]  # per point, one per knob
    entries: list[int]  # per point, the index among the file's entries that were tried


def feasible_set_of(strategies: Sequence[Points]) -> tuple[FeasibleSet, tuple[int, ...]]:
    """Returns (the feasible set of all configurations, for each of its rows an entry of ``Points.entries``).

    If a configuration is listed twice, its last entry counts. A knob whose values are not all whole numbers
    has texts. Raises UsageError for unprintable names, for values that are neither finite numbers nor
    printable texts, and for more than CHOICES_LIMIT values of a knob.
    """
    spaces, rows, entries = zip(*map(_strategy, strategies), strict=True)
    return FeasibleSet(spaces, rows), tuple(np.concatenate(entries).tolist())


def _strategy(points: Points) -> tuple[SearchSpace, Rows, npt.NDArray[np.int64]]:
    for name in (points.strategy, *points.names):
        if not isinstance(name, str) or not name.isprintable() or not name:
            raise UsageError(f"strategy or knob: found {quoted(name)}, allowed a printable name")
    columns = list(zip(*points.values, strict=True)) if points.names else []
    knobs = []
    index = np.zeros((len(points.values), len(points.names)), np.uint32)
    for knob_index, (name, listed, column) in enumerate(
        zip(points.names, points.listed, columns, strict=True)
    ):
        raw = _distinct(name, listed, column)
        # a knob has integers where all values are whole numbers, else texts
        is_whole = all(not isinstance(value, str) and value == int(value) for value in raw)
        plain: dict[Raw, Value] = {value: int(value) if is_whole else str(value) for value in raw}
        knobs.append(Knob(name, tuple(dict.fromkeys(plain.values()))))
        ranks = {value: knobs[-1].choices.index(plain[value]) for value in raw}
        index[:, knob_index] = np.fromiter(map(ranks.__getitem__, column), np.uint32, len(column))
    order = np.lexsort(index.T[::-1]) if points.names else np.arange(len(index))
    index = index[order]
    is_last = np.append((index[1:] != index[:-1]).any(axis=1), True)
    space = SearchSpace(points.strategy, tuple(knobs))
    rows = Rows(index[is_last], int(is_last.sum()), is_sample=False)
    return space, rows, np.array(points.entries, np.int64)[order][is_last]


def _distinct(name: str, listed: tuple[Raw, ...], column: Iterable[Raw]) -> tuple[Raw, ...]:
    try:
        met = set(column).difference(listed)
    except TypeError:
        raise UsageError(
            f"knob {name!r}: found a list or an object, allowed numbers and printable texts"
        ) from None
    for value in (*listed, *met):
        is_text = isinstance(value, str) and value.isprintable()
        if not is_text and not (isinstance(value, int | float) and abs(value) < LARGEST):
            raise UsageError(f"knob {name!r}: found {quoted(value)}, allowed numbers and printable texts")
    distinct = (*dict.fromkeys(listed), *sorted(met, key=lambda value: (isinstance(value, str), value)))
    if len(distinct) > CHOICES_LIMIT:
        raise UsageError(f"knob {name!r}: found {len(distinct)} different values, allowed {CHOICES_LIMIT}")
    return distinct


@dataclass(frozen=True, slots=True)
class RecordedTime:
    """The recorded time of a configuration that worked, with samples and verdict where there are any.

    Raises UsageError for a time that cannot be of the samples, as where their units differ.
    """

    time_s: float  # the recording's statistic: the median in this tuner's records
    samples_s: tuple[float, ...] = ()  # () where the recording keeps none
    measurement: Measurement | None = None  # of this tuner's records alone
    verdict: Verdict | None = None  # None: the recording has no verdict

    def __post_init__(self) -> None:
        if not self.samples_s:
            return
        least_s = min(self.samples_s)
        most_s = max(self.samples_s)
        if not least_s / UNLIKE < self.time_s < most_s * UNLIKE:
            raise UsageError(
                f"time: {self.time_s:g} s does not fit samples of {least_s:g} to {most_s:g} s: "
                "both need one unit"
            )


@dataclass(frozen=True, eq=False)
class RecordedSpace:
    """The configurations that a recording tried, as a feasible set, with their outcomes and the machine."""

    name: str  # of the file, without its suffixes
    sha256: str  # of the file
    feasible: FeasibleSet  # without configurations that the recording lists as forbidden
    outcomes: tuple[RecordedTime | Failure, ...]  # by row
    codes: tuple[int, ...]  # by row: equal numbers for equal machine code
    machine: Machine
    compiler: Compiler
    problem: Problem | None = None  # None: a problem of another tuner
    threads: int = 1
    baseline: Baseline | None = None  # the baseline of the runs
    constraints: tuple[str, ...] = ()  # constraints that rejected other points, where they are known
    forbidden: int = 0  # number of points that the recording lists as forbidden

    @property
    def rows(self) -> int:
        """Returns the number of different configurations that were tried."""
        return len(self.outcomes)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        return tuple(chain.from_iterable(space.knobs for space in self.feasible.spaces))

    @cached_property
    def times_s(self) -> npt.NDArray[np.float64]:
        """Returns the seconds of each configuration, in the order of ``feasible``; NaN for a failure."""
        return np.array(
            [outcome.time_s if isinstance(outcome, RecordedTime) else np.nan for outcome in self.outcomes]
        )


def is_time(value: object) -> TypeGuard[int | float]:
    """Returns whether a JSON value is a valid time in any unit: a number of at least 1e-12 and below 1e20."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return SMALLEST <= value < LONGEST


def samples_of(values: list[float], unit_s: float) -> tuple[float, ...]:
    """Returns times in seconds, from ``values`` in units of ``unit_s`` seconds; () if one is not valid."""
    try:
        # three passes in C: a file may hold millions
        are_times = (
            min(values, default=0) >= SMALLEST and max(values) < LONGEST and math.isfinite(sum(values))
        )
    except TypeError:
        return ()
    if are_times:
        return tuple([value * unit_s for value in values])
    return ()
