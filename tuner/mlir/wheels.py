"""Names and versions of the compiler's wheels, read without importing them, which would take 0.4 s."""

from importlib.metadata import version

LLVM_OF_WHEEL = {"numba-cuda-mlir": "LLVM 23 snapshot", "torch-mlir": "LLVM snapshot of its date"}


def packages() -> tuple[tuple[str, str], ...]:
    """Returns (distribution, version) of every wheel that is part of the compiler."""
    return tuple((name, version(name)) for name in LLVM_OF_WHEEL)


def llvm_version() -> str:
    """Returns one line that identifies the compiler by wheel versions: no wheel reports its LLVM revision."""
    return "; ".join(f"{name} {number} ({LLVM_OF_WHEEL[name]})" for name, number in packages())
