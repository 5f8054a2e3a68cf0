"""``docs/guides/extending.md`` is followed literally, in a copy of the repository."""

import json
from pathlib import Path

import pytest

from tests.docs.guide import OWN_DATABASE, ROOT, Block, Guide, guide_in_copy, sections
from tuner.api import history
from tuner.core.candidate import Candidate
from tuner.core.problem import Matmul
from tuner.space.scripts.header import read_provenance
from tuner.space.scripts.strategy import Binder, load_strategy

pytestmark = pytest.mark.mlir

TESTS = (
    *("tests/__init__.py", "tests/conftest.py", "tests/postgres_server.py", "tests/statement_cache.py"),
    "tests/default_suite.py",
    *("benchmarks/__init__.py", "benchmarks/gpu_check"),
)
GUIDES = sections((ROOT / "docs" / "guides" / "extending.md").read_text())


@pytest.fixture
def guide(tmp_path: Path) -> Guide:
    return Guide(tmp_path)


def files_of(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    return tuple(block for block in blocks if block.language not in ("sh", "text"))


@pytest.mark.slow
def test_a_strategy_is_found_tuned_and_exported(guide: Guide) -> None:
    guide.follow(GUIDES["A strategy"])
    records = [trial.record for trial in history(f"sqlite:///{guide.folder / OWN_DATABASE}") if trial.record]
    assert [(record.candidate.strategy, record.status) for record in records] == [
        ("my_tiles", "measured")
    ] * 2
    script = (guide.folder / "best.mlir").read_text()
    assert read_provenance(script, "best.mlir").strategy == "my_tiles"


@pytest.mark.slow
def test_a_knob_is_searched_and_bound(guide: Guide) -> None:
    shipped = guide.follow((Block("sh", "tuner space matmul 96x96x96 --json"),))
    guide.follow(files_of(GUIDES["A strategy"]))
    wider = guide.follow(GUIDES["A knob"])
    assert json.loads(wider)["cartesian"] > json.loads(shipped)["cartesian"]
    strategy = load_strategy("my_tiles", guide.folder / "my_tiles.mlir.j2")
    binder = Binder((strategy,), Matmul(64, 64, 64), (), threads=1)
    script = binder.bind(Candidate.of("my_tiles", {"tile_m": 2, "tile_n": 16, "unroll_k": 4}))
    assert "tile_sizes [0, 0, 4]" in script.text


@pytest.mark.slow
def test_a_transform_op_is_called_by_a_script(tmp_path: Path) -> None:
    guide_in_copy(tmp_path).follow(GUIDES["A transform op"])


@pytest.mark.slow
def test_a_sampler_is_found_and_keeps_the_contract(tmp_path: Path) -> None:
    guide = guide_in_copy(tmp_path, *TESTS, "tests/search")
    printed = guide.follow(GUIDES["A sampler"])
    assert " passed" in printed


@pytest.mark.slow
def test_a_target_verifies_candidates_and_is_asked_for_by_name_alone(tmp_path: Path) -> None:
    guide = guide_in_copy(tmp_path, *TESTS, "tests/source_files.py", "tests/test_target_kinds.py")
    printed = guide.follow(GUIDES["A target"])
    assert " passed" in printed
    records = [trial.record for trial in history(f"sqlite:///{guide.folder / OWN_DATABASE}") if trial.record]
    assert [(record.target.text, record.status) for record in records] == [("busy", "verified")] * 2
