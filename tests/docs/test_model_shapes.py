"""The guide to a model's shapes runs as printed: tuned, distilled, used, exported; speed is not asked."""

import shutil
from pathlib import Path

import pytest

from tests.docs.guide import ROOT, Guide, blocks_of

pytestmark = [
    pytest.mark.mlir,
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler: cc on PATH"),
]

PAGE = ROOT / "docs" / "guides" / "model-shapes.md"


@pytest.mark.slow
def test_the_guide_is_followed_to_its_end(tmp_path: Path) -> None:
    Guide(tmp_path).follow(blocks_of(PAGE.read_text()))
    page = (tmp_path / "report.html").read_text()
    assert "Campaign 1: 3 problems under one budget" in page
    assert (tmp_path / "mm.rule.yaml").read_text().startswith("format: tuner-rule")
