"""Writes the files of a command atomically: one file, or several into one folder."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tuner.core.errors import UsageError


def write_atomically(path: Path, content: bytes) -> None:
    """Replaces a file completely or not at all, or writes to a device or pipe.

    Raises UsageError if writing fails, and for a name that begins with "-": ``-o -`` and ``-o --json`` are
    typing errors.
    """
    if path.name.startswith("-"):
        raise UsageError(f"{path}: the name of a file cannot begin with '-'", "without -o text is printed")
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
        mask = os.umask(0)  # POSIX can only read it by setting it
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error


def require_folder(folder: Path) -> None:
    """Raises UsageError if ``folder`` exists and is not a folder; a missing one is allowed."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file, not a folder to write into")


def write_folder(folder: Path, files: Mapping[str, bytes]) -> tuple[Path, ...]:
    """Writes files (name -> content) into a folder, which is made if it is missing; returns their paths.

    All files are on the disk before the first is renamed into place, so that a full disk leaves the folder's
    files as they were. Raises UsageError if the folder or a file cannot be written.
    """
    require_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".writing.") as name:
            staged = Path(name)
            for file, content in files.items():
                (staged / file).parent.mkdir(parents=True, exist_ok=True)
                write_atomically(staged / file, content)
            for file in files:
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (staged / file).replace(folder / file)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror or error}") from error
    return tuple(folder / file for file in files)
