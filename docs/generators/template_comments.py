"""Comments that state a payload's sizes in a GPU script: the docstring of the function that reads them."""

import inspect
import re
from typing import Final

from docs.generators.markdown import as_markdown, fenced, table
from tuner.gpu.payload import scratch

COMMENT_LINE: Final = re.compile(r"^    // (\w+): (.*?) {2,}(.*)$", re.MULTILINE)


def template_comments() -> str:
    """Returns a table of the comments, and what their reader says of them."""
    about = inspect.cleandoc(inspect.getdoc(scratch.scratch_in) or "")
    rows = [(f"`// {name}: {example}`", meaning) for name, example, meaning in documented_comments()]
    shown = "\n".join(f"// {name}: {example}" for name, example, _ in documented_comments())
    return "\n".join((fenced("mlir", shown), table(("comment", "meaning"), rows), as_markdown(about) + "\n"))


def documented_comments() -> list[tuple[str, str, str]]:
    """Returns (name, example, meaning) of each comment that the module's docstring documents."""
    return COMMENT_LINE.findall(scratch.__doc__ or "")
