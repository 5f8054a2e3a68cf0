"""The configurations that a file lists, as rows of a feasible set."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.core.candidate import Value
from tuner.core.dataclass_json import LARGEST, quoted
from tuner.core.errors import UsageError
from tuner.space.feasible_set import FeasibleSet
from tuner.space.row_sample import Rows
from tuner.space.search_space import CHOICES_LIMIT, Knob, SearchSpace

Raw = int | float | bool | str  # a knob's value in JSON


@dataclass(frozen=True)
class Points:
    """The configurations of one strategy that a file lists, in its order; one may occur twice."""

    strategy: str
    names: tuple[str, ...]  # of the knobs
    listed: tuple[tuple[Raw, ...], ...]  # per knob, the choices in the order the file gives; () for none
    values: list[tuple[Raw, ...]]  # per point, one per knob
    entries: list[int]  # per point, the index of its entry in the file


def feasible_set_of(groups: Sequence[Points]) -> tuple[FeasibleSet, tuple[int, ...]]:
    """Returns (feasible set of all configurations, index of each configuration's entry in the file).

    The indices are in the order of the feasible set. Of equal configurations the last entry counts. Raises
    UsageError for a strategy or knob without a printable name, and for a value that no knob can have.
    """
    spaces, rows, entries = zip(*(_strategy(points) for points in groups), strict=True)
    return FeasibleSet(spaces, rows), tuple(np.concatenate(entries).tolist())


def _strategy(points: Points) -> tuple[SearchSpace, Rows, npt.NDArray[np.int64]]:
    for name in (points.strategy, *points.names):
        _require_name(name)
    columns = list(zip(*points.values, strict=True)) if points.names else []
    knobs = []
    index = np.zeros((len(points.values), len(points.names)), np.uint32)
    for place, (name, listed, column) in enumerate(zip(points.names, points.listed, columns, strict=True)):
        raw = _distinct(name, listed, column)
        plain = _plain(raw)
        knobs.append(Knob(name, tuple(dict.fromkeys(plain.values()))))
        ranks = {value: knobs[-1].choices.index(plain[value]) for value in raw}
        index[:, place] = np.fromiter(map(ranks.__getitem__, column), np.uint32, len(column))
    order = np.lexsort(index.T[::-1]) if points.names else np.arange(len(index))
    index = index[order]
    is_last = np.append((index[1:] != index[:-1]).any(axis=1), True)
    space = SearchSpace(points.strategy, tuple(knobs))
    rows = Rows(index[is_last], int(is_last.sum()), is_sample=False)
    return space, rows, np.array(points.entries, np.int64)[order][is_last]


def _require_name(name: object) -> None:
    if not isinstance(name, str) or not name.isprintable() or not name:
        raise UsageError(f"strategy or knob: found {quoted(name)}, allowed a printable name")


def _distinct(name: str, listed: tuple[Raw, ...], column: Iterable[Raw]) -> tuple[Raw, ...]:
    """Returns the choices of a knob: the listed ones, then other values that occur, in order."""
    try:
        met = set(column).difference(listed)
    except TypeError:
        found = "a list or an object"
        raise UsageError(f"knob {name!r}: found {found}, allowed numbers and printable texts") from None
    for value in (*listed, *met):
        if not _is_choice(value):
            raise UsageError(f"knob {name!r}: found {quoted(value)}, allowed numbers and printable texts")
    distinct = (*dict.fromkeys(listed), *sorted(met, key=lambda value: (isinstance(value, str), value)))
    if len(distinct) > CHOICES_LIMIT:
        raise UsageError(f"knob {name!r}: found {len(distinct)} different values, allowed {CHOICES_LIMIT}")
    return distinct


def _is_choice(value: object) -> bool:
    if isinstance(value, str):
        return value.isprintable()
    return isinstance(value, int | float) and abs(value) < LARGEST


def _plain(raw: tuple[Raw, ...]) -> dict[Raw, Value]:
    """Returns integers where all values are whole numbers, else texts: a knob has integers or texts."""
    if all(not isinstance(value, str) and value == int(value) for value in raw):
        return {value: int(value) for value in raw}
    return {value: str(value) for value in raw}
