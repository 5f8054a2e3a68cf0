"""Parts of the reference that are read from the sources: one generator per file.

A part stands in its page between two comments, ``<!-- generated: commands -->`` and ``<!-- end -->``.
``python -m docs.generators`` writes all parts anew.
"""

import re
from collections.abc import Callable
from typing import Final

from docs.generators.commands import commands
from docs.generators.documents import command_documents, stored_documents
from docs.generators.python_api import python_api
from docs.generators.template_comments import template_comments
from docs.generators.transform_ops import transform_ops

GENERATORS: Final[dict[str, Callable[[], str]]] = {
    "commands": commands,
    "command documents": command_documents,
    "python": python_api,
    "stored documents": stored_documents,
    "template comments": template_comments,
    "transform ops": transform_ops,
}
PART: Final = re.compile(r"^<!-- generated: ([\w ]+) -->\n(?:.*?\n)??<!-- end -->$", re.MULTILINE | re.DOTALL)


def with_generated_parts(page: str) -> str:
    """Returns a page with what the generators write today in each of its parts.

    Raises KeyError for a part that no generator writes.
    """
    return PART.sub(_part, page)


def _part(part: re.Match[str]) -> str:
    return f"<!-- generated: {part[1]} -->\n\n{GENERATORS[part[1]]().strip()}\n\n<!-- end -->"
