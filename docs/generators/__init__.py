"""Parts of the reference that are read from the sources when the pages are built: one generator per file.

A page asks for a part by a comment on a line of its own, ``<!-- generated: commands -->``.
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
REQUEST: Final = re.compile(r"^<!-- generated: ([\w ]+) -->$", re.MULTILINE)


def with_generated_parts(page: str) -> str:
    """Returns a page with each request replaced by what its generator returns.

    Raises KeyError for a request that no generator has.
    """
    return REQUEST.sub(lambda request: GENERATORS[request.group(1)](), page)
