"""``let:``: names of a strategy that stand for expressions over its knobs, the problem and the machine."""

import ast
import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from tuner.core.errors import UsageError
from tuner.space.expression import Expression, check_depth

NODES_LIMIT = 2000  # nodes of a syntax tree in which all derived names are written out

Derived = Mapping[str, Expression]  # derived name -> its expression, in whose tree no derived name is left


@dataclass(frozen=True)
class DerivedName:
    """A derived name of a strategy (``let:`` of the search space file), and the expression it stands for."""

    name: str
    expression: Expression  # over knobs, variables and other derived names

    def require_other_than(self, names: Collection[str], kind: str) -> None:
        """Raises UsageError when this derived name is also one of ``names``.

        ``kind`` says in the message what these are names of: "knob" or "variable".
        """
        if self.name in names:
            raise UsageError(
                f"{self.expression.where}: {self.name!r} is the name of a {kind} too: give it another name"
            )


def written_out_names(derived: tuple[DerivedName, ...]) -> Derived:
    """Returns the expression of each derived name, by name, with all other derived names replaced in it.

    Raises UsageError where derived names depend on each other in a cycle, or a syntax tree becomes larger
    than 2000 nodes or deeper than 40 levels.
    """
    expressions = {each.name: each.expression for each in derived}
    done: dict[str, Expression] = {}
    for name in _dependencies_first(expressions):
        done[name] = written_out(expressions[name], done)
    return done


def written_out(expression: Expression, derived: Derived) -> Expression:
    """Returns an expression in whose syntax tree derived names are replaced by their expressions.

    Its text stays as in the file. Raises UsageError where the tree becomes larger than 2000 nodes or deeper
    than 40 levels.
    """
    used = expression.names & derived.keys()
    if not used:
        return expression
    sizes = {name: sum(1 for _ in ast.walk(derived[name].tree)) for name in used}
    nodes = sum(
        sizes.get(node.id, 1) if isinstance(node, ast.Name) else 1 for node in ast.walk(expression.tree)
    )
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
        return derived[node.id].tree if node.id in derived else node
    if not isinstance(node, ast.expr) or isinstance(node, ast.Constant):
        return node
    parts = dict(ast.iter_fields(node))
    for name, part in parts.items():
        if isinstance(part, list):
            parts[name] = [_replaced(each, derived) for each in part]
        elif isinstance(part, ast.AST) and name != "func":
            parts[name] = _replaced(part, derived)
    return type(node)(**parts)


def _dependencies_first(expressions: Mapping[str, Expression]) -> tuple[str, ...]:
    """Returns the derived names in an order in which each comes after those that its expression uses."""
    uses = {name: sorted(each.names & expressions.keys()) for name, each in expressions.items()}
    try:
        return tuple(TopologicalSorter(uses).static_order())
    except CycleError as error:
        cycle: list[str] = error.args[1][::-1]  # each name uses the next one; the last is the first again
        raise UsageError(
            f"{expressions[cycle[0]].where}: derived names form a cycle: {' -> '.join(cycle)}"
        ) from None
