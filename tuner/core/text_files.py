"""Files that users name: messages for missing ones, reading their text with a limit, replacing them whole."""

import contextlib
import itertools
import sys
import tempfile
from pathlib import Path

from tuner.core.errors import UsageError, nearest

LIMIT_BYTES = 64 << 20  # of a script or payload
NAMES_LIMIT = 2000  # names of a folder that a missing file's name is compared with


def similar_file_hint(path: Path) -> str:
    """Returns "did you mean FILE?" for a missing file: FILE is the most similar name in its folder.

    Of a large folder only NAMES_LIMIT names are compared. "" if the file exists, or if no name is similar.
    """
    near = ""
    with contextlib.suppress(OSError):  # its folder is missing, too
        names = [file.name for file in itertools.islice(path.parent.iterdir(), NAMES_LIMIT)]
        near = "" if path.exists() else nearest(path.name, names)
    if near:
        return f"did you mean {path.with_name(near)}?"
    return ""


def unreadable(path: Path, error: OSError, allowed: str, hint: str = "") -> UsageError:
    """Returns the UsageError for a file that cannot be read.

    ``allowed``: what the file should be, as in "expected a search-space file". ``hint``: used for a missing
    file that has no similar name next to it.
    """
    line = f"{path}: cannot be read ({error.strerror or error}), expected {allowed}"
    if path.exists():
        return UsageError(line)
    return UsageError(line, similar_file_hint(path) or hint)


def read_text(path: Path, allowed: str, limit_bytes: int = LIMIT_BYTES, hint: str = "") -> str:
    """Returns the text of a UTF-8 file.

    ``allowed``: what the file should be, for messages; ``hint``: how to make one. Raises UsageError for a
    file that cannot be read, has more than ``limit_bytes``, or is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            content = file.read(limit_bytes + 1)  # /dev/zero has no end
    except OSError as error:
        raise unreadable(path, error, allowed, hint) from error
    return _decoded_text(str(path), content, allowed, limit_bytes)


def read_text_or_stdin(path: Path, allowed: str, limit_bytes: int = LIMIT_BYTES, hint: str = "") -> str:
    """Returns the text of a UTF-8 file, or of standard input if ``path`` is "-".

    ``allowed``: what the text should be, for messages; ``hint``: how to make such a file. Raises UsageError
    for a file that cannot be read, has more than ``limit_bytes``, or is not UTF-8.
    """
    if str(path) != "-":
        return read_text(path, allowed, limit_bytes, hint)
    try:
        content = sys.stdin.buffer.read(limit_bytes + 1)
    except (OSError, AttributeError) as error:  # a folder; None where standard input is closed
        reason = getattr(error, "strerror", None) or "it is closed"
        raise UsageError(f"standard input: cannot be read ({reason}), expected {allowed}") from error
    return _decoded_text("standard input", content, allowed, limit_bytes)


def _decoded_text(name: str, content: bytes, allowed: str, limit_bytes: int) -> str:
    if len(content) > limit_bytes:
        raise UsageError(f"{name}: found more than {limit_bytes} bytes, allowed {limit_bytes}")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: not {allowed}: byte {error.start} is not UTF-8") from error


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file completely or not at all: to a temporary file first. Raises OSError.

    Makes the folder where it is missing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            Path(file.name).replace(path)
        except OSError:  # a full disk
            Path(file.name).unlink(missing_ok=True)
            raise
