"""Long texts of MLIR and PTX, in a file next to the test that reads them."""

import re
from functools import cache
from pathlib import Path

BEGIN = re.compile(r"^// ----- (\w+)\n", re.MULTILINE)  # MLIR divides the files of its tests in this way


def text_beside(test: str, name: str) -> str:
    """Returns the part ``// ----- name`` of ``test_x.mlir`` or ``test_x.ptx``; ``test`` is ``test_x.py``."""
    return _parts(test)[name]


def filled(test: str, part: str, /, **values: object) -> str:
    """Returns a part with each ``{key}`` replaced by its value; all other braces stay."""
    text = text_beside(test, part)
    for key, value in values.items():
        text = text.replace(f"{{{key}}}", str(value))
    return text


@cache
def _parts(test: str) -> dict[str, str]:
    files = (Path(test).with_suffix(suffix) for suffix in (".mlir", ".ptx"))
    found: dict[str, str] = {}
    for _, *parts in (BEGIN.split(each.read_text()) for each in files if each.exists()):
        found |= dict(zip(parts[::2], parts[1::2], strict=True))
    return found
