"""The mark of tests that make code for another architecture than this machine's."""

import pytest

from tuner.targets.cpu.llvm_tools import INSTALL, missing_tools

NEEDS_LLVM_TOOLS = pytest.mark.skipif(
    bool(missing_tools()), reason=f"needs LLVM 22's tools: {INSTALL}, or Debian's llvm-22 and mlir-22-tools"
)
