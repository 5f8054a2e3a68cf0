"""A strategy of the search-space file, with its knobs and derived names, before the problem is known.

A ``StrategyEntry`` has ``KnobEntry`` values, whose choices may depend on the problem (``Divisors``), and
``DerivedName`` values. Its method ``space`` makes the ``SearchSpace`` of one problem.
"""

import ast
import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from tuner.core.candidate import Candidate, Value
from tuner.core.errors import Refusal, UsageError
from tuner.core.problem import SIZE_LIMIT, Problem
from tuner.space.expressions import Expression, check_depth
from tuner.space.search_space import Knob, SearchSpace

NODES_LIMIT = 2000  # nodes of a syntax tree in which all derived names are written out

Derived = Mapping[str, Expression]  # derived name -> its expression, in whose tree no derived name is left
Variables = tuple[tuple[str, Value], ...]  # (name, value): sizes, element bytes, device limits


@dataclass(frozen=True)
class DerivedName:
    """A derived name of a strategy (``let:`` of the search-space file), and the expression it stands for."""

    name: str
    expression: Expression  # over knobs, variables and other derived names

    def require_other_than(self, names: Collection[str], what: str) -> None:
        """Raises UsageError if ``names`` has this name too; ``what``: what they name, such as "knob"."""
        if self.name in names:
            raise UsageError(
                f"{self.expression.where}: {self.name!r} is the name of a {what} too: give it another name"
            )


def written_out_names(derived: tuple[DerivedName, ...]) -> Derived:
    """Returns name -> expression of derived names, in which other derived names are replaced.

    Raises UsageError for a cycle, and for an expression that becomes too large.
    """
    expressions = {name.name: name.expression for name in derived}
    uses = {name: sorted(expression.names & expressions.keys()) for name, expression in expressions.items()}
    try:
        dependencies_first = tuple(TopologicalSorter(uses).static_order())
    except CycleError as error:
        cycle: list[str] = error.args[1][::-1]  # each name uses the next one; the last is the first again
        raise UsageError(
            f"{expressions[cycle[0]].where}: derived names form a cycle: {' -> '.join(cycle)}"
        ) from None
    done: dict[str, Expression] = {}
    for name in dependencies_first:
        done[name] = written_out(expressions[name], done)
    return done


def written_out(expression: Expression, derived: Derived) -> Expression:
    """Returns an expression with derived names replaced by their expressions.

    Raises UsageError if the result has more than NODES_LIMIT (2000) parts or DEPTH_LIMIT (40) levels.
    """
    used = expression.names & derived.keys()
    if not used:
        return expression
    sizes = {name: len(list(ast.walk(derived[name].tree))) for name in used}
    nodes = 0
    for node in ast.walk(expression.tree):
        nodes += sizes.get(node.id, 1) if isinstance(node, ast.Name) else 1
    if nodes > NODES_LIMIT:
        raise UsageError(
            f"{expression.where}: {expression.text!r}: found {nodes} parts where derived names are written "
            f"out, allowed {NODES_LIMIT}"
        )
    tree = _replaced(expression.tree, derived)
    check_depth(tree, expression.where)
    names = (expression.names - used).union(*(derived[name].names for name in used))
    return dataclasses.replace(expression, names=names, tree=tree, is_written_out=True)


def _replaced(node: Any, derived: Derived) -> Any:
    """Returns a copy of the node with derived names written out; names of called functions stay."""
    if isinstance(node, ast.Name):
        if node.id in derived:
            return derived[node.id].tree
        return node
    if not isinstance(node, ast.expr) or isinstance(node, ast.Constant):
        return node
    fields = dict(ast.iter_fields(node))
    for name, value in fields.items():
        if isinstance(value, list):
            fields[name] = [_replaced(item, derived) for item in value]
        elif isinstance(value, ast.AST) and name != "func":
            fields[name] = _replaced(value, derived)
    return type(node)(**fields)


