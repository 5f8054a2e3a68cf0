"""The guide to a faster kernel of one's own runs as printed; how fast anything is, is not asked."""

from pathlib import Path

import pytest

from tests.docs.guide import OWN_DATABASE, ROOT, Guide, blocks_of
from tuner.api import history

pytestmark = pytest.mark.mlir

PAGE = ROOT / "docs" / "guides" / "your-kernel.md"


@pytest.mark.slow
def test_the_guide_is_followed_to_its_end(tmp_path: Path) -> None:
    printed = Guide(tmp_path).follow(blocks_of(PAGE.read_text()))
    assert printed == "(200, 100)\n"
    records = [trial.record for trial in history(f"sqlite:///{tmp_path / OWN_DATABASE}") if trial.record]
    assert {record.problem.operation for record in records} == {"contraction"}
    assert {record.problem.sizes for record in records} == {(200, 100, 300)}
    assert any(record.status == "measured" for record in records)
