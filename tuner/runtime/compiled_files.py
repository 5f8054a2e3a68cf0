"""A cache of compiled code in files; a file is used only if nothing that it depends on has changed.

A file's name is a hash of its key: the sources of tuner, the versions of the compilers and the parts that the
caller names. A file that is incomplete, damaged, of another key or of another user counts as missing. Files
are written whole, then renamed, so that processes share the folder. The files that were not read for longest
are deleted first.
"""

import contextlib
import hashlib
import os
import pickle
import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, final

import numpy as np

from tuner.core.text_files import replace_file
from tuner.mlir.fingerprint import packages, sources_sha256

Value = TypeVar("Value")
MARK = b"tuner-compiled-1"
LIMIT_BYTES = 1 << 28  # of all files; a ResNet18 takes 2 MB
KEPT_SHARE = 0.75  # of the limit, once it was exceeded
PRUNED_EVERY = 64  # after the writing of one file in so many, the size of the folder is looked at


@final
@dataclass(frozen=True)
class CompiledFiles:
    """A folder of compiled files, of about ``limit_bytes`` at most; ``compiled_files`` returns the user's."""

    folder: Path
    limit_bytes: int = LIMIT_BYTES

    @staticmethod
    def key(*parts: object) -> str:
        """Returns the key of a value that depends on ``parts``, on tuner's sources and on the compilers.

        The ``repr`` of a part must describe it completely.
        """
        return hashlib.sha256(repr((_compilers(), parts)).encode()).hexdigest()

    def read(self, key: str) -> Any:
        """Returns the value that was written for a key.

        None if there is no file for the key, if it is damaged, or if another user owns it.
        """
        path = self.folder / key
        try:
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_uid != os.getuid():
                    return None
                content = file.read()
            head = len(MARK) + hashlib.sha256().digest_size
            body = content[head:]
            if content[:head] != MARK + hashlib.sha256(key.encode() + body).digest():
                return None
            os.utime(path)  # read now: is kept longer than others
            return pickle.loads(body)  # noqa: S301 - of this user, whole, and written under this key
        except (OSError, pickle.UnpicklingError):
            return None

    @property
    def is_writable(self) -> bool:
        """Returns whether the folder is there and can be written, so that another process finds a file."""
        return os.access(self.folder, os.W_OK)

    def has(self, key: str) -> bool:
        """Returns whether there is a file for a key; the file may be damaged."""
        return (self.folder / key).exists()

    def write(self, key: str, value: object) -> None:
        """Stores a value (pickled, not None) for a key; does nothing if the folder cannot be written."""
        body = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        content = MARK + hashlib.sha256(key.encode() + body).digest() + body
        with contextlib.suppress(OSError):
            replace_file(self.folder / key, content)
            if int(key[:16], 16) % PRUNED_EVERY == 0:
                self.prune()

    def kept(self, key: str, make: Callable[[], Value]) -> Value:
        """Returns the stored value of a key, else the result of ``make``, which it then stores."""
        stored: Value | None = self.read(key)
        if stored is not None:
            return stored
        made = make()
        self.write(key, made)
        return made

    def prune(self) -> None:
        """If all files exceed the limit, deletes those not read for longest, down to 75 % of the limit."""
        kept_bytes = 0
        with os.scandir(self.folder) as entries:
            files = [(entry.path, entry.stat()) for entry in entries if entry.is_file(follow_symlinks=False)]
        if sum(status.st_size for _, status in files) <= self.limit_bytes:
            return
        for path, status in sorted(files, key=lambda entry: -entry[1].st_mtime):
            kept_bytes += status.st_size
            if kept_bytes > KEPT_SHARE * self.limit_bytes:
                Path(path).unlink(missing_ok=True)


@cache
def _compilers() -> str:
    here = (platform.machine(), platform.python_version())  # a home directory may serve several architectures
    return repr((sources_sha256((".",)), packages(), here, np.__version__))


def compiled_files() -> CompiledFiles:
    """Returns the folder of this user's compiled files, in the user's cache directory (XDG_CACHE_HOME)."""
    import platformdirs

    return CompiledFiles(platformdirs.user_cache_path("tuner") / "compiled")
