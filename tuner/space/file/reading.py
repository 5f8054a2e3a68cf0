"""Reads a search-space file: checks it by a schema, merges it with the shipped file, makes search spaces.

``load_space_file`` gives a SpaceFile with the strategies; ``spaces_for`` makes their search spaces for one
problem and machine.
"""

import functools
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from tuner.core.candidate import Candidate, Value
from tuner.core.dtypes import INPUT_DTYPES
from tuner.core.epilogues import EPILOGUES
from tuner.core.errors import UsageError, unknown_strategy, unknown_value
from tuner.core.instruction_sets import ISAS as VECTOR_ISAS
from tuner.core.instruction_sets import NO_ISA
from tuner.core.machine import PTX
from tuner.core.problem import FUSION_OPERATIONS, LAYOUTS, OPERATIONS, SCALED, Problem
from tuner.core.serialization import Only, decode, whole
from tuner.core.text_files import read_text
from tuner.space.expressions import Expression, parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file import yaml
from tuner.space.file.entries import (
    Derived,
    DerivedName,
    Divisors,
    KnobEntry,
    StrategyEntry,
    Variables,
    written_out,
    written_out_names,
)
from tuner.space.file.yaml import default_space_file
from tuner.space.search_space import CHOICES_LIMIT, Knob, SearchSpace

# The schema of the search-space file, as dataclasses that ``decode`` reads, and its conversion to values.
#
# The bounds of ``range`` and ``powers`` are inclusive: {range: [16, 64], step: 16} is 16, 32, 48, 64 and
# {powers: [16, 64], base: 2} is 16, 32, 64.

PROCESSOR_ISAS = (*VECTOR_ISAS, NO_ISA)
ISAS = (*PROCESSOR_ISAS, PTX)  # the values of Machine.isa
ISA = "isa"  # a key of an initial configuration
KNOB_FORMS = (
    "a list of integers or of texts, {range: [lo, hi], step: s}, {powers: [lo, hi], base: b} or "
    "{divisors_of: k, min: lo, max: hi, extra: [...]}"
)
KEY = "extends"
DEFAULT = "default"
NEEDED = "ops"  # a key that each new strategy has
TEMPLATE = "template"  # a key of a strategy that has a script of its own
BY_NAME = ("knobs", "let", "projection", "usual")  # keys of a strategy whose entries are merged one by one
BYTES_LIMIT = 4_000_000  # of a file that is read at all


def _is_value(found: object) -> bool:
    """Returns whether a value is an integer or a text; YAML's on, off, yes, no are booleans."""
    return isinstance(found, int | str) and not isinstance(found, bool)


def _is_knob(found: object) -> bool:
    return isinstance(found, list) or (isinstance(found, dict) and any(form in found for form in FORMS))


def _is_short(found: object) -> bool:
    return not isinstance(found, list) or len(found) <= CHOICES_LIMIT


def _is_alike(found: object) -> bool:
    """Returns whether listed choices are all integers or all texts; True for values of other types."""
    return not isinstance(found, list) or not all(map(_is_value, found)) or len(set(map(type, found))) <= 1


def _is_value_or_list(found: object) -> bool:
    return isinstance(found, list) or _is_value(found)


