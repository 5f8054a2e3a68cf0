"""The menu of the built pages, from the headings and links of the index ``docs/README.md``."""

import re
from pathlib import Path
from typing import Final

from docs.generators.markdown import fenced

SECTION: Final = re.compile(r"^## (.+)$", re.MULTILINE)
LINK: Final = re.compile(r"\]\(([\w/-]+)\.md\)")
DECISIONS: Final = "decisions"  # a folder whose pages the index does not name one by one
FOLDER_LINK: Final = re.compile(r"\[([^\]]+)\]\(decisions/\)")  # a folder has no built page


def with_menu(index: str, folder: Path) -> str:
    """Returns the index with a hidden table of contents for each of its sections."""
    parts = SECTION.split(index)
    menus = (_menu(title, text, folder) for title, text in zip(parts[1::2], parts[2::2], strict=True))
    return "\n".join((FOLDER_LINK.sub(r"\1", index), *menus))


def _menu(title: str, text: str, folder: Path) -> str:
    pages = list(dict.fromkeys(LINK.findall(text)))
    if f"({DECISIONS}/)" in text:
        pages += sorted(f"{DECISIONS}/{path.stem}" for path in (folder / DECISIONS).glob("*.md"))
    if not pages:
        return ""
    return fenced("{toctree}", "\n".join((":hidden:", f":caption: {title}", "", *pages)))
