"""What first uses measured, on disk: a file per problem, machine, compiler and number of threads."""

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tuner.core.dataclass_json import decode, encode, parsed, require_format
from tuner.core.documents import PROBLEM
from tuner.core.errors import UsageError
from tuner.core.problem import Problem
from tuner.library.dispatch.first_use import FirstUse
from tuner.workers.file_lock import file_lock

FORMAT: Final = "tuner-first-use"
VERSION: Final = 1


def default_folder() -> Path:
    """Returns the folder of the files in the user's cache directory."""
    import platformdirs

    return platformdirs.user_cache_path("tuner") / "first-use"


@dataclass(frozen=True)
class FirstUseKey:
    """All that a time depends on; sizes as they are, and the alignment of the arrays in the problem."""

    problem: Problem = field(metadata=PROBLEM)
    machine: str  # Machine.name
    compiler: str  # Compiler.fingerprint
    threads: int
    baseline: str  # with version and threads

    @property
    def name(self) -> str:
        """Returns the name of the key's file, without a suffix."""
        return hashlib.sha256(json.dumps(encode(self), sort_keys=True).encode()).hexdigest()[:40]


@dataclass(frozen=True)
class _Stored:
    """The content of a file."""

    format: str
    version: int
    key: FirstUseKey
    first_use: FirstUse


class FirstUseCache:
    """Files in a folder, which processes share: a file is written whole, then renamed."""

    def __init__(self, folder: Path) -> None:
        """Takes the folder, which is made when the first file is written."""
        self._folder = folder

    def read(self, key: FirstUseKey) -> FirstUse | None:
        """Returns what is stored for a key; None where nothing is, or where the file is damaged."""
        path = self._folder / f"{key.name}.json"
        try:
            document = parsed(path.read_bytes(), path.name)
            require_format(document, FORMAT, VERSION, path.name)
            stored = decode(_Stored, document, f"{path.name}: ")
        except (OSError, UsageError):
            return None
        return stored.first_use if stored.key == key else None

    def write(self, key: FirstUseKey, first_use: FirstUse) -> None:
        """Stores what a first use measured; does nothing where the folder cannot be written."""
        content = json.dumps(encode(_Stored(FORMAT, VERSION, key, first_use)), indent=1).encode()
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._folder, prefix=".", delete=False) as file:
                file.write(content)
            Path(file.name).replace(self._folder / f"{key.name}.json")

    @contextlib.contextmanager
    def held(self, key: FirstUseKey) -> Iterator[None]:
        """Context manager: one process at a time works on a key; without a lock where none can be made."""
        descriptor = None
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(
                self._folder / f"{key.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666
            )
        if descriptor is None:
            yield
            return
        with file_lock(descriptor):
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
