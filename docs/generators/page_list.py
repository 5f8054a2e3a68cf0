"""``llms.txt``, the list of all pages for programs that read them, from the index ``docs/README.md``."""

import re
from typing import Final

ROW: Final = re.compile(r"^\| \[(.+?)\]\(([\w/-]+\.md)\) \| (.+?) \|$", re.MULTILINE)
SECTION: Final = re.compile(r"^## (.+)$", re.MULTILINE)
SUMMARY: Final = """# tuner

> Autotunes MLIR transform-dialect strategies of matmuls, of MLIR programs and of PyTorch models.
> Every candidate is compiled, compared with float64, timed, and stored in SQL.
"""


def page_list(index: str) -> str:
    """Returns the text of ``llms.txt``: a section for each of the index's, with a line for each page."""
    parts = SECTION.split(index)
    sections = (_section(title, text) for title, text in zip(parts[1::2], parts[2::2], strict=True))
    return "\n".join((SUMMARY, *filter(None, sections)))


def _section(title: str, text: str) -> str:
    lines = (f"- [{name}](docs/{page}): {what}\n" for name, page, what in ROW.findall(text))
    listed = "".join(lines)
    if not listed:
        return ""
    return f"## {title}\n\n{listed}"
