"""Names and versions of the compiler's wheels, read without importing them, which would take 0.4 s."""

from importlib.metadata import version

LLVM_OF_WHEEL = {"numba-cuda-mlir": "LLVM 23 snapshot", "torch-mlir": "LLVM snapshot of its date"}


def packages() -> tuple[tuple[str, str], ...]:
    """Returns (distribution name, version) of each of the two Python wheels that provide MLIR and LLVM.

    Raises PackageNotFoundError for a wheel that is not installed.
    """
    return tuple((name, version(name)) for name in LLVM_OF_WHEEL)


def llvm_version() -> str:
    """Returns one line of text with the names and versions of the wheels that provide MLIR and LLVM.

    Identifies the compiler in stored results: no wheel reports its LLVM revision.
    """
    return "; ".join(f"{name} {number} ({LLVM_OF_WHEEL[name]})" for name, number in packages())
