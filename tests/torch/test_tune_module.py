"""A PyTorch module is tuned, and found tuned when it is compiled later."""

from pathlib import Path

import pytest

from tests.cli.real import brief_remeasurement
from tuner.core.errors import UsageError
from tuner.db.store import Store
from tuner.programs.run.fused_program import FusedFunction

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'mlir-tuner[torch]'")

pytestmark = pytest.mark.mlir


@pytest.mark.slow
def test_a_tuned_module_is_compiled_with_its_schedules(tmp_path: Path) -> None:
    import tuner.torch

    module = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.ReLU(), torch.nn.Linear(32, 24)).eval()
    x, database = torch.randn(8, 24), tmp_path / "results.db"
    with brief_remeasurement():
        program = tuner.torch.tune(module, (x,), trials=2, workers=1, baseline="eager", db=database)
    assert torch.allclose(program(x), module(x), atol=1e-5)
    assert program.tuned is not None
    assert program.tuned.campaign is not None
    assert program.tuned.campaign.trials == 2
    assert [each.fusion.origin for each in program.tuned.fusions] == ["tuned", "tuned"]
    (eager,) = program.tuned.baselines
    assert eager.name == "eager"
    assert eager.call_s is not None
    assert 0 < eager.call_s.low <= eager.call_s.median <= eager.call_s.high
    assert (eager.speed is None) == bool(eager.reason)
    with Store.open(str(database)) as store:
        (campaign,) = store.campaigns()
    assert campaign.result is not None
    assert (campaign.result.baselines, campaign.result.fusions) == ((eager,), program.tuned.fusions)
    again = tuner.torch.compile(module, (x,), db=database)
    assert isinstance(again.function, FusedFunction)
    assert [each.origin for each in again.function.code.fusions] == ["tuned", "tuned"]
    with pytest.raises(UsageError, match="no such file"):
        tuner.torch.compile(module, (x,), db=tmp_path / "missing.db")


def test_an_unknown_baseline_is_refused_before_anything_is_tuned(tmp_path: Path) -> None:
    import tuner.torch

    with pytest.raises(UsageError, match="baseline: found 'mkl', allowed all, eager, "):
        tuner.torch.tune(
            torch.nn.Linear(4, 4), (torch.ones(2, 4),), baseline="mkl", db=tmp_path / "results.db"
        )
    assert not (tmp_path / "results.db").exists()
