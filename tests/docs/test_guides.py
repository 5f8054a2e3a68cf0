"""Guides run as printed to their end: a kernel, a model's shapes, a C library; speed is not asked."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import require
from tests.docs.guide import OWN_DATABASE, ROOT, Block, Guide, blocks_of, guide_in_copy, sections
from tuner.api.results import history
from tuner.core.candidate import Candidate
from tuner.core.matmul import Matmul
from tuner.core.records import Record
from tuner.space.scripts.header import read_provenance
from tuner.space.scripts.strategy import Binder, load_strategy

pytestmark = [pytest.mark.mlir, pytest.mark.slow]

GUIDES = ROOT / "docs" / "guides"
MODEL_IN_C = "A PyTorch model"  # a section of c-library.md
NEEDS_CC = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler: cc on PATH")


def records_in(folder: Path) -> list[Record]:
    return [trial.record for trial in history(db=f"sqlite:///{folder / OWN_DATABASE}") if trial.record]


def require_measured_and_exported(folder: Path, strategy: str) -> None:
    found = [(each.candidate.strategy, each.status) for each in records_in(folder)]
    assert found == [(strategy, "measured")] * 2
    assert read_provenance(folder / "best.mlir", (folder / "best.mlir").read_text()).strategy == strategy


def followed(page: str, folder: Path) -> str:
    return Guide(folder).follow(blocks_of((GUIDES / page).read_text()))


def test_a_kernel_of_ones_own_is_made_and_used(tmp_path: Path) -> None:
    assert followed("your-kernel.md", tmp_path) == "(200, 100)\n"
    records = records_in(tmp_path)
    problems = {(record.problem.operation, record.problem.sizes) for record in records}
    assert problems == {("contraction", (200, 100, 300))}
    assert any(record.status == "measured" for record in records)


@NEEDS_CC
def test_the_shapes_of_a_model_are_tuned_distilled_used_and_exported(tmp_path: Path) -> None:
    followed("model-shapes.md", tmp_path)
    assert "Campaign 1: 3 problems under one budget" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "mm.rule.yaml").read_text().startswith("format: tuner-rule")


@NEEDS_CC
def test_a_c_library_is_tuned_exported_compiled_and_run(tmp_path: Path) -> None:
    page = (GUIDES / "c-library.md").read_text()
    of_model = sections(page)[MODEL_IN_C]
    blocks = tuple(block for block in blocks_of(page) if block not in of_model)
    Guide(tmp_path).follow(blocks)
    assert (tmp_path / "libmm.so").stat().st_size > 0


@NEEDS_CC
def test_a_model_is_exported_compiled_and_run_in_c(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    Guide(tmp_path).follow(sections((GUIDES / "c-library.md").read_text())[MODEL_IN_C])


@NEEDS_CC
def test_a_layer_of_a_file_is_tuned_called_and_exported_for_c(tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="gguf is not installed")
    assert followed("quantized.md", tmp_path).endswith("\ntuned: 1536\n")


def test_the_example_of_a_language_model_is_what_its_page_runs(tmp_path: Path) -> None:
    """Its first commands install packages: where these are, the last one runs."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("gguf", reason="gguf is not installed")
    install, *_ = blocks_of((GUIDES / "language-model.md").read_text())
    assert install.text.splitlines()[-1] == "python examples/language_model.py"
    printed = Guide(tmp_path).follow((Block("sh", f"python {ROOT}/examples/language_model.py"),))
    assert printed.endswith("\nright\n")


def test_a_strategy_of_ones_own_is_made_tested_tuned_and_exported(tmp_path: Path) -> None:
    guide_in_copy(tmp_path).follow(blocks_of((GUIDES / "new-strategy.md").read_text()))
    require_measured_and_exported(tmp_path, "my_strategy")


# ``docs/guides/extending.md`` is followed literally, in a copy of the repository.

TESTS = (
    *("tests/__init__.py", "tests/conftest.py", "tests/postgres_server.py", "tests/statement_cache.py"),
    *("tests/default_suite.py", "tests/entry_points.py", "benchmarks/__init__.py", "benchmarks/gpu_check"),
    "tests/support",
)
EXTENDING = sections((ROOT / "docs" / "guides" / "extending.md").read_text())


def test_a_strategy_is_found_tuned_and_exported(tmp_path: Path) -> None:
    Guide(tmp_path).follow(EXTENDING["A strategy"])
    require_measured_and_exported(tmp_path, "my_tiles")


