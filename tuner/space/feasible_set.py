"""The feasible set: the configurations that meet all constraints, each with an index (row).

Also finds the row whose configuration is nearest to a candidate, for example to one of another problem.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tuner.core.candidate import Candidate, Value
from tuner.core.errors import UsageError, unknown_strategy, unknown_value
from tuner.space import enumeration
from tuner.space.empty_spaces import EmptySpace
from tuner.space.enumeration import ROWS_LIMIT, SAMPLE_ROWS, Indices, RowKeys, Rows, rows_of
from tuner.space.expressions import Expression
from tuner.space.search_space import Knob, SearchSpace

# The configurations that satisfy every constraint, of one or several strategies, numbered as rows.
# Rows are numbered strategy after strategy, in the order given; within a strategy in the order of the choices
# in the file, the last knob varying fastest. Of a strategy with too many configurations, the rows are a fixed
# sample (``tuner.space.enumeration``).

EXACT_LIMIT = 5_000_000  # combinations up to which rejections are counted exactly
SAMPLE_SIZE = 200_000  # combinations visited to estimate the counts of a larger set
SAMPLE_SEED = 20_260_101  # fixed: equal spaces give equal estimates


@dataclass(frozen=True, eq=False)
class Matrix:
    """The configurations of a feasible set as integer codes, a column per knob, for models of samplers."""

    rows: npt.NDArray[np.signedinteger]  # (rows, columns), column-major; -1: the strategy has no such knob
    names: tuple[str, ...]  # "strategy", then every knob in order of occurrence
    is_ordinal: tuple[bool, ...]  # per column: neighbouring integers are similar values
    levels: tuple[int, ...]  # per column: integers are 0 .. levels - 1
    values: tuple[tuple[Value, ...], ...]  # per column: what the integers stand for


@dataclass(frozen=True, eq=False)
class FeasibleSet:
    """The configurations of one or several strategies, all allowed ones or a sample, by row."""

    spaces: tuple[SearchSpace, ...]
    sets: tuple[Rows, ...]  # per strategy

    @classmethod
    def of(cls, spaces: tuple[SearchSpace, ...], always: tuple[Candidate, ...] = ()) -> "FeasibleSet":
        """Returns the feasible set of the search spaces: all configurations that satisfy the constraints.

        For a space that is too large: a fixed sample, and the allowed candidates of ``always``. Raises
        UsageError for an empty set, naming the constraint, for no spaces, and if sampling finds none.
        """
        sets: list[Rows] = []
        for space in spaces:
            limit = max(SAMPLE_ROWS, ROWS_LIMIT - sum(len(rows.index) for rows in sets))
            sets.append(rows_of(space, limit, _indices(space, always)))
        feasible = cls(spaces, tuple(sets))
        if feasible.rows == 0:
            reasons = [EmptySpace.of(space).error for space in spaces]
            raise UsageError("; ".join(reasons) or "no strategy is given")
        return feasible

    @property
    def index(self) -> tuple[Indices, ...]:
        """Returns for each strategy an array (configurations, knobs) of indices into ``Knob.choices``."""
        return tuple(rows.index for rows in self.sets)

    @property
    def rows(self) -> int:
        """Returns the number of configurations in the set, over all strategies."""
        return sum(len(rows.index) for rows in self.sets)

    @property
    def total(self) -> int:
        """Returns the number of allowed configurations: ``rows``, or an estimate if the set is a sample."""
        return sum(rows.total for rows in self.sets)

    @property
    def is_sample(self) -> bool:
        """Returns whether the set holds a sample of the allowed configurations, as there are too many."""
        return any(rows.is_sample for rows in self.sets)

    def empty(self, machine: str = "") -> tuple[str, ...]:
        """Returns a line per strategy without a configuration: its constraint, or what the hardware lacks.

        ``machine``: its name in the lines, such as "znver4"; "": "this processor" or "this GPU".
        """
        pairs = zip(self.spaces, self.sets, strict=True)
        return tuple(EmptySpace.of(space).note(machine) for space, rows in pairs if not len(rows.index))

    @property
    def cartesian(self) -> int:
        """Returns the number of combinations of choices, allowed or not, over all strategies."""
        return sum(space.cartesian for space in self.spaces)

    @property
    def is_estimate(self) -> bool:
        """Returns whether the counts of ``rejected`` are estimated from a sample."""
        return self.is_sample or any(space.cartesian > EXACT_LIMIT for space in self.spaces)

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        return np.cumsum(list(map(len, self.index)))

    def candidate(self, row: int) -> Candidate:
        """Returns the configuration with index ``row``. Raises IndexError outside of ``0 .. rows - 1``."""
        if not 0 <= row < self.rows:
            raise IndexError(f"row {row} of {self.rows}")
        strategy = int(np.searchsorted(self._ends, row, side="right"))
        space = self.spaces[strategy]
        index = self.index[strategy]
        picks = index[row - (int(self._ends[strategy]) - len(index))]
        values = {knob.name: knob.choices[int(pick)] for knob, pick in zip(space.knobs, picks, strict=True)}
        return Candidate.of(space.strategy, values)

    def row_of(self, candidate: Candidate) -> int | None:
        """Returns the index of a candidate in the set; None if not in the set. Inverse of ``candidate``."""
        for space, index, end in zip(self.spaces, self.index, self._ends, strict=True):
            if space.contains(candidate):
                row = _find(space, index, dict(candidate.choices))
                if row is None:
                    return None
                return int(end) - len(index) + row
        return None

    @cached_property
    def is_preferred(self) -> npt.NDArray[np.bool_]:
        """Returns, per configuration, whether it meets all preferences; those that do not are tried last."""
        pairs = zip(self.spaces, self._broken, strict=True)
        return np.concatenate([broken == len(space.preferences) for space, broken in pairs])

    @property
    def first_preferred(self) -> Candidate:
        """Returns the first configuration that meets all preferences; if none does, the first of the set."""
        return self.candidate(int(self.is_preferred.argmax()))

    @cached_property
    def _broken(self) -> tuple[npt.NDArray[np.intp], ...]:
        pairs = zip(self.spaces, self.index, strict=True)
        return tuple(enumeration.first_broken_preference(space, index) for space, index in pairs)

    def part(self, is_in: npt.NDArray[np.bool_]) -> "FeasibleSet":
        """Returns the set of the configurations for which ``is_in``, one truth value per row, is True.

        Their indices count anew, in the same order.
        """
        if is_in.all():
            return self
        index = [rows.index[is_in[part]] for rows, part in zip(self.sets, self._parts(), strict=True)]
        return FeasibleSet(self.spaces, tuple(Rows(rows, len(rows), self.is_sample) for rows in index))

    def violated(self, candidate: Candidate) -> Expression | None:
        """Returns the first constraint that a candidate violates; None if it violates none.

        Raises UsageError for an unknown strategy or knob, a missing knob, or a value that is not a choice.
        """
        return self._space_of(candidate).violated(candidate)

    def demoted_by(self, candidate: Candidate) -> Expression | None:
        """Returns the first preference that a candidate breaks; None if it breaks none.

        Raises UsageError for an unknown strategy or knob, a missing knob, or a value that is not a choice.
        """
        return self._space_of(candidate).demoted_by(candidate)

    def _space_of(self, candidate: Candidate) -> SearchSpace:
        missing = self.missing(candidate)
        if missing:
            raise UsageError(f"candidate {candidate.text}: missing knobs: {', '.join(missing)}")
        return self._space_named(candidate)

    def missing(self, candidate: Candidate) -> tuple[str, ...]:
        """Returns the knobs of the strategy for which a partial candidate has no value.

        Raises UsageError for an unknown strategy, knob or value.
        """
        values = dict(candidate.choices)
        return tuple(name for name in self._space_named(candidate).names if name not in values)

    def count_of(self, candidate: Candidate) -> int:
        """Returns how many configurations of the set (or sample) have the values of a partial candidate.

        Raises UsageError for an unknown strategy, knob or value.
        """
        space = self._space_named(candidate)
        index = self.index[self.spaces.index(space)]
        is_match = np.ones(len(index), bool)
        for name, value in candidate.choices:
            knob = space.names.index(name)
            is_match &= index[:, knob] == space.knobs[knob].choices.index(value)
        return int(np.count_nonzero(is_match))

    def _space_named(self, candidate: Candidate) -> SearchSpace:
        space = next((space for space in self.spaces if space.strategy == candidate.strategy), None)
        if space is None:
            raise unknown_strategy("strategy", candidate.strategy, [known.strategy for known in self.spaces])
        knobs = {knob.name: knob for knob in space.knobs}
        for name, value in candidate.choices:
            if name not in knobs:
                raise unknown_value(f"knob of {space.strategy}", name, knobs)
            if value not in knobs[name].choices:
                allowed = ", ".join(map(str, knobs[name].choices))
                raise UsageError(f"{space.strategy}: {name}: found {value}, allowed {allowed}")
        return space

    def rejected(self) -> dict[str, int]:
        """Returns text of a constraint -> number of combinations that it is the first to reject.

        The numbers are estimates if ``is_estimate``.
        """
        counts: dict[str, int] = {}
        for space, rows in zip(self.spaces, self.sets, strict=True):
            if space.cartesian <= EXACT_LIMIT:
                seen = enumeration.first_violations(space, enumeration.cartesian_blocks(space)).tolist()
            else:
                drawn = enumeration.cartesian_sample(space, SAMPLE_SIZE, np.random.default_rng(SAMPLE_SEED))
                seen = enumeration.first_violations(space, iter((drawn,))).tolist()
                share = (space.cartesian - rows.total) / max(1, sum(seen))
                seen = [round(share * count) for count in seen]
            for constraint, count in zip(space.constraints, seen, strict=True):
                counts[constraint.text] = counts.get(constraint.text, 0) + count
        return counts

    def demoted(self) -> dict[str, int]:
        """Returns text of a preference -> number of configurations that break it as their first one."""
        counts: dict[str, int] = {}
        for space, broken in zip(self.spaces, self._broken, strict=True):
            for index, preference in enumerate(space.preferences):
                count = int(np.count_nonzero(broken == index))
                counts[preference.text] = counts.get(preference.text, 0) + count
        return counts

    def matrix(self) -> Matrix:
        """Returns the set as integer codes: the strategy's index, then the rank of each knob's value.

        The rank is -1 where the strategy has no knob of that name.
        """
        values_of: dict[str, set[Value]] = {}
        for space in self.spaces:
            for knob in space.knobs:
                values_of.setdefault(knob.name, set()).update(knob.choices)
        # over all strategies: integers in ascending order, then texts
        levels = {name: sorted(values_of[name], key=lambda v: (isinstance(v, str), v)) for name in values_of}
        is_ordinal = (False, *(all(isinstance(v, int) for v in values) for values in levels.values()))
        cardinality = (len(self.spaces), *map(len, levels.values()))
        dtype = np.int16 if max(cardinality) < 2**15 else np.int32
        columns = np.full((len(cardinality), self.rows), -1, dtype)
        columns[0] = np.repeat(np.arange(len(self.spaces), dtype=dtype), list(map(len, self.index)))
        for column, (name, values) in zip(columns[1:], levels.items(), strict=True):
            for space, index, part in zip(self.spaces, self.index, self._parts(), strict=True):
                if name in space.names:
                    knob_index = space.names.index(name)
                    choices = space.knobs[knob_index].choices
                    codes = np.array(list(map(values.index, choices)), np.int32)
                    column[part] = codes[index[:, knob_index]]
        stands_for = (tuple(space.strategy for space in self.spaces), *map(tuple, levels.values()))
        return Matrix(columns.T, ("strategy", *levels), is_ordinal, cardinality, stands_for)

    def _parts(self) -> Iterator[slice]:
        for index, end in zip(self.index, self._ends, strict=True):
            yield slice(int(end) - len(index), int(end))


def _find(space: SearchSpace, index: Indices, values: dict[str, Value]) -> int | None:
    low = 0
    high = len(index)
    for knob_index, knob in enumerate(space.knobs):
        pick = knob.choices.index(values[knob.name])
        column = index[:, knob_index]  # bisect, not searchsorted: that would copy a column whose type differs
        low, high = bisect_left(column, pick, low, high), bisect_right(column, pick, low, high)
    if low < high:
        return low
    return None


def _indices(space: SearchSpace, candidates: tuple[Candidate, ...]) -> Indices:
    allowed = [
        candidate
        for candidate in candidates
        if space.contains(candidate) and space.violated(candidate) is None
    ]
    rows = []
    for candidate in allowed:
        values = dict(candidate.choices)
        rows.append([knob.choices.index(values[knob.name]) for knob in space.knobs])
    return np.array(rows, RowKeys(space).dtype).reshape(len(allowed), len(space.knobs))


def nearest_row(candidate: Candidate, feasible: FeasibleSet) -> int | None:
    """Returns the row of a candidate in a feasible set, else that of the configuration nearest to it.

    The distance is the sum of ``steps_from`` over the knobs; among equally near configurations the first
    counts. If the candidate is not in the set, a configuration that breaks a preference is returned only if
    all of the strategy's configurations do. None if the candidate's strategy has no configuration.
    """
    row = feasible.row_of(candidate)
    if row is not None:
        return row
    values = dict(candidate.choices)
    end = 0
    for space, index in zip(feasible.spaces, feasible.index, strict=True):
        end += len(index)
        if space.strategy == candidate.strategy and len(index):
            steps = np.zeros(len(index), np.float32)
            for knob_index, knob in enumerate(space.knobs):
                if knob.name in values:
                    steps += steps_from(values[knob.name], knob)[index[:, knob_index]]
            is_preferred = feasible.is_preferred[end - len(index) : end]
            rows = np.flatnonzero(is_preferred) if is_preferred.any() else np.arange(len(index))
            return end - len(index) + int(rows[np.argmin(steps[rows])])
    return None


def steps_from(value: Value, knob: Knob) -> npt.NDArray[np.float32]:
    """Returns the distance in steps from ``value`` to each choice of a knob.

    Numbers differ by their ranks: a number between two choices has a rank between theirs, by its logarithm,
    a number outside has that of the nearest choice. Texts are 0 steps apart if equal, else 1.
    """
    if knob.is_text or isinstance(value, str):
        return np.array([choice != value for choice in knob.choices], np.float32)
    numbers = np.array(list(map(int, knob.choices)), np.float64)
    ordered = np.sort(numbers)
    ranks = np.searchsorted(ordered, numbers)
    # sizes compare by their ratio: 192 is about as far from 128 as from 256
    rank = np.interp(_scale(np.float64(value)), _scale(ordered), np.arange(len(ordered)))
    steps: npt.NDArray[np.float32] = np.abs(ranks - rank).astype(np.float32)
    return steps


def _scale(numbers: npt.NDArray[np.float64] | np.float64) -> npt.NDArray[np.float64]:
    scaled: npt.NDArray[np.float64] = np.sign(numbers) * np.log2(1 + np.abs(numbers))
    return scaled
