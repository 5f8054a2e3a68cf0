"""Reads a search space file, merged with the shipped file if it extends it, and makes the search spaces."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuner.core.errors import UsageError, unknown_value
from tuner.core.problem import Problem
from tuner.core.serialization import read_text
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file import schema, yaml
from tuner.space.file.entries import StrategyEntry, Variables
from tuner.space.file.yaml import default_space_file
from tuner.space.search_space import Knob, SearchSpace

KEY = "extends"
DEFAULT = "default"
NEEDED = "ops"  # a key that each new strategy has
TEMPLATE = "template"  # a key of a strategy that has a script of its own
BY_NAME = ("knobs", "let", "projection")  # keys of a strategy whose entries are merged one by one


def is_extending(document: object, name: str) -> bool:
    """Returns whether a document has ``extends: default``; raises UsageError for any other value."""
    if not isinstance(document, dict) or KEY not in document:
        return False
    if document[KEY] != DEFAULT:
        raise UsageError(f"{name}: {KEY}: found {document[KEY]!r}, allowed {DEFAULT}")
    return True


def extended(own: dict[str, Any], default: dict[str, Any], name: str) -> dict[str, Any]:
    """Returns the shipped document ``default`` merged with ``own``, a file's: its new strategies come first.

    A strategy that both have stays in its place: each key that the file gives replaces the shipped one; in
    ``knobs``, ``let`` and ``projection`` each name. A document that has not the form of a space file is
    returned as it is, without ``extends``, for the schema to refuse.

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
    known, own = shipped[strategy].get("knobs", {}), entry.get("knobs", {})
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


BYTES_LIMIT = 4_000_000  # of a file that is read at all


@dataclass(frozen=True)
class SpaceFile:
    """A validated search space file: its strategies, with knobs, constraints and preferences."""

    name: str  # for messages
    text: str  # with the file that it extends merged: a resumed run parses it again
    strategies: tuple[StrategyEntry, ...]
    folder: Path | None = None  # where the file lies; None for text that is no file

    def strategy(self, name: str) -> StrategyEntry:
        """Returns the strategy ``name`` of the file. Raises UsageError, with all names, for another name."""
        for entry in self.strategies:
            if entry.name == name:
                return entry
        raise unknown_value(f"{self.name}: strategy", name, [entry.name for entry in self.strategies])

    def script(self, name: str) -> Path | None:
        """Returns the path of a strategy's own script, or None; raises UsageError for an unknown strategy."""
        template = self.strategy(name).template
        return None if template is None else (self.folder or Path()) / template


def load_space_file(path: Path) -> SpaceFile:
    """Reads a search space file, merged with the shipped one if it extends that, or raises UsageError."""
    text = read_text(path, "a YAML file", BYTES_LIMIT)
    # most files do not extend the shipped one, and are parsed only once
    if any(KEY in line for line in text.splitlines() if not line.lstrip().startswith("#")):
        own: Any = yaml.load(text, path.name)
        if is_extending(own, path.name):
            shipped = default_space_file()
            default: Any = yaml.load(read_text(shipped, "a YAML file", BYTES_LIMIT), shipped.name)
            text = yaml.dump(extended(own, default, path.name))
    return parse_space(text, path.name, path.parent)


@functools.lru_cache(maxsize=8)
def parse_space(text: str, name: str, folder: Path | None = None) -> SpaceFile:
    """Parses the text of a search space file, which must not extend another file.

    ``name``: for messages; ``folder``: of scripts' paths. Raises UsageError, with line or key path, also for
    ``extends: default``.
    """
    return SpaceFile(name, text, schema.entries(yaml.load(text, name), name), folder)


def spaces_for(
    space_file: SpaceFile,
    problem: Problem,
    isa: str,
    variables: Variables,
    names: tuple[str, ...] | None,
    script_knobs: Mapping[str, tuple[Knob, ...]] | None = None,
) -> tuple[SearchSpace, ...]:
    """Returns the search spaces of the strategies that support a problem, in the order of the file.

    ``isa``: as ``Machine.isa``; ``variables``: see ``variables_of``; ``names`` None: all; ``script_knobs``:
    of scripts, by strategy. Raises UsageError for an unknown strategy, and when none supports the problem.
    """
    chosen = space_file.strategies
    if names is not None:
        wanted = [space_file.strategy(name) for name in names]
        chosen = tuple(entry for entry in space_file.strategies if entry in wanted)
    reasons = [(entry, entry.why_not(problem, isa)) for entry in chosen]
    able = [entry for entry, reason in reasons if reason is None]
    if not able:
        why = "; ".join(f"{entry.name}: {reason}" for entry, reason in reasons)
        raise UsageError(f"{space_file.name}: no strategy can do {problem.key} with {isa}: {why}")
    declared = script_knobs or {}
    return tuple(entry.space(variables, declared.get(entry.name, ())) for entry in able)


def first_rows(space_file: SpaceFile, feasible: FeasibleSet) -> tuple[int, ...]:
    """Returns the feasible, preferred rows that the file lists under ``first``."""
    used = {space.strategy for space in feasible.spaces}
    points = [point for entry in space_file.strategies if entry.name in used for point in entry.first]
    rows = (feasible.row_of(point) for point in points)
    return tuple(dict.fromkeys(row for row in rows if row is not None and feasible.is_preferred[row]))
