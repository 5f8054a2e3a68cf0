"""The menu of the built pages, from the links of ``docs/README.md`` and of the index of each folder."""

import re
from pathlib import Path
from typing import Final

from docs.generators.markdown import fenced

LINK: Final = re.compile(r"\]\(([\w/-]+)\.md\)")
INDEX: Final = "README"


def with_menu(name: str, text: str, folder: Path) -> str:
    """Returns the page ``name`` of ``folder``, an index with a hidden table of contents for its links.

    What ``docs/README.md`` links to stands at the top of the menu, and in no other place of it.
    """
    if Path(name).name != INDEX:
        return text
    pages = _links(text)
    if name != INDEX:
        top = _links((folder / f"{INDEX}.md").read_text())
        pages = [page for page in pages if f"{Path(name).parent}/{page}" not in top]
    entries = "\n".join((":hidden:", "", *pages))
    return "\n".join((text, fenced("{toctree}", entries)))


def _links(text: str) -> list[str]:
    return list(dict.fromkeys(LINK.findall(text)))
