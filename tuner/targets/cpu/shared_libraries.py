"""Finds and loads shared libraries of this environment: of wheels, of conda, or of the system."""

import ctypes
import ctypes.util
import re
import site
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

MISSING = re.compile(r"^(\S+): cannot open shared object file")  # glibc, of a library that another one needs


def library_folders() -> tuple[Path, ...]:
    """Returns the folders where wheels and conda put shared libraries: the environment's and the user's."""
    return (Path(sys.prefix) / "lib", Path(site.getuserbase()) / "lib")


def find_shared_library(names: Iterable[str], folders: Iterable[Path] | None = None) -> str | None:
    """Returns the path of a shared library, or its name where the loader finds it; None: not installed.

    ``names`` are file names such as "libmkl_rt.so.3", the preferred first. ``folders``: searched first; None:
    those of ``library_folders``.
    """
    listed = tuple(names)
    for folder in library_folders() if folders is None else folders:
        for name in listed:
            if (folder / name).exists():
                return str(folder / name)
    stems = dict.fromkeys(name.removeprefix("lib").partition(".so")[0] for name in listed)
    return next(filter(None, map(ctypes.util.find_library, stems)), None)


def find_extension(package: str, pattern: str) -> str | None:
    """Returns the path of an extension module of a package that is installed; None: there is none.

    ``pattern`` is a glob of file names in the package's folder. The package is not imported.
    """
    spec = find_spec(package)
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    return next((str(path) for folder in folders for path in sorted(Path(folder).glob(pattern))), None)


def load_library(path: str) -> Any:
    """Loads a shared library, with libraries that it needs from its own folder; returns it as ctypes does.

    Wheels of Intel put all of a product's libraries into one folder, which the loader does not search. Raises
    OSError where the library or one that it needs cannot be loaded.
    """
    tried: set[str] = set()
    while True:
        try:
            return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            missing = MISSING.match(str(error))
            neighbour = Path(path).parent / missing[1] if missing else None
            if neighbour is None or str(neighbour) in tried or not neighbour.exists():
                raise
            tried.add(str(neighbour))
            load_library(str(neighbour))
