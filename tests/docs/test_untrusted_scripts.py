"""The page on untrusted scripts names each kind of file whose code runs when it is given to tuner."""

import pytest

from tests.docs.guide import ROOT
from tuner.programs.run.exported import CODE, DOCUMENT

PAGE = " ".join((ROOT / "docs" / "guides" / "untrusted-scripts.md").read_text().split())


@pytest.mark.parametrize(
    "named", ["transform script", "`tuner gate`", "bundles", "exported programs", "databases", "rule files"]
)
def test_each_kind_of_file_that_runs_code_is_named(named: str) -> None:
    assert named in PAGE


def test_a_folder_of_an_exported_program_has_an_object_file_that_runs_in_this_process() -> None:
    assert CODE.endswith(".o")
    assert "object file `tuner.load` and `tuner.torch.load` run in your process" in PAGE
    assert f"hashes in `{DOCUMENT}` show damage" in PAGE
