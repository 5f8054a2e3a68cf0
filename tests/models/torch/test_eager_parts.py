"""Operators in PyTorch next to fusions: which nodes a fusion computes, and when a module runs in parts."""

import warnings
from typing import Any

import pytest

import tuner
from tuner.core.errors import UsageError
from tuner.results.output.program_tables import baseline_document, baseline_lines, baseline_table

pytestmark = pytest.mark.mlir

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip

import tuner.torch  # noqa: E402
from tuner.models.torch import eager_parts  # noqa: E402
from tuner.models.torch.baselines import Example, compared_baseline  # noqa: E402
from tuner.models.torch.eager_parts import compared_with_eager, regions_of, split_program, with_fallback  # noqa: E402
from tuner.models.torch.graph_export import exported_graph  # noqa: E402
from tuner.models.torch.module_parts import ModuleGraph  # noqa: E402


class Network(nn.Module):
    """A convolution, pooling, attention whose weights are cut, several results, one of them a view."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(2)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.register_buffer("shift", torch.arange(16.0))

    def forward(self, x: Any) -> tuple[Any, ...]:
        y = self.pool(torch.relu(self.norm(self.convolution(x))))
        left, right = y.flatten(2).split([9, 7], 2)
        rows = torch.cat([right, left], 2)
        attended = self.attention(rows, rows, rows, need_weights=False)[0]
        return attended + self.shift, x.transpose(2, 3), self.shift * 2, left.sum(2)


X = torch.linspace(-2, 2, 192).reshape(1, 3, 8, 8)


@pytest.fixture(scope="module")
def network() -> Any:
    torch.manual_seed(0)
    module = Network().eval()
    with torch.no_grad():
        for each in (module.norm.running_mean, module.norm.running_var):
            each.add_(0.25)
    return module


@pytest.fixture(scope="module")
def program(network: Any) -> Any:
    return tuner.torch.compile(network, (X,))


@pytest.fixture(scope="module")
def graph(network: Any) -> ModuleGraph:
    return ModuleGraph.of(exported_graph(network, (X,)), (X,))


@pytest.mark.slow
def test_the_nodes_of_each_fusion_are_known_and_each_node_is_in_one_region(
    graph: ModuleGraph, program: Any
) -> None:
    before = [dict(node.meta) for node in graph.program.graph.nodes]
    fusions = eager_parts.sourced_fusions(graph.program)
    assert [node.meta.get("stack_trace") for node in graph.program.graph.nodes] == [
        each.get("stack_trace") for each in before
    ]
    assert [each.ops for each in fusions] == [each.ops for each in program.function.code.fusions]
    regions = regions_of(graph, fusions)
    assert sorted(number for each in regions for number in each.fusions) == [*range(len(fusions))]
    nodes = [node.name for each in regions for node in each.nodes]
    assert len(nodes) == len({*nodes})
    texts = [each.text.partition(" (")[0] for each in regions]
    assert texts[:2] == ["conv2d, batch_norm, relu", "max_pool2d"]
    assert any("scaled_dot_product_attention" in text for text in texts)


def compile_part(module: Any, tensors: tuple[Any, ...]) -> Any:
    return tuner.torch.compile(module, tensors)


def in_torch_of(graph: ModuleGraph, *names: str) -> frozenset[Any]:
    return frozenset(node for node in graph.nodes if any(name in node.name for name in names))


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("names", "count"),
    [(("max_pool2d",), 3), (("split", "sum"), 3), (("",), 1), (("conv2d", "linear"), 7)],
)
def test_a_module_in_parts_is_right_as_a_whole_and_shares_no_memory(
    network: Any, program: Any, graph: ModuleGraph, names: tuple[str, ...], count: int
) -> None:
    split = split_program(program, graph, in_torch_of(graph, *names), "some", compile_part)
    function: Any = split.function
    assert len(function.parts) == count
    x = X.flip(3).contiguous()
    with torch.no_grad():
        expected = network(x)
    found = split(x)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
    addresses = {each.untyped_storage().data_ptr() for each in (*found, x, network.shift)}
    assert len(addresses) == len(found) + 2
    assert not any(each.requires_grad for each in found)
    with pytest.raises(UsageError, match=r"found float32 of shape \(1, 3, 8, 4\), allowed float32"):
        split(x[..., :4])
    with pytest.raises(UsageError, match="only a program of fusions is exported: in PyTorch: some"):
        split.export("nowhere")


@pytest.mark.slow
def test_an_operator_that_writes_in_place_is_replaced_by_one_that_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class InPlace(nn.Module):
        def forward(self, x: Any) -> tuple[Any, ...]:
            y = x @ x.t()
            before = y.cumsum(1)  # reads what the next line changes
            return y.relu_() @ x, before

    module, x = InPlace(), torch.linspace(-1, 1, 64).reshape(8, 8)
    program = tuner.torch.compile(module, (x,))
    monkeypatch.setattr(eager_parts, "_slower", lambda *_: iter(()))
    graph = compared_with_eager(module, Example(module, (x,), {}), program).graph
    assert graph is not None
    assert [node.name for node in graph.nodes if "relu_" in str(node.target)] == []
    split = split_program(program, graph, in_torch_of(graph, "cumsum"), "cumsum", compile_part)
    for one, other in zip(split(x), module(x), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_weights_of_operators_in_torch_are_copies_whose_changes_are_named(network: Any) -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Softmax(1)).eval()
    x = torch.ones(2, 4)
    whole, graph = tuner.torch.compile(module, (x,)), ModuleGraph.of(exported_graph(module, (x,)), (x,))
    split = split_program(whole, graph, frozenset(graph.nodes), "all", tuner.torch.compile)
    before = split(x)
    with torch.no_grad():
        module[0].weight.add_(1)
    assert torch.equal(split(x), before)
    assert split.stale() == ("0.weight",)


STEADY_S = tuple(1e-4 * (1 + 0.001 * (place % 3)) for place in range(60))
OF_ALL = "in PyTorch: all operators; a call takes 0.40 of the time"
FACTORS = {"tuner": 1.0, "tuner again": 1.0, "eager": 0.5}


@pytest.mark.parametrize(
    ("factors", "said"),
    [
        ({"part": 0.7, "all": 0.9}, "in PyTorch: conv2d, batch_norm, relu (g0 .. g1); max_pool2d (g2)"),
        pytest.param({"part": 0.7, "all": 0.4}, OF_ALL, marks=pytest.mark.slow),
        pytest.param({"part": 1.2, "all": 1.4}, "", marks=pytest.mark.slow),
        ({"part": 1.0, "all": 1.0}, ""),  # not distinguishable
    ],
)
def test_operators_stay_in_torch_only_where_a_call_is_faster(
    network: Any, program: Any, factors: dict[str, float], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def times(calls: Any, _seconds: float, **_options: Any) -> dict[str, tuple[float, ...]]:
        for call in calls.values():
            call()
        return {name: tuple((FACTORS | factors)[name] * each for each in STEADY_S) for name in calls}

    monkeypatch.setattr(eager_parts, "interleaved_times", times)
    monkeypatch.setattr(eager_parts, "_least_s", lambda run: 0.0 if run() else 1e-4)
    monkeypatch.setattr(eager_parts, "LOOPS_LIMIT", 0.0)
    found = compared_with_eager(network, Example(network, (X,), {}), program)
    slower = [each.part for each in found.baselines]
    assert slower[:2] == ["conv2d, batch_norm, relu (g0 .. g1)", "max_pool2d (g2)"]
    kept, line = with_fallback(program, found, None, 1)
    assert line.startswith(said)
    assert (kept is program) == (not said)
    with torch.no_grad():
        torch.testing.assert_close(kept(X)[0], network(X)[0], rtol=1e-5, atol=1e-5)
    first, *_ = baseline_lines(found.baselines[:1], None)[-1:]
    assert first.startswith("slower  than eager, conv2d, batch_norm, relu (g0 .. g1): 0.50 times as fast")
    assert baseline_table(found.baselines)[1][0] == "eager, conv2d, batch_norm, relu (g0 .. g1)"
    assert baseline_document(found.baselines[1])["part"] == "max_pool2d (g2)"


def test_a_graph_in_a_graph_is_compared_as_a_whole_only_and_said() -> None:
    class Cast(nn.Module):
        def forward(self, x: Any) -> Any:
            with torch.autocast("cpu"):
                return x @ x

    module, x = Cast(), torch.ones(4, 4)
    program = tuner.torch.compile(module, (x,))
    found = compared_with_eager(module, Example(module, (x,), {}), program)
    assert (found.graph, found.slower) == (None, ())
    kept, line = with_fallback(program, found, None, 1)
    assert kept is program
    assert line.startswith("no operator was kept in PyTorch: ")
    assert line.endswith("has a graph of its own")


@pytest.mark.slow
def test_a_fallback_that_is_not_known_is_refused_and_eager_gives_the_same_numbers() -> None:
    module, x = nn.Linear(4, 4).eval(), torch.ones(2, 4)
    with pytest.raises(UsageError, match="fallback: found 'inductor', allowed none, eager"):
        tuner.torch.compile(module, (x,), fallback="inductor")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether operators stay in PyTorch is a matter of times
        program = tuner.torch.compile(module, (x,), fallback="eager")
    with torch.no_grad():
        torch.testing.assert_close(program(x), module(x), rtol=1e-5, atol=1e-5)


class IgnoredLabels(nn.Module):
    """A loss whose labels are computed: a region that is timed after others reads them overwritten."""

    def forward(self, x: Any, labels: Any) -> Any:
        return nn.functional.cross_entropy(x, labels.where(labels > 0, -100))


@pytest.mark.slow
def test_a_region_whose_indices_are_overwritten_is_not_timed() -> None:
    inputs = (torch.randn(6, 5), torch.tensor([1, 2, 1, 3, 0, 0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as above
        program = tuner.torch.compile(IgnoredLabels(), inputs, fallback="eager")
    torch.testing.assert_close(program(*inputs), IgnoredLabels()(*inputs))


def test_a_part_is_no_baseline_of_the_whole_program() -> None:
    fast = compared_baseline(
        "eager", STEADY_S, tuple(2 * each for each in STEADY_S), tuple(2 * each for each in STEADY_S)
    )
    assert fast.is_faster
    assert fast.title == "eager"
    assert not compared_baseline("eager", STEADY_S, STEADY_S, STEADY_S).is_faster
