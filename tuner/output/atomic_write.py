"""Writes files of commands atomically."""

import os
import tempfile
from pathlib import Path

from tuner.core.errors import UsageError


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file completely or not at all; a device or a pipe is written to directly.

    Replaces an existing file. Raises UsageError if the file cannot be written.
    """
    temporary = ""
    try:
        if path.exists() and not path.is_file():  # a device or a pipe is written to, not replaced
            path.write_bytes(content)
            return
        path = path.resolve()  # a symbolic link is kept, its target is replaced
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = file.name
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error


def _umask() -> int:
    """Returns the process's umask, which POSIX can only read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
