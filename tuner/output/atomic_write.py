"""Files that commands write: whole, or not at all."""

import os
import tempfile
from pathlib import Path

from tuner.core.errors import UsageError


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all. Raises UsageError when the place cannot take it."""
    temporary = ""
    try:
        if path.exists() and not path.is_file():  # a device or a pipe is written to, never replaced
            path.write_bytes(content)
            return
        path = path.resolve()  # a link stays one
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
    """Returns the mask of new files, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
