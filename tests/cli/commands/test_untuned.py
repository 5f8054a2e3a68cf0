"""``tune --trials 0`` and ``export --untuned``: a choice without a search, marked as not timed."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner, require
from tests.models.library.dispatch.rules import configurations, machine, rule_of, ship
from tuner.core.matmul import Matmul
from tuner.gpu.ptxsim.target import cycle_model
from tuner.space.scripts.header import read_provenance
from tuner.targets.registry import real_backends

pytestmark = pytest.mark.mlir

SECONDS = (1e-3, 2e-3)  # of the packed and the direct configuration
PROBLEMS = (Matmul(64, 48, 32), Matmul(32, 48, 64), Matmul(40, 56, 72))
RULE = rule_of(dict.fromkeys(PROBLEMS, SECONDS))
SHIPPED = replace(RULE, problems=tuple(replace(each, best_s=8e-4) for each in RULE.problems))
STRATEGIES = tuple(each.strategy for each in configurations())


@pytest.fixture
def real(tmp_path: Path) -> Tuner:
    return Tuner(tmp_path / "results.db", real_backends())


def test_the_choice_of_the_shipped_results_has_a_range_and_is_not_stored(
    real: Tuner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ship(tmp_path, monkeypatch, SHIPPED)
    said = real.done("tune matmul 64x48x33 --dtype f32 --trials 0").out
    require(said, "not tuned and not timed here: shipped results of some (3 shapes)", "strategy  matmul_cpu_")
    require(said, "0.80 .. 0.80 of the fastest known, on 3 shapes held out", "--untuned -o best.mlir")
    document = real.done("tune matmul 64x48x33 --dtype f32 --trials 0 --json").json
    assert (document["is_timed"], document["strategy"] in STRATEGIES) == (False, True)
    assert not real.database.exists()
    path = tmp_path / "best.mlir"
    done = real.done("export matmul 64x48x33 --untuned -o", str(path))
    require(done.err, f"wrote {path}", "note: not tuned and not timed here", "run best.mlir by:")
    provenance = read_provenance(path, path.read_text())
    assert (provenance.median_s, provenance.strategy in STRATEGIES) == (None, True)
    assert provenance.machine == machine().name
    assert provenance.untuned.startswith("not tuned and not timed here: shipped results of some")
    assert "Chosen by tuner" in path.read_text()
    assert (tmp_path / "best.source.mlir").read_text().count("linalg.") >= 1


def test_without_shipped_results_a_model_chooses_and_nothing_is_said_of_its_speed(
    real: Tuner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ship(tmp_path, monkeypatch)
    said = real.done("tune matmul 64x48x33 --dtype f32 --trials 0").out
    require(said, "the cost model's first choice; speed unknown: nothing was measured on")
    (tmp_path / "other").mkdir()
    ship(tmp_path / "other", monkeypatch, replace(SHIPPED, machine="another"))
    said = " ".join(real.done("tune matmul 64x48x33 --dtype f32 --trials 0").out.split())
    require(said, "speed unknown: nothing was measured on", "; there speed 0.80 .. 0.80 of the fastest known")


def test_a_stock_script_and_refusals(real: Tuner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ship(tmp_path, monkeypatch)
    assert '"tuner.' not in real.done("export matmul 64x48x33 --untuned --stock").out
    for options, line in (
        ("--trial 1", "--untuned cannot be combined with --trial"),
        ("--format ptx", "--untuned cannot be combined with --format"),
    ):
        done = real(f"export matmul 64x48x33 --untuned {options}")
        assert (done.code, line in done.err) == (2, True), done.err
    assert real("export --untuned").err.startswith("error: export: the problem is missing")


@pytest.mark.slow
def test_of_a_gpu_the_least_predicted_cycles_of_the_machine_code_decide(
    real: Tuner, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = real.done("tune matmul 256x256x256 --dtype f16 --target simulator:sm_90 --trials 0").out
    require(said, "not tuned and not timed here: ", "speed unknown: nothing was measured on a GPU")
    monkeypatch.setattr(cycle_model, "nvdisasm", lambda: None)
    said = real.done("tune matmul 256x256x256 --dtype f16 --target simulator:sm_90 --trials 0").out
    require(said, "the first initial configuration that compiles; cycles were not predicted")
