"""Python of pages, examples and the notebook runs as printed: what pages tune on fakes, all else really."""

import json
import runpy
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tests.cli.real import brief_remeasurement, real_candidates
from tests.docs.guide import ROOT, blocks_of
from tests.tuning import fakes
from tuner.core.candidate import TargetName
from tuner.db.store import Store
from tuner.targets.target import TargetStatus


def python_of(page: str) -> str:
    (block,) = (block for block in blocks_of((ROOT / page).read_text()) if block.language == "python")
    return block.text


README = blocks_of((ROOT / "README.md").read_text())
MODULE, TUNED = (block.text for block in README if block.language == "python")
PROGRAMS = blocks_of((ROOT / "docs/guides/programs.md").read_text())
PROGRAM, SIZED = (block.text for block in PROGRAMS if block.language == "python")

# packages that not all tests have
NEEDED = dict.fromkeys(("language_model.py", "exported_language_model.py"), ("torch", "gguf", "transformers"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def executed(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(source, names)
    return names


@pytest.fixture
def own_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    Store.open(str(tmp_path / "results.db")).close()
    monkeypatch.setenv("TUNER_DB", str(tmp_path / "results.db"))
    return tmp_path / "results.db"


@pytest.fixture
def on_fakes(monkeypatch: pytest.MonkeyPatch, own_database: Path) -> None:
    backends = fakes.backends((TargetStatus("cpu", True, "for tests"),))
    monkeypatch.setattr("tuner.targets.registry.real_backends", lambda: backends)


@pytest.fixture
def real(own_database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backends = real_candidates()
    monkeypatch.setattr("tuner.targets.registry.real_backends", lambda: backends)
    monkeypatch.chdir(ROOT)


@pytest.mark.slow
@pytest.mark.usefixtures("on_fakes")
def test_a_problem_is_tuned_exported_and_called(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = executed(TUNED)
    assert names["run"].run.settings.target == TargetName("cpu")
    assert capsys.readouterr().out.startswith(f"{names['run'].best.time_s * 1e6:.0f} us, ")
    assert names["run"].best.script_text in (here / "best.mlir").read_text()
    assert (here / "best.source.mlir").exists()
    assert names["c"][0] == names["problem"]  # what the fake kernel reports


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.usefixtures("own_database")
def test_a_module_is_compiled_called_and_exported(here: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'torch>=2.6'")
    pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")
    names = executed(MODULE)
    with torch.no_grad():
        expected = names["module"](names["x"])
    torch.testing.assert_close(names["y"], expected)
    np.testing.assert_array_equal(tuner.load(here / "mlp")(names["x"].numpy()), names["y"].numpy())


@pytest.mark.slow
@pytest.mark.mlir
def test_a_program_is_compiled_and_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    *lines, graph = PROGRAM.replace('target="cuda"', 'target="simulator"').splitlines()
    assert "program.as_graph(a, b, c, d)" in graph  # which a GPU alone has
    names = executed("\n".join(lines))
    a, b, c, d = (names[name] for name in "abcd")
    np.testing.assert_allclose(names["sums"], a @ b + c @ d, rtol=1e-5)
    names["program"].close()


@pytest.mark.mlir
def test_a_program_of_a_dynamic_size_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    program = executed(f"import numpy as np\nimport tuner\n{SIZED}")["program"]
    assert f"({program.compiled_sizes[0]},): static programs" in SIZED


@pytest.mark.usefixtures("on_fakes")
def test_the_first_kernel_is_called() -> None:
    problem = tuner.Matmul(256, 256, 256)
    tuner.tune(problem, trials=2)
    assert executed(python_of("docs/getting-started/first-kernel.md"))["c"][0] == problem


@pytest.mark.mlir
def test_the_first_program_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    total = executed(python_of("docs/getting-started/first-program.md"))["total"]
    np.testing.assert_allclose(total, np.full((64, 64), 128 + 96), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.usefixtures("real")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_and_is_right(
    example: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in NEEDED.get(example.name, ()):
        pytest.importorskip(name, reason=f"{name} is not installed")
    monkeypatch.setattr("sys.argv", [str(example)])
    with brief_remeasurement():
        runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.endswith("right\n")


@pytest.mark.mlir
def test_the_page_of_examples_shows_what_python_prints(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = blocks_of((ROOT / "examples" / "README.md").read_text())
    (place,) = (place for place, block in enumerate(blocks) if block.text.startswith("python "))
    runpy.run_path(str(ROOT / shlex.split(blocks[place].text)[1]), run_name="__main__")
    assert capsys.readouterr().out == blocks[place + 1].text


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.usefixtures("real")
def test_the_notebook_runs_from_top_to_bottom() -> None:
    assert run_notebook("own_kernel.ipynb")["c"].shape == (96, 96)


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.usefixtures("real")
def test_the_notebook_of_a_pytorch_model_runs_from_top_to_bottom(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'torch>=2.6'")
    pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")
    program = run_notebook("pytorch_model.ipynb")["program"]
    assert [each.kind for each in program.function.code.fusions] == ["rows", "contraction", "contraction"]
    printed = capsys.readouterr().out
    assert "times as fast as eager" in printed or "\neager: " in printed  # no ratio on a disturbed machine
    assert "contraction, tuned" in printed


def run_notebook(name: str) -> dict[str, Any]:
    """Runs the cells of a notebook as Jupyter does; returns the names that they have defined."""
    notebook = json.loads((ROOT / "examples" / name).read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in cells)  # figures of one machine are not claims
    names: dict[str, Any] = {"__name__": "__main__"}
    with brief_remeasurement():
        for cell in cells:
            exec("".join(cell["source"]), names)
    return names
