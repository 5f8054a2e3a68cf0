"""The guide to C libraries runs as printed: tuned, exported, compiled, run; speed is not asked."""

import shutil
from pathlib import Path

import pytest

from tests.docs.guide import ROOT, Guide, blocks_of

pytestmark = [
    pytest.mark.mlir,
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler: cc on PATH"),
]

PAGE = ROOT / "docs" / "guides" / "c-library.md"


@pytest.mark.slow
def test_the_guide_is_followed_to_its_end(tmp_path: Path) -> None:
    printed = Guide(tmp_path).follow(blocks_of(PAGE.read_text()))
    assert printed.splitlines()[-2:] == ["small_matmul.c", "small_matmul.h"]
    assert (tmp_path / "libmm.so").stat().st_size > 0
