"""``llms.txt``, the list of all pages for programs that read them, from the index of each folder."""

import re
from pathlib import Path
from typing import Final

ROW: Final = re.compile(r"^\| \[(.+?)\]\(([\w/-]+\.md)\) \| (.+?) \|$", re.MULTILINE)
TITLE: Final = re.compile(r"\A# (.+)$", re.MULTILINE)
INDEX: Final = "README.md"
SUMMARY: Final = """# tuner

> Autotunes MLIR transform-dialect strategies of matmuls, of MLIR programs and of PyTorch models.
> Every candidate is compiled, compared with float64, timed, and stored in SQL.
"""


def page_list(docs: Path) -> str:
    """Returns the text of ``llms.txt``: a section for each index of ``docs``, with a line for each page."""
    indexes = [docs / INDEX]
    sections = [SUMMARY]
    listed: set[Path] = set()
    for index in indexes:  # grows: an index names others
        text = index.read_text()
        lines = []
        for name, link, what in ROW.findall(text):
            page = index.parent / link
            if page.name == INDEX:
                indexes.append(page)
            elif page not in listed:
                listed.add(page)
                lines.append(f"- [{name}]({page.relative_to(docs.parent)}): {what}\n")
        if lines:
            sections.append(f"## {TITLE.findall(text)[0]}\n\n{''.join(lines)}")
    return "\n".join(sections)
