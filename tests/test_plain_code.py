"""One thing a line: no file gets more packed assignments, conditional expressions and the like than it has.

    python -m tests.test_plain_code

records that a file has fewer than before; it records no more. A file that is not in the record, such as a new
one, may have what ``RATES`` allow for its length.
"""

import ast
import json
import math
from collections import Counter
from pathlib import Path

import pytest

from tests.source_files import MODULES, nodes_of, tree_of

RECORD = Path(__file__).with_name("plain_code.json")
PACKED, CONDITIONAL, COMPREHENSION, FLAG = "packed", "conditional", "comprehension", "flag"
RATES = {PACKED: 2, CONDITIONAL: 16, COMPREHENSION: 32, FLAG: 0.1}  # of 1,000 lines
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
REPEATED = (ast.List, ast.Tuple, ast.JoinedStr, ast.Constant)
FLAG_NAMES = ("is_", "has_", "needs_", "was_")
Counts = dict[str, int]


def counts_of(tree: ast.AST) -> Counts:
    """Returns how many of each there are, without those that are none."""
    return dict(Counter(what for node in nodes_of(tree) if (what := what_is(node))))


def what_is(node: ast.AST) -> str:
    """Returns "packed" for ``a, b = f(x), g(y)``, "flag" for ``[x] * is_wanted``, and so on, else ""."""
    if isinstance(node, ast.IfExp):
        return CONDITIONAL
    if isinstance(node, COMPREHENSIONS):
        return COMPREHENSION
    if isinstance(node, ast.Assign):
        is_packed = isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)
        return PACKED if is_packed else ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return FLAG if is_sequence(node.left) and is_flag(node.right) else ""
    return ""


def is_sequence(node: ast.expr) -> bool:
    return isinstance(node, REPEATED) and not isinstance(getattr(node, "value", ""), int | float)


def is_flag(node: ast.expr) -> bool:
    """Returns whether a factor is true or false by its form or its name."""
    if isinstance(node, ast.Compare | ast.BoolOp):
        return True
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "bool"
    return str(getattr(node, "attr", getattr(node, "id", ""))).startswith(FLAG_NAMES)


def lines_of(path: Path) -> int:
    return path.read_text().count("\n")


def allowed(name: str, recorded: dict[str, Counts]) -> Counts:
    """Returns how many of each a file may have: what is recorded, else what its length allows."""
    by_length = {what: math.ceil(rate * lines_of(MODULES[name]) / 1000) for what, rate in RATES.items()}
    return {what: max(most, recorded.get(name, {}).get(what, 0)) for what, most in by_length.items()}


def test_no_file_gets_denser() -> None:
    recorded: dict[str, Counts] = json.loads(RECORD.read_text())
    assert recorded.keys() <= MODULES.keys(), "a file is gone: python -m tests.test_plain_code"
    grown = []
    for name, path in MODULES.items():
        most = allowed(name, recorded)
        for what, count in counts_of(tree_of(path)).items():
            if count > most[what]:
                grown.append(f"{name}: {count} of {what}, allowed {most[what]}")
    assert grown == [], "write one thing a line"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a, b = f(x), g(y)", {PACKED: 1}),
        ("a, b = f(x)", {}),
        ("x = 1 if y else 2", {CONDITIONAL: 1}),
        ("x = [y for y in z if y]", {COMPREHENSION: 1}),
        ('x = "s" * (n > 1) + "t" * is_wanted', {FLAG: 2}),
        ("x = 3 * (n > 1) + [0] * count", {}),
    ],
)
def test_what_is_counted(text: str, expected: Counts) -> None:
    assert counts_of(ast.parse(text)) == expected


def recorded_now() -> dict[str, Counts]:
    """Returns counts of each file that has more than its length allows; none that is above the record."""
    before: dict[str, Counts] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    record: dict[str, Counts] = {}
    for name in MODULES:
        found = counts_of(tree_of(MODULES[name]))
        by_length = allowed(name, {})
        over = {what: count for what, count in sorted(found.items()) if count > by_length[what]}
        if before:
            over = {what: min(count, before.get(name, {}).get(what, count)) for what, count in over.items()}
        if over:
            record[name] = over
    return record


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(counts)}" for name, counts in recorded_now().items())
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")
