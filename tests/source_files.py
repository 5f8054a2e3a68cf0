"""The syntax trees of the package's files, for tests of the source code."""

import ast
import gc
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


def modules() -> Iterator[tuple[str, Path]]:
    """Yields (name below tuner, file), with the folders that are linked."""
    for folder, prefix in ((ROOT / "tuner", ""), (ROOT / "db", "db.")):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            if prefix or parts[0] != "db":
                yield prefix + ".".join(parts), path


MODULES = dict(modules())


@cache
def tree_of(path: Path) -> ast.Module:
    """Returns the syntax tree of a file of the repository, parsed once for all tests."""
    gc.disable()  # a million nodes live to the end: looking through them again and again takes 15 s
    try:
        return ast.parse(path.read_text())
    finally:
        gc.freeze()
        gc.enable()


@cache
def nodes_of(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Returns all nodes of a tree, breadth first; a tree is walked once for all tests."""
    return tuple(ast.walk(tree))


@cache
def imports(tree: ast.AST) -> frozenset[str]:
    """Returns every module imported anywhere in the tree; ``from tuner import x`` gives ``tuner.x``."""
    found: set[str] = set()
    for node in nodes_of(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found.update(f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and last_name(node.func).endswith(("import_module", "__import__")):
            found.update(str(name.value) for name in node.args[:1] if isinstance(name, ast.Constant))
    return frozenset(found)


def last_name(node: ast.expr) -> str:
    """Returns the last part of a dotted name, "" for any other node; faster than ``ast.unparse``."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


def found_in(modules: Iterable[str], check: Callable[[ast.AST], list[str]]) -> dict[str, list[str]]:
    """Returns the findings of a check by module."""
    found = {name: check(tree_of(MODULES[name])) for name in modules}
    return {name: complaints for name, complaints in found.items() if complaints}
