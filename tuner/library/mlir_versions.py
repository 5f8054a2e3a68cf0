"""MLIR versions that a library is written for: dialects that were renamed between them."""

import re
from dataclasses import replace

from tuner.library.entry import LibraryFile

MLIR_22, MLIR_23 = VERSIONS = ("mlir-22", "mlir-23")
# x86vector of MLIR 22 is x86 since MLIR 23. Scripts are bound with the names of MLIR 23.
NEWER, OLDER = "transform.apply_patterns.x86.", "transform.apply_patterns.x86vector."
MADE_FOR = re.compile(r"^(// made by   .*, for )\S.*$", re.MULTILINE)  # in the header of a library


def for_version(version: str, file: LibraryFile) -> LibraryFile:
    """Returns an MLIR file with the dialect names of one of VERSIONS; another file as it is."""
    if not file.name.endswith(".mlir"):
        return file
    text = file.content.decode()
    text = text.replace(NEWER, OLDER) if version == MLIR_22 else text.replace(OLDER, NEWER)
    text = MADE_FOR.sub(lambda found: found[1] + versions_text(text), text)
    return replace(file, content=text.encode())


def versions_text(text: str) -> str:
    """Returns which versions of MLIR read a module: both, unless it names a dialect that was renamed."""
    if OLDER in text:
        return MLIR_22
    return MLIR_23 if NEWER in text else f"{MLIR_22} and {MLIR_23}"
