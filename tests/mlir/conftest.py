"""Tests of this folder need the MLIR bindings, but for those of some files, which mark what does."""

import pytest

WITHOUT_BINDINGS = ("test_fingerprint.py", "test_llvm_modules.py", "test_plan.py")


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.path.name not in WITHOUT_BINDINGS:
        item.add_marker("mlir")
