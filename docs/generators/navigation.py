"""The menu of the built pages, from the headings and links of the index ``docs/README.md``."""

import re
from pathlib import Path
from typing import Final

from docs.generators.markdown import fenced

SECTION: Final = re.compile(r"^## (.+)$", re.MULTILINE)
LINK: Final = re.compile(r"\]\(([\w/-]+)\.md\)")
DECISIONS: Final = "decisions"  # a folder with an index of its own, whose pages this index does not name


def with_menu(index: str, folder: Path) -> str:
    """Returns the index with a hidden table of contents for each of its sections."""
    parts = SECTION.split(index)
    menus = (_menu(title, text, folder) for title, text in zip(parts[1::2], parts[2::2], strict=True))
    return "\n".join((index, *menus))


def _menu(title: str, text: str, folder: Path) -> str:
    pages = list(dict.fromkeys(LINK.findall(text)))
    if f"{DECISIONS}/README" in pages:
        pages += sorted(f"{DECISIONS}/{path.stem}" for path in (folder / DECISIONS).glob("[!R]*.md"))
    if not pages:
        return ""
    return fenced("{toctree}", "\n".join((":hidden:", f":caption: {title}", "", *pages)))
