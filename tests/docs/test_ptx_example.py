"""The help's kernel runs as printed."""

from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.docs.test_examples import EXAMPLES
from tests.texts import text_beside
from tests.tuning import fakes

AXPY = text_beside(__file__, "AXPY")


def test_the_kernel_of_the_help_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (options,) = {
        each.words for each in EXAMPLES if each.words[:2] == ("ptx", "run") and "--help" not in each.words
    }
    monkeypatch.chdir(tmp_path)
    (tmp_path / "axpy.ptx").write_text(AXPY)
    done = Tuner(tmp_path / "results.db", fakes.backends())(*options)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("axpy: 8 blocks, ")
