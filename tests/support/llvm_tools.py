"""LLVM's command-line tools in tests: code for another architecture, and scripts applied by a stock MLIR."""

import subprocess
from pathlib import Path

import pytest

from tuner.core.errors import install_extra
from tuner.targets.cpu.llvm_tools import ARM, llvm_tool, missing_tools

NEEDS_LLVM_TOOLS = pytest.mark.skipif(
    bool(missing_tools()),
    reason=f"needs LLVM 22's tools: {install_extra(ARM)}, or Debian's llvm-22 and mlir-22-tools",
)
MLIR_OPT = llvm_tool("mlir-opt")  # stock: of a released LLVM, not the MLIR of tuner
NO_MLIR_OPT = f"needs a stock mlir-opt: {install_extra(ARM)}, or Debian's mlir-22-tools"
NEEDS_MLIR_OPT = pytest.mark.skipif(MLIR_OPT is None, reason=NO_MLIR_OPT)


def run_mlir_opt(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs stock mlir-opt in a folder; skips the test where it is not installed."""
    if MLIR_OPT is None:
        pytest.skip(NO_MLIR_OPT)
    return subprocess.run(
        [str(MLIR_OPT), *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def has_assertions() -> bool:
    """Says whether stock mlir-opt has assertions, as the wheel's: they end it where others go on."""
    return "with assertions" in run_mlir_opt("--version").stdout


def apply_by_stock(script: str, payload: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Applies a script to a payload by stock mlir-opt, both written to files of ``folder``."""
    (folder / "script.mlir").write_text(script)
    (folder / "payload.mlir").write_text(payload)
    preload = "--transform-preload-library=transform-library-paths=script.mlir"
    return run_mlir_opt("payload.mlir", preload, "--transform-interpreter", folder=folder)


def stock_result(script: str, payload: str, folder: Path) -> str:
    """Returns the payload after a script that stock mlir-opt must be able to apply."""
    done = apply_by_stock(script, payload, folder)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