@dataclass(frozen=True)
class Divisors:
    """A knob's choices: the divisors of a number of the problem from ``min`` to ``max``, and ``extra``."""

    of: Expression
    min: int = 1
    max: int | None = None  # None: the number itself
    extra: tuple[int, ...] = ()  # choices outside of the bounds as well

    def __str__(self) -> str:  # is hashed: without the file's path, which differs from machine to machine
        return f"{self.of.full_text}, {self.min} to {self.max}, {self.extra}"

    def choices(self, variables: Variables) -> tuple[int, ...]:
        """Returns the choices, ascending.

        Raises UsageError if there are none, or if ``of`` is not an integer in 1 .. 2**31 - 1.
        """
        names = dict(variables)
        number = self.of.evaluate(names)
        if not isinstance(number, int) or not 1 <= number <= SIZE_LIMIT:
            raise UsageError(
                f"{self.of.where}: {self.of.text!r}: found {number!r}, allowed an integer 1..{SIZE_LIMIT}"
            )
        low = np.arange(1, int(number**0.5) + 1)
        low = low[number % low == 0]
        divisors = {*low.tolist(), *(number // low).tolist()}
        high = number if self.max is None else self.max
        choices = {divisor for divisor in divisors if self.min <= divisor <= high} | set(self.extra)
        if not choices:
            raise UsageError(
                f"{self.of.where}: {self.of.text} = {number} has no divisor from {self.min} to {high}",
                "widen min and max, or give extra",
            )
        return tuple(sorted(choices))


@dataclass(frozen=True)
class KnobEntry:
    """A knob as the search-space file gives it; its choices may depend on problem and machine."""

    name: str
    where: str  # file and key path, for messages
    choices: tuple[Value, ...] | Divisors

    @property
    def is_text(self) -> bool:
        return isinstance(self.choices, tuple) and isinstance(self.choices[0], str)

    def knob(self, variables: Variables) -> Knob:
        """Returns the knob for one problem and machine, given by ``variables``.

        Raises UsageError if the knob has the name of a variable, or no choices.
        """
        names = [name for name, _ in variables]
        if self.name in names:
            raise UsageError(
                f"{self.where}: {self.name!r} is a variable", f"choose a name other than {', '.join(names)}"
            )
        if isinstance(self.choices, Divisors):
            return Knob(self.name, self.choices.choices(variables))
        return Knob(self.name, self.choices)


@dataclass(frozen=True)
class StrategyEntry:
    """A strategy as the search-space file gives it: supported problems, knobs, constraints, preferences."""

    name: str
    operations: tuple[str, ...]
    dtypes: tuple[str, ...]
    layouts: tuple[str, ...]
    epilogues: tuple[str, ...]
    isas: tuple[str, ...]
    knobs: tuple[KnobEntry, ...]
    constraints: tuple[Expression, ...]
    # (isa, configuration), proposed before any other where feasible and preferred; isa "": for all machines
    first: tuple[tuple[str, Candidate], ...]
    template: str | None = None  # path of the script as written; None: the strategy's own template
    description: str = ""
    preferences: tuple[Expression, ...] = ()  # a combination that breaks one is tried last
    let: tuple[DerivedName, ...] = ()  # written out in constraints and preferences already
    projection: tuple[tuple[str, Value], ...] = ()  # knob -> value in place of one that is not allowed

    def first_on(self, isa: str) -> tuple[Candidate, ...]:
        """Returns the initial configurations for an instruction set, then those for all machines, each once.

        ``isa`` "": only those for all machines.
        """
        own = []
        of_all = []
        for name, candidate in self.first:
            if name == isa:
                own.append(candidate)
            elif not name:
                of_all.append(candidate)
        return tuple(dict.fromkeys((*own, *of_all)))

    def why_not(self, problem: Problem, isa: str) -> Refusal | None:
        """Returns why the strategy does not support a problem and instruction set; None where it does."""
        scheduled = problem.scheduled_as
        bounds = (
            ("operation", scheduled.operation, self.operations),
            ("dtype", scheduled.dtype, self.dtypes),
            ("layout", scheduled.layout, self.layouts),
            ("epilogue", scheduled.epilogue, self.epilogues),
            ("instruction set", isa, self.isas),
        )
        for what, value, allowed in bounds:
            if value not in allowed:
                return Refusal(f"{what}: found {value}, allowed {', '.join(allowed)}")
        return None

    def space(self, variables: Variables, script_knobs: tuple[Knob, ...] = ()) -> SearchSpace:
        """Returns the search space for one problem and machine, given by ``variables``.

        ``script_knobs``: knobs of the script, added if the file does not have them. Raises UsageError for
        names that are used twice or are unknown, and for a knob that has no choices on this problem.
        """
        knobs = tuple(entry.knob(variables) for entry in self.knobs)
        named = {knob.name for knob in knobs}
        knobs += tuple(knob for knob in script_knobs if knob.name not in named)
        variable_names = [name for name, _ in variables]
        for derived in self.let:
            derived.require_other_than([knob.name for knob in knobs], "knob")
            derived.require_other_than(variable_names, "variable")
        known = {*variable_names, *(knob.name for knob in knobs), *(derived.name for derived in self.let)}
        for expression in (
            *(derived.expression for derived in self.let),
            *self.constraints,
            *self.preferences,
        ):
            expression.require(known)
        return SearchSpace(self.name, knobs, self.constraints, variables, self.preferences, self.projection)
