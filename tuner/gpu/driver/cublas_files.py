"""Where cuBLAS and cuBLASLt are installed: with torch, cupy, the wheel nvidia-cublas, or CUDA."""

import importlib.util
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tuner.core.errors import TunerError

NOT_FOUND: Final = "no cuBLAS found (pip install nvidia-cublas)"
WHEELS = ("cu*/lib", "cublas/lib")  # in the wheels nvidia-cublas and nvidia-cublas-cuXX, nvidia/
SYSTEM = (Path("/usr/local/cuda/lib64"), Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib64"))
PATTERN = "libcublas.so.*"


def find_cublas() -> str:
    """Loads cuBLAS with the package cuda.pathfinder, and returns the path of the loaded file.

    Where that package is not installed, loads nothing and returns ``cublas_file()``. Raises TunerError if
    there is no cuBLAS, or if it was loaded before from an unknown path.
    """
    try:
        from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib
    except ImportError as error:
        file = cublas_file()
        if file is None:
            raise TunerError(NOT_FOUND) from error
        return str(file)
    try:
        path = load_nvidia_dynamic_lib("cublas").abs_path
    except DynamicLibNotFoundError as error:
        raise TunerError(NOT_FOUND) from error
    if path is None:
        raise TunerError("cuBLAS was loaded before, from an unknown path")
    return str(path)


def cublas_file(system: Iterable[Path] = SYSTEM) -> Path | None:
    """Returns the newest cuBLAS of an installed wheel, else of the folders ``system``; None without one."""
    spec = importlib.util.find_spec("nvidia")
    wheels = [] if spec is None else list(map(Path, spec.submodule_search_locations or ()))
    for root, pattern in itertools.product(wheels, WHEELS):
        newest = _newest(root.glob(pattern))
        if newest is not None:
            return newest
    return _newest(system)


def _newest(folders: Iterable[Path]) -> Path | None:
    files = [file for folder in folders for file in folder.glob(PATTERN)]
    return max(files, key=_version, default=None)


def _version(file: Path) -> tuple[tuple[int, ...], int]:
    """Returns a sort key of a file: the major version after ``.so.``, then the shortest name last."""
    suffixes = file.name.removeprefix("libcublas.so.").split(".")
    numbers = tuple(int(text) for text in suffixes if text.isdigit())
    return numbers[:1], -len(suffixes)


def library_next_to(cublas: str) -> str:
    """Returns the path of libcublasLt in the folder of the libcublas at ``cublas``; does not check it."""
    file = Path(cublas)
    return str(file.with_name(file.name.replace("libcublas.so", "libcublasLt.so")))
