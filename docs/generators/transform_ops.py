"""The transform ops of the dialect ``tuner``: attributes, failures, and IR before and after.

All of it stands in the docstring of an op's class; ``tests/mlir/test_documented_ir.py`` runs
each op and compares the IR.
"""

import inspect
import re
from typing import Any, Final

from docs.generators.markdown import as_markdown, fenced
from tuner.mlir.dialect import all_ops

INDENTED: Final = re.compile(r"(?:^(?: {2,}.*)?\n)+", re.MULTILINE)
OP: Final = re.compile(r'\A"?``tuner\.\w+``: ')


def transform_ops() -> str:
    """Returns a section for each op, by name."""
    return "\n".join(_section(op) for op in all_ops())


def _section(op: Any) -> str:
    title, _, about = inspect.cleandoc(op.__doc__ or "").partition("\n")
    summary = OP.sub("", title)
    parts = (
        f"## {op.OPERATION_NAME}\n",
        as_markdown(summary[0].upper() + summary[1:]) + "\n",
        documented_blocks(about.strip("\n")),
    )
    return "\n".join(parts)


def documented_blocks(text: str) -> str:
    """Returns a docstring's text as Markdown: runs of indented lines become blocks of MLIR."""
    parts: list[str] = []
    code: list[str] = []
    for line in text.splitlines():
        if line.startswith("    ") or (code and not line.strip()):
            code.append(line[4:])
        elif code:
            parts += ["\n", fenced("mlir", "\n".join(code)), "\n", as_markdown(line.strip()), "\n"]
            code = []
        else:
            parts += [as_markdown(line.strip()), "\n"]
    if code:
        parts += ["\n", fenced("mlir", "\n".join(code))]
    return "".join(parts)
