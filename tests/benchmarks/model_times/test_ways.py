"""Each way to run a model gives what eager gives, or says in one line why not."""

import pytest

pytestmark = pytest.mark.mlir

NO_TORCH = "needs PyTorch: pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
torch = pytest.importorskip("torch", reason=NO_TORCH)
ways = pytest.importorskip("benchmarks.model_times.ways")
models = pytest.importorskip("benchmarks.model_zoo.models")
correctness = pytest.importorskip("benchmarks.model_times.correctness")

NotRun = pytest.importorskip("tuner.torch.baselines").NotRun
SETTING = ways.Setting(torch.float32, 1, 0.0)
MODELS = {model.name: model for model in models.MODELS}


@pytest.fixture
def without_inductor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inductor runs a C++ compiler for half a minute: the benchmark's own runs do."""
    monkeypatch.setattr(ways, "COMPILE", {})


@pytest.mark.parametrize("name", ["mlp", "gpt2_step"])
@pytest.mark.usefixtures("without_inductor")
@pytest.mark.slow
def test_what_runs_gives_what_eager_gives(name: str) -> None:
    with torch.no_grad():
        made = ways.ways(MODELS[name], SETTING)
        expected = made["eager"]()
        for way in (ways.TODAY, ways.TUNER):
            assert correctness.relative_error(made[way](), expected) < 1e-5
        for call in made.values():
            if isinstance(call, NotRun):
                assert "\n" not in call.reason
            else:
                assert correctness.relative_error(call(), expected) < 1e-5


def test_there_are_twelve_models_and_errors_are_relative_to_the_largest_number() -> None:
    assert len(MODELS) == len(models.MODELS) == 12
    assert {model.is_large for model in models.MODELS} == {True, False}
    (first, x), (second, y) = (models.build(MODELS["dlrm"]) for _ in range(2))
    assert all(map(torch.equal, x, y))
    assert all(map(torch.equal, first.parameters(), second.parameters()))
    wanted = torch.tensor([100.0, 1.0])
    assert correctness.relative_error(torch.tensor([100.0, 2.0]), wanted) == pytest.approx(0.01)
    assert correctness.relative_error(torch.tensor([100.0, float("nan")]), wanted) == float("inf")
    assert correctness.relative_error(torch.zeros(3), wanted) == float("inf")
    assert correctness.relative_error((wanted, torch.zeros(2)), (wanted, torch.ones(2))) == 1
