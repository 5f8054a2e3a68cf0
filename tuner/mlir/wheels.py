"""Names and versions of the wheels that compile, without importing them: that takes 0.4 s."""

from importlib.metadata import version

LLVM_OF_WHEEL = {"numba-cuda-mlir": "LLVM 23 snapshot", "torch-mlir": "LLVM snapshot of its date"}


def packages() -> tuple[tuple[str, str], ...]:
    """Returns (distribution, version) of every wheel that compiles."""
    return tuple((name, version(name)) for name in LLVM_OF_WHEEL)


def llvm_version() -> str:
    """Returns one line that names the compiler: no wheel tells its LLVM revision, the versions pin it."""
    return "; ".join(f"{name} {number} ({LLVM_OF_WHEEL[name]})" for name, number in packages())
