"""Text files of users, read with checks: readable, UTF-8, limited in size."""

import sys
from pathlib import Path

from tuner.core.errors import UsageError

LIMIT_BYTES = 64 << 20  # of a script or payload


def read_text(path: Path, allowed: str, limit_bytes: int = LIMIT_BYTES) -> str:
    """Returns the text of a UTF-8 file.

    Raises UsageError for a file that cannot be read, is larger than ``limit_bytes`` or is not UTF-8. Unless
    the file is too large, the message names what is expected: ``allowed``, such as "MLIR text".
    """
    try:
        with path.open("rb") as file:
            content = file.read(limit_bytes + 1)  # /dev/zero has no end
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}), expected {allowed}") from error
    return _decoded(str(path), content, allowed, limit_bytes)


def read_text_or_stdin(path: Path, allowed: str, limit_bytes: int = LIMIT_BYTES) -> str:
    """Returns the text of a UTF-8 file, or of standard input where ``path`` is ``-``.

    Raises UsageError as ``read_text`` does.
    """
    if str(path) != "-":
        return read_text(path, allowed, limit_bytes)
    try:
        content = sys.stdin.buffer.read(limit_bytes + 1)
    except (OSError, AttributeError) as error:  # a folder; None where standard input is closed
        reason = getattr(error, "strerror", None) or "it is closed"
        raise UsageError(f"standard input: cannot be read ({reason}), expected {allowed}") from error
    return _decoded("standard input", content, allowed, limit_bytes)


def _decoded(name: str, content: bytes, allowed: str, limit_bytes: int) -> str:
    if len(content) > limit_bytes:
        raise UsageError(f"{name}: found more than {limit_bytes} bytes, allowed {limit_bytes}")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: not {allowed}: byte {error.start} is not UTF-8") from error