def test_a_knob_is_searched_and_bound(tmp_path: Path) -> None:
    guide = Guide(tmp_path)
    shipped = guide.follow((Block("sh", "tuner space matmul 96x96x96 --json"),))
    guide.follow(tuple(block for block in EXTENDING["A strategy"] if block.language not in ("sh", "text")))
    assert json.loads(guide.follow(EXTENDING["A knob"]))["cartesian"] > json.loads(shipped)["cartesian"]
    strategy = load_strategy("my_tiles", tmp_path / "my_tiles" / "script.mlir.j2")
    binder = Binder((strategy,), Matmul(64, 64, 64), (), threads=1)
    script = binder.bind(Candidate.of("my_tiles", {"tile_m": 2, "tile_n": 16, "unroll_k": 4}))
    assert "tile_sizes [0, 0, 4]" in script.text


def test_a_transform_op_is_called_by_a_script(tmp_path: Path) -> None:
    guide_in_copy(tmp_path).follow(EXTENDING["A transform op"])


def test_a_sampler_is_found_and_keeps_the_contract(tmp_path: Path) -> None:
    assert " passed" in guide_in_copy(tmp_path, *TESTS, "tests/search").follow(EXTENDING["A sampler"])


def test_a_target_verifies_candidates_and_is_asked_for_by_name_alone(tmp_path: Path) -> None:
    guide = guide_in_copy(tmp_path, *TESTS, "tests/source_files.py", "tests/test_target_kinds.py")
    assert " passed" in guide.follow(EXTENDING["A target"])
    records = records_in(guide.folder)
    assert [(record.target.text, record.status) for record in records] == [("busy", "verified")] * 2


@pytest.mark.slow
def test_another_distribution_adds_a_command_a_sampler_a_target_an_operation_and_a_format(
    tmp_path: Path,
) -> None:
    """It is built and installed by pip, offline, into a folder on the path."""
    *files, install, use = EXTENDING["Another distribution"]
    site = tmp_path / "site"
    guide = Guide(tmp_path, Path(f"{site}:{ROOT}"))
    guide.follow(tuple(files))
    assert install.text == "pip install -e .\n"
    offline = "python -m pip install --quiet --no-index --no-deps --no-build-isolation --target site ."
    guide.follow((Block("sh", offline),))
    for path in tmp_path.glob("tuner_extras*.py"):
        path.unlink()  # what is imported is what is installed
    printed = guide.follow((use,))
    assert printed.startswith("524288 flop\n")
    assert re.fullmatch(r"matmul 32x32x32 f32 nn none: \S+ s", (tmp_path / "times" / "times.txt").read_text())
    records = records_in(guide.folder)
    targets = {record.target.text: record.problem.key for record in records}
    assert targets == {"cpu": "matmul 32x32x32 f32 nn none", "first_core": "matmul 16x16x16 f32 nn none"}
    texts = [guide.follow((Block("sh", f"tuner {command}"),)) for command in ("--help", "targets")]
    assert "Extras:\n  flop  Prints how many operations a matmul of M x N x K does." in texts[0]
    assert "first_core" in texts[1]


# The guide to PyTorch models runs as printed: Python, the file of a model, and the command.

BLOCKS = blocks_of((GUIDES / "pytorch.md").read_text())
PYTHON = [block.text for block in BLOCKS if block.language == "python"]
PRINTED = [block.text for block in BLOCKS if block.language == "text"]
(COMMAND,) = (block.text for block in BLOCKS if block.language == "sh")


def ran(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")
    own: dict[str, Any] = {"cwd": folder, "env": {**os.environ, "PYTHONPATH": str(ROOT)}, "timeout": 300}
    return subprocess.run([sys.executable, *arguments], **own, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("number", range(len(PRINTED)))
def test_python_prints_what_the_page_on_pytorch_says(number: int, tmp_path: Path) -> None:
    done = ran(tmp_path, "-W", "ignore", "-c", PYTHON[number])
    assert done.stdout.split() == PRINTED[number].split(), done.stderr


def test_the_command_explains_the_model_of_the_page_on_pytorch(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(PYTHON[-1])
    done = ran(tmp_path, "-m", "tuner", *shlex.split(COMMAND)[1:])
    assert done.returncode == 0, done.stderr
    require(done.stdout, "equal   result 0", "g0      contraction")
