"""Python of pages runs as printed: tuning on fakes in place of compiler and clock, programs really."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tests.docs.guide import ROOT, blocks_of
from tests.tuning import fakes
from tuner.core.target_name import TargetName
from tuner.tuning.target_kind import TargetStatus


def python_of(page: str) -> str:
    """Returns the one block of Python of a page."""
    (block,) = (block for block in blocks_of((ROOT / page).read_text()) if block.language == "python")
    return block.text


TUNED = python_of("README.md")
PROGRAM = python_of("docs/guides/programs.md")


def test_a_problem_is_tuned_exported_and_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    composition = fakes.composition((TargetStatus("cpu", True, "for tests"),))
    monkeypatch.setattr("tuner.tuning.parts.real.real_composition", lambda: composition)
    monkeypatch.setenv("TUNER_DB", str(tmp_path / "results.db"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(TUNED, names)
    assert names["run"].run.settings.target == TargetName("cpu")
    assert capsys.readouterr().out.startswith(f"{names['run'].best.time_s * 1e6:.0f} us, ")
    assert names["run"].best.script_text in (tmp_path / "best.mlir").read_text()
    assert (tmp_path / "best.source.mlir").exists()
    assert names["c"][0] == names["problem"]  # what the fake kernel tells of itself


@pytest.mark.mlir
def test_a_program_is_compiled_and_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    *lines, graph = PROGRAM.replace('target="cuda"', 'target="simulator"').splitlines()
    assert "program.as_graph(a, b, c, d)" in graph  # which a GPU alone has
    rng, shapes = np.random.default_rng(0), {"a": (64, 128), "b": (128, 64), "c": (64, 96), "d": (96, 64)}
    names: dict[str, Any] = {name: rng.random(shape, np.float32) for name, shape in shapes.items()}
    exec("\n".join(lines), names | {"tuner": tuner}, names)
    a, b, c, d = (names[name] for name in shapes)
    np.testing.assert_allclose(names["sums"], a @ b + c @ d, rtol=1e-5)
    names["program"].close()
