"""Draws public names of the product by a seed and prints their docstrings, for a reader who rates them.

    python -m tests.draw_names 1 [--count 60]

Each name is printed with its place, signature and docstring. Read without the code; mark each as understood,
vague, misleading or unreadable.
"""

import argparse
import ast
import random
import sys
import textwrap
from collections.abc import Iterator

from tests.source_files import MODULES, tree_of

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def drawn(seed: int, count: int) -> list[tuple[str, Definition]]:
    """Returns ``count`` public classes, functions and methods: the same ones for a seed and a product."""
    names = [found for module in sorted(MODULES) for found in _named(module, tree_of(MODULES[module]))]
    return random.Random(seed).sample(names, count)


def printed(name: str, definition: Definition) -> str:
    """Returns the name, the signature and the docstring as lines of text."""
    if isinstance(definition, ast.ClassDef):
        head = f"class {definition.name}({', '.join(map(ast.unparse, definition.bases))})"
    else:
        returns = f" -> {ast.unparse(definition.returns)}" if definition.returns else ""
        head = f"def {definition.name}({ast.unparse(definition.args)}){returns}"
    text = ast.get_docstring(definition) or "(no docstring)"
    return f"{name}\n    {head}\n" + textwrap.indent(text, "    ") + "\n"


def _named(prefix: str, tree: ast.Module | ast.ClassDef) -> Iterator[tuple[str, Definition]]:
    for node in tree.body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            yield f"{prefix}.{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from _named(f"{prefix}.{node.name}", node)


def main() -> None:
    """Prints the names that the command line asks for."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("seed", type=int)
    parser.add_argument("--count", type=int, default=60)
    options = parser.parse_args()
    for number, (name, definition) in enumerate(drawn(options.seed, options.count), 1):
        sys.stdout.write(f"{number}. {printed(name, definition)}\n")


if __name__ == "__main__":
    main()
