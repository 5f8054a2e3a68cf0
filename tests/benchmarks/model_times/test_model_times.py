"""Times of models: figures, and the ways in which a model is run."""

from collections import Counter

import pytest

from benchmarks.model_times.figures import ModelRatios, missed, summary
from benchmarks.model_zoo import LARGE, NETWORK, RARER, SMALL
from tuner.core.records import MedianInterval

pytestmark = pytest.mark.mlir


def certain(value: float) -> MedianInterval:
    return MedianInterval(value, value - 0.01, value + 0.01)


def model(name: str, category: str, eager: float, compiled: float | None) -> ModelRatios:
    return ModelRatios(name, category, certain(eager), None if compiled is None else certain(compiled))


def test_means_are_geometric_and_each_missed_figure_is_named() -> None:
    found = summary([model("a", LARGE, 1.0, 2.0), model("b", LARGE, 4.0, 8.0), model("c", SMALL, 3.0, 5.0)])
    assert (found.large_over_eager, found.large_over_compile) == pytest.approx((2.0, 4.0))
    assert (found.small_over_eager, found.small_over_compile) == pytest.approx((3.0, 5.0))
    assert (found.worst, found.worst_of) == (1.0, "a / eager")
    found = summary([model("a", LARGE, 2.0, None), model("b", LARGE, 2.0, 1.5)])
    assert found.large_over_compile == pytest.approx(1.5)  # without the rival that does not run
    found = summary([])
    assert (found.large_over_eager, found.worst, found.worst_of, found.slower) == (None, None, "", ())
    assert missed(found, "f32") == ()
    found, mean = summary([model("a", LARGE, 1.2, 1.1), model("b", SMALL, 1.9, 3.0)]), "geometric mean over"
    large = f"large models, {mean} eager: 1.20, demanded 1.25"
    compiled = f"large models, {mean} torch.compile: 1.10, demanded 1.15"
    assert missed(found, "f32") == (large, compiled, f"small models, {mean} eager: 1.90, demanded 2.0")
    assert missed(summary([model("a", LARGE, 1.1, 1.05)]), "bf16") == ()  # demanded of f32 only


@pytest.mark.parametrize(("high", "is_slower"), [(0.99, True), (1.0, False), (1.2, False)])
def test_a_model_is_slower_if_its_whole_interval_lies_below_1(high: float, is_slower: bool) -> None:
    rows = [
        ModelRatios("a", LARGE, certain(5.0), MedianInterval(0.95, 0.9, high)),
        model("b", LARGE, 5.0, 5.0),
    ]
    found = summary(rows)
    assert found.slower == (("a / compile",) if is_slower else ())
    assert any(line.startswith("a / compile: slower") for line in missed(found, "bf16")) == is_slower


def test_blocks_of_rarer_operators_may_be_a_little_slower() -> None:
    found = summary([model("a", RARER, 0.97, 0.92), model("b", RARER, 0.93, 0.87)])
    assert (found.large_over_eager, found.slower) == (None, ("b / eager", "b / compile"))
    assert found.rarer_over_eager == pytest.approx((0.97 * 0.93) ** 0.5)


def test_a_network_is_compared_with_each_runtime() -> None:
    runtimes = {"onnxruntime": certain(0.8), "openvino": certain(1.2)}
    network = ModelRatios("a", NETWORK, certain(1.5), certain(1.1), runtimes)
    found = summary([network])
    assert (found.network_over_eager, found.network_over_compile) == (1.5, 1.1)
    assert (found.worst, found.worst_of) == (0.8, "a / onnxruntime")
    assert found.slower == ("a / onnxruntime",)
    assert summary([ModelRatios("a", RARER, certain(1.5), certain(1.1), runtimes)]).slower == ()


NO_TORCH = "needs PyTorch: pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
torch = pytest.importorskip("torch", reason=NO_TORCH)
ways = pytest.importorskip("benchmarks.model_times.ways")
models = pytest.importorskip("benchmarks.model_zoo.models")
correctness = pytest.importorskip("benchmarks.model_times.correctness")

NotRun = pytest.importorskip("tuner.models.torch.baselines").NotRun
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


def test_models_are_of_four_categories_and_errors_are_relative_to_the_largest_number() -> None:
    assert len(MODELS) == len(models.MODELS) == 28
    assert Counter(each.category for each in models.MODELS) == {LARGE: 6, SMALL: 6, RARER: 12, NETWORK: 4}
    (first, x), (second, y) = (models.build(MODELS["dlrm"]) for _ in range(2))
    assert all(map(torch.equal, x, y))
    assert all(map(torch.equal, first.parameters(), second.parameters()))
    wanted = torch.tensor([100.0, 1.0])
    assert correctness.relative_error(torch.tensor([100.0, 2.0]), wanted) == pytest.approx(0.01)
    assert correctness.relative_error(torch.tensor([100.0, float("nan")]), wanted) == float("inf")
    assert correctness.relative_error(torch.zeros(3), wanted) == float("inf")
    assert correctness.relative_error((wanted, torch.zeros(2)), (wanted, torch.ones(2))) == 1