def _is_name(found: object) -> bool:
    return isinstance(found, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", found) is not None


def _one_of(*allowed: str) -> Only:
    return Only(", ".join(allowed), lambda found: found in allowed)


SOME = Only("at least 1 of them", lambda found: found not in ([], {}))
Name = Annotated[str, Only("letters, digits and _, no digit first", _is_name)]
Choice = Annotated[
    int | str, Only("an integer or a text (in quotes where YAML reads something else)", _is_value)
]
Choices = Annotated[
    int | str | tuple[Choice, ...],
    Only("an integer or a text (in quotes where YAML reads something else), or a list", _is_value_or_list),
]


@dataclass(frozen=True)
class _Range:
    range: tuple[int, int]
    step: Annotated[int, whole(1)] = 1

    def __post_init__(self) -> None:
        low, high = self.range
        if low > high or (high - low) // self.step >= CHOICES_LIMIT:
            allowed = f"lo <= hi with at most {CHOICES_LIMIT} values"
            raise ValueError(f"found {{'range': [{low}, {high}]}}, allowed {allowed}")

    def choices(self) -> tuple[Value, ...]:
        return tuple(range(self.range[0], self.range[1] + 1, self.step))


@dataclass(frozen=True)
class _Powers:
    powers: tuple[int, int]
    base: Annotated[int, whole(2)] = 2

    def __post_init__(self) -> None:
        low, high = self.powers
        if not 1 <= low <= high <= 2**62 or not self.choices():
            allowed = f"1 <= lo <= hi with a power of {self.base} between them"
            raise ValueError(f"found {{'powers': [{low}, {high}]}}, allowed {allowed}")

    def choices(self) -> tuple[Value, ...]:
        low, high = self.powers
        every = (self.base**exponent for exponent in range(high.bit_length() + 1))
        return tuple(power for power in every if low <= power <= high)


@dataclass(frozen=True)
class _Divisors:
    divisors_of: str
    min: Annotated[int, whole(1)] = 1
    max: Annotated[int, whole(1)] | None = None
    extra: tuple[int, ...] = ()


FORMS = ("range", "powers", "divisors_of")  # the key that says which form of a knob a mapping is
AnyKnob = Annotated[
    tuple[Choice, ...] | _Range | _Powers | _Divisors,
    Only(KNOB_FORMS, _is_knob),
    SOME,
    Only(f"at most {CHOICES_LIMIT} of them", _is_short),
    Only("all integers or all texts", _is_alike),
]


@dataclass(frozen=True)
class _Strategy:
    # problems and machines that the strategy supports
    ops: Annotated[tuple[Annotated[str, _one_of(*OPERATIONS, SCALED, *FUSION_OPERATIONS)], ...], SOME]
    dtypes: Annotated[tuple[Annotated[str, _one_of(*INPUT_DTYPES)], ...], SOME]
    layouts: Annotated[tuple[Annotated[str, _one_of(*LAYOUTS)], ...], SOME] = LAYOUTS
    epilogues: Annotated[tuple[Annotated[str, _one_of(*EPILOGUES)], ...], SOME] = tuple(EPILOGUES)
    isas: Annotated[tuple[Annotated[str, _one_of(*ISAS)], ...], SOME] = PROCESSOR_ISAS
    template: str | None = None  # path of the script; None: the strategy's own template
    description: str = ""
    knobs: dict[Name, AnyKnob] = field(default_factory=dict)  # knob -> its choices
    let: dict[Name, str] = field(default_factory=dict)  # name -> expression that it stands for in others
    constraints: tuple[str, ...] = ()  # expressions that hold for every candidate
    preferences: tuple[str, ...] = ()  # expressions; a candidate that breaks one is tried last
    projection: dict[Name, Choice] = field(default_factory=dict)  # knob -> value in place of one not allowed
    usual: dict[Name, Choice] = field(default_factory=dict)  # of a knob that an entry of ``first`` leaves out
    first: tuple[dict[Name, Choices], ...] = ()  # initial configurations


@dataclass(frozen=True)
class _File:
    strategies: Annotated[dict[Name, _Strategy], SOME]
    extends: Annotated[Any, Only("nothing: the text is merged already", lambda found: found is None)] = None


def entries(document: object, file: str) -> tuple[StrategyEntry, ...]:
    """Validates a parsed search-space file; returns its strategies.

    Raises UsageError that names ``file`` and the path of the wrong key.
    """
    checked = decode(_File, document, f"{file}: ")
    return tuple(_entry(name, entry, file) for name, entry in checked.strategies.items())


def _entry(name: str, given: _Strategy, file: str) -> StrategyEntry:
    where = f"{file}: strategies.{name}"
    let = tuple(
        DerivedName(derived, parse(text, f"{where}.let.{derived}")) for derived, text in given.let.items()
    )
    for derived in let:
        derived.require_other_than(given.knobs, "knob")
    expanded_names = written_out_names(let)
    knobs = tuple(_knob(knob, form, f"{where}.knobs.{knob}") for knob, form in given.knobs.items())
    constraints = _expressions(given.constraints, f"{where}.constraints", expanded_names)
    _require_values(given.projection, knobs, f"{where}.projection")
    _require_values(given.usual, knobs, f"{where}.usual")
    return StrategyEntry(
        name,
        given.ops,
        given.dtypes,
        given.layouts,
        given.epilogues,
        given.isas,
        knobs,
        constraints,
        _first(name, given, knobs, f"{where}.first"),
        given.template,
        given.description,
        _expressions(given.preferences, f"{where}.preferences", expanded_names),
        let,
        tuple(given.projection.items()),
    )


def _first(
    name: str, given: _Strategy, knobs: tuple[KnobEntry, ...], where: str
) -> tuple[tuple[str, Candidate], ...]:
    """Returns ``StrategyEntry.first``. An entry with a list is one configuration for each of its values."""
    first: dict[tuple[str, Candidate], None] = {}
    for index, listed in enumerate(given.first):
        place = f"{where}[{index}]"
        for values in _points(listed):
            point = given.usual | values
            isa = ""  # of the machines that the configuration is for; "": all
            if ISA not in given.knobs:
                isa = str(point.pop(ISA, ""))
            if isa and isa not in ISAS:
                raise unknown_value(f"{place}.{ISA}", isa, ISAS)
            if knobs and point.keys() != given.knobs.keys():  # unchecked where only the script declares knobs
                must = f"must give each knob: {', '.join(given.knobs)}"
                raise UsageError(f"{place}: gives {', '.join(point)}; {must}")
            _require_values(point, knobs, place)
            first[isa, Candidate.of(name, point)] = None
    return tuple(first)


def _points(listed: Mapping[str, Value | tuple[Value, ...]]) -> Iterator[dict[str, Value]]:
    """Yields an entry of ``first`` with one value of each of its lists; the last list varies fastest."""
    lists: list[tuple[Value, ...]] = []
    for values in listed.values():
        if isinstance(values, tuple):
            lists.append(values)
        else:
            lists.append((values,))
    for point in itertools.product(*lists):
        yield dict(zip(listed, point, strict=True))


def _expressions(texts: tuple[str, ...], where: str, derived: Derived) -> tuple[Expression, ...]:
    parsed = (parse(text, f"{where}[{place}]") for place, text in enumerate(texts))
    return tuple(written_out(expression, derived) for expression in parsed)


def _knob(name: str, form: tuple[Value, ...] | _Range | _Powers | _Divisors, where: str) -> KnobEntry:
    if isinstance(form, tuple):
        return KnobEntry(name, where, tuple(dict.fromkeys(form)))
    if isinstance(form, _Divisors):
        of = parse(form.divisors_of, f"{where}.divisors_of")
        return KnobEntry(name, where, Divisors(of, form.min, form.max, form.extra))
    return KnobEntry(name, where, form.choices())


def _require_values(values: dict[str, Value], knobs: tuple[KnobEntry, ...], where: str) -> None:
    """Raises UsageError for the value of an unknown knob, and for a text of an integer knob or the reverse.

    Nothing is checked if only the script declares knobs. A value that is not a choice is allowed: a file that
    extends another may have narrowed the knob.
    """
    for name, value in values.items():
        entry = next((knob for knob in knobs if knob.name == name), None)
        if entry is None and knobs:
            raise unknown_value(f"{where}: knob", name, [knob.name for knob in knobs])
        if entry is not None and isinstance(value, str) != entry.is_text:
            kind = "a text" if entry.is_text else "an integer"
            raise UsageError(f"{where}.{name}: found {value!r}, allowed {kind}, as the knob's choices are")


def is_extending(document: object, name: str) -> bool:
    """Returns whether a document has ``extends: default``; UsageError for another value of ``extends``."""
    if not isinstance(document, dict) or KEY not in document:
        return False
    if document[KEY] != DEFAULT:
        raise UsageError(f"{name}: {KEY}: found {document[KEY]!r}, allowed {DEFAULT}")
    return True


def extended(own: dict[str, Any], default: dict[str, Any], name: str) -> dict[str, Any]:
    """Returns the shipped document ``default`` merged with ``own``, a file's: its new strategies come first.

    A strategy that both have stays in its place: each key that the file gives replaces the shipped one; in
    ``knobs``, ``let``, ``projection`` and ``usual`` each name. A document that has not the form of a
    search-space file is returned as it is, without ``extends``, for the schema to refuse.

    Raises UsageError, beginning with the file's ``name``, for a misspelt name: a strategy that is not shipped
    and has no ``ops``, or a knob that the shipped strategy lacks, unless the file gives it another template.
    """
    wanted = own.get("strategies")
    if not isinstance(wanted, dict):
        return {key: value for key, value in own.items() if key != KEY}
    shipped = default["strategies"]
    for strategy, entry in wanted.items():
        _require_known(strategy, entry, shipped, name)
    merged = {name: entry for name, entry in wanted.items() if name not in shipped}
    for strategy, entry in shipped.items():
        changes = wanted.get(strategy, {})
        merged[strategy] = _changed(entry, changes) if isinstance(changes, dict) else changes
    others = {key: value for key, value in own.items() if key not in (KEY, "strategies")}
    return others | {"strategies": merged}


def _require_known(strategy: str, entry: Any, shipped: dict[str, Any], name: str) -> None:
    if not isinstance(entry, dict):
        return
    if strategy not in shipped:
        if NEEDED not in entry:
            error = unknown_value(f"{name}: strategies", strategy, shipped)
            raise UsageError(f"{error.message}, or a new one with {NEEDED}", error.hint)
        return
    known = shipped[strategy].get("knobs", {})
    own = entry.get("knobs", {})
    if TEMPLATE in entry or not isinstance(own, dict):
        return
    for knob in own:
        if knob not in known:
            raise unknown_value(f"{name}: strategies.{strategy}.knobs", knob, known)


def _changed(shipped: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    changed = shipped | own
    for key in BY_NAME:
        if key in changed and isinstance(own.get(key, {}), dict):
            changed[key] = shipped.get(key, {}) | own.get(key, {})
    return changed


@dataclass(frozen=True)
class SpaceFile:
    """A validated search-space file: its strategies, with knobs, constraints and preferences."""

    name: str  # for messages
    text: str  # with the file that it extends merged: a resumed run parses it again
    strategies: tuple[StrategyEntry, ...]
    folder: Path | None = None  # where the file lies; None for text that is not a file

    def strategy(self, name: str) -> StrategyEntry:
        """Returns the strategy ``name`` of the file. Raises UsageError, with all names, for another name."""
        for entry in self.strategies:
            if entry.name == name:
                return entry
        raise unknown_strategy(f"{self.name}: strategy", name, [entry.name for entry in self.strategies])

    def script(self, name: str) -> Path | None:
        """Returns the path of the strategy's script in the file; None if it uses the shipped script.

        Raises UsageError for an unknown strategy.
        """
        template = self.strategy(name).template
        if template is None:
            return None
        return (self.folder or Path()) / template


def load_space_file(path: Path) -> SpaceFile:
    """Reads a search-space file, merged with the shipped one if it has ``extends: default``.

    Raises UsageError for a file that cannot be read or is not valid.
    """
    text = read_text(path, "a YAML file", BYTES_LIMIT)
    # most files do not extend the shipped one, and are parsed only once
    if any(KEY in line for line in text.splitlines() if not line.lstrip().startswith("#")):
        own: Any = yaml.load(text, path.name)
        if is_extending(own, path.name):
            shipped = default_space_file()
            default: Any = yaml.load(read_text(shipped, "a YAML file", BYTES_LIMIT), shipped.name)
            text = yaml.dump(extended(own, default, path.name))
    return parse_space(text, path.name, path.parent)


def parse_space(text: str, name: str, folder: Path | None = None) -> SpaceFile:
    """Parses the text of a search-space file, which must not extend another file.

    ``name``: for messages; ``folder``: to which paths of scripts are relative. Raises UsageError, with line
    or key path, for an invalid text and for ``extends: default``.
    """
    return SpaceFile(name, text, _parsed(text, name), folder)


@functools.lru_cache(maxsize=8)
def _parsed(text: str, name: str) -> tuple[StrategyEntry, ...]:
    return entries(yaml.load(text, name), name)


def spaces_for(
    space_file: SpaceFile,
    problem: Problem,
    isa: str,
    variables: Variables,
    names: tuple[str, ...] | None,
    script_knobs: Mapping[str, tuple[Knob, ...]] | None = None,
) -> tuple[SearchSpace, ...]:
    """Returns the search spaces of the strategies that support a problem, in the order of the file.

    ``isa``: ``Machine.isa``; ``variables``: the result of ``variables_of``; ``names``: strategies to take,
    None: all; ``script_knobs``: strategy -> knobs of its script. Raises UsageError for an unknown strategy,
    and if none supports the problem.
    """
    chosen = space_file.strategies
    if names is not None:
        wanted = list(map(space_file.strategy, names))
        chosen = tuple(entry for entry in space_file.strategies if entry in wanted)
    able = [entry for entry in chosen if entry.why_not(problem, isa) is None]
    if not able:
        of_operation = [entry for entry in chosen if problem.scheduled_as.operation in entry.operations]
        reasons = (f"{entry.name}: {entry.why_not(problem, isa)}" for entry in of_operation or chosen)
        line = f"{space_file.name}: no strategy can do {problem.key} with {isa}"
        raise UsageError(f"{line}: {'; '.join(reasons)}")
    declared = script_knobs or {}
    return tuple(entry.space(variables, declared.get(entry.name, ())) for entry in able)


def first_rows(space_file: SpaceFile, feasible: FeasibleSet, isa: str = "") -> tuple[int, ...]:
    """Returns the rows of the configurations that the file lists under ``first``, for an isa or all machines.

    ``isa`` "": only those for all machines. Leaves out configurations that are not feasible or break a
    preference.
    """
    used = {space.strategy for space in feasible.spaces}
    listed = [entry.first_on(isa) for entry in space_file.strategies if entry.name in used]
    rows = map(feasible.row_of, itertools.chain.from_iterable(listed))
    return tuple(dict.fromkeys(row for row in rows if row is not None and feasible.is_preferred[row]))
