"""torch.compile(backend="tuner"): graphs are taken or left and counted; parameters may change; networks."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.mlir,
    pytest.mark.filterwarnings("ignore"),  # of torch, about its own code
    pytest.mark.usefixtures("fresh_back_end"),
]

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import _dynamo as dynamo  # noqa: E402 - after the skip
from torch import nn  # noqa: E402
from torch._dynamo.backends.registry import _BACKENDS, _COMPILER_FNS  # noqa: E402
from torch._inductor import config as inductor_config  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402

import tuner.torch  # noqa: E402
from tests.models.exports import export, networks  # noqa: E402
from tuner.core.errors import UsageError  # noqa: E402
from tuner.models.run.fused_program import FusedFunction  # noqa: E402
from tuner.models.torch import dynamo_backend, graph_fallbacks  # noqa: E402
from tuner.models.torch.baselines import is_faster  # noqa: E402
from tuner.models.torch.bound_graph import BoundGraph  # noqa: E402
from tuner.models.torch.weights import WeightContents  # noqa: E402

X = torch.linspace(-2, 2, 64).reshape(4, 16)


equal = partial(torch.testing.assert_close, rtol=1e-5, atol=1e-5)


def require_counts(taken: int, left: int, reason: str = "") -> None:
    counts = tuner.torch.graph_counts()
    assert (counts.taken, counts.left) == (taken, left)
    assert left == 0 or reason in counts.reasons[0]


def test_a_module_is_one_graph_and_changed_parameters_are_seen() -> None:
    torch.manual_seed(0)
    module: Any = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8)).eval()
    compiled: Any = torch.compile(module, backend="tuner")
    with torch.no_grad():
        equal(compiled(X), module(X))
        require_counts(1, 0)
        module[0].weight.mul_(2)
        equal(compiled(X), module(X))
        equal(compiled(-X), module(-X))
    require_counts(1, 0)


def test_weights_that_freezing_puts_into_the_graph_are_constants_that_may_change() -> None:
    module: Any = nn.Linear(16, 8).eval()
    module.scale = nn.Buffer(torch.ones(8))
    module.forward = lambda x: nn.functional.linear(x, module.weight, module.bias) * module.scale
    compiled: Any = torch.compile(module, backend="tuner")
    with torch.no_grad(), inductor_config.patch(freezing=True):
        equal(compiled(X), module(X))
        module.weight.mul_(2)
        module.scale.add_(1)
        equal(compiled(X), module(X))
    require_counts(1, 0)


@pytest.mark.slow
def test_changes_that_versions_do_not_show_are_seen_where_contents_are_compared() -> None:
    module: Any = nn.Linear(16, 16).eval()
    module.scale, module.offset = nn.Buffer(torch.ones(16)), torch.zeros(16)
    module.forward = lambda x: nn.functional.linear(x, module.weight) * module.scale + module.offset
    compiled: Any = torch.compile(module, backend="tuner", options={"weights": "contents"})
    with torch.no_grad():
        equal(compiled(X), module(X))
        module.weight.data.copy_(module.weight.data.flip(0))
        module.offset.data.add_(3)
        equal(compiled(X), module(X))
        module.scale.numpy()[5] = 7
        equal(compiled(X), module(X))
        module.weight.data = module.weight.data.t()
        equal(compiled(X), module(X))
    assert tuner.torch.graph_counts().left == 0


@pytest.mark.slow
def test_weights_are_read_again_where_pytorch_counts_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = nn.Linear(16, 16).eval()
    compiled: Any = torch.compile(module, backend="tuner", options={"weights": "versions"})
    read = WeightContents.of
    reads: list[int] = []

    def counted(contents: WeightContents, tensors: Any) -> Any:
        reads.append(len(tensors))
        return read(contents, tensors)

    with torch.no_grad():
        equal(compiled(X), module(X))
        monkeypatch.setattr(WeightContents, "of", counted)
        for _ in range(3):
            equal(compiled(X), module(X))
        assert reads == []
        module.weight.mul_(1)  # the same numbers: nothing is compiled
        equal(compiled(X), module(X))
        assert reads == [1]  # not the bias
        for change in (
            lambda: module.weight.detach().neg_(),
            lambda: module.load_state_dict({"weight": torch.ones(16, 16), "bias": torch.zeros(16)}),
            lambda: setattr(module.weight, "data", module.weight.data * 3),
            lambda: setattr(module, "weight", nn.Parameter(torch.full((16, 16), 5.0))),
        ):
            change()
            equal(compiled(X), module(X))
    assert tuner.torch.graph_counts().left == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wights": "contents"}, "options: found 'wights', allowed 'weights', 'threads'"),
        ({"weights": "all"}, "options: weights: found 'all', allowed sampled, contents, versions"),
        ({"threads": 0}, "threads: found 0, allowed 1 to 256"),
    ],
)
def test_a_wrong_option_is_one_line(options: dict[str, Any], message: str) -> None:
    graph = torch.fx.symbolic_trace(nn.Linear(4, 2).eval())
    with pytest.raises(UsageError, match=message):
        dynamo_backend.backend(graph, (torch.ones(3, 4),), options=options)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_program_runs_on_as_many_threads_as_are_asked_for(threads: int) -> None:
    torch.manual_seed(0)
    rows = torch.randn(64, 128)
    weight = nn.Parameter(torch.randn(128, 96))
    graph = torch.fx.symbolic_trace(lambda x, w: (x @ w,))
    with torch.no_grad():
        compiled = dynamo_backend.backend(graph, (rows, weight), options={"threads": threads})
        torch.testing.assert_close(compiled(rows, weight)[0], rows @ weight, rtol=1e-4, atol=1e-4)
    assert isinstance(compiled, BoundGraph)
    function = compiled._compiled.code.program.function  # noqa: SLF001 - no user needs it
    assert isinstance(function, FusedFunction)
    assert function.code.threads == threads


@pytest.mark.slow
def test_weights_made_under_inference_mode_may_change() -> None:
    with torch.inference_mode():
        module = nn.Linear(16, 16).eval()
        compiled: Any = torch.compile(module, backend="tuner")
        equal(compiled(X), module(X))
        module.weight.mul_(2)
        equal(compiled(X), module(X))


@pytest.mark.slow
def test_a_break_makes_two_graphs_and_what_is_refused_is_left() -> None:
    def function(x: Any) -> Any:
        y = x @ x.t()
        dynamo.graph_break()
        return torch.sort(y)[0]

    with torch.no_grad():
        equal(torch.compile(function, backend="tuner")(X), function(X))
    require_counts(1, 1, "aten.sort")
    (reason,) = tuner.torch.graph_counts().without_graph
    assert f"{Path(__file__).name}:" in reason


def test_graphs_with_gradients_a_surrounding_autocast_or_dynamic_sizes_are_left() -> None:
    module = nn.Linear(16, 4)
    compiled: Any = torch.compile(module, backend="tuner")
    compiled(X).sum().backward()
    assert module.weight.grad is not None
    require_counts(0, 1, "autograd is not supported")
    tuner.torch.graph_counts(reset=True)
    module = nn.Linear(16, 8).eval()
    compiled = torch.compile(module, backend="tuner")
    with torch.no_grad(), torch.autocast("cpu"):
        assert compiled(X).dtype is torch.bfloat16
    require_counts(0, 1, "torch.autocast is not supported")
    tuner.torch.graph_counts(reset=True)
    compiled = torch.compile(lambda x: x @ x.t(), backend="tuner", dynamic=True)
    with torch.no_grad():
        equal(compiled(X), X @ X.t())
    require_counts(0, 1, "sizes are not static")


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x.view(-1), "result 0 shares memory with"),
        (lambda x: x + torch.rand(4, 16), "(it draws random numbers)"),
        (lambda x: x.long() // x.abs().add(1).long(), "integers are divided by what may be 0"),
    ],
    ids=["view alone", "random", "divisor"],
)
def test_a_graph_that_would_not_be_as_in_eager_mode_is_left(function: Any, reason: str) -> None:
    with torch.no_grad():
        torch.manual_seed(0)
        found = torch.compile(function, backend="tuner")(X)
        torch.manual_seed(0)
        expected = function(X)
    for one, other in zip(*map(torch.utils._pytree.tree_leaves, (found, expected)), strict=True):  # noqa: SLF001
        equal(one, other)
        assert (one.data_ptr() == X.data_ptr()) == (other.data_ptr() == X.data_ptr())
    require_counts(0, 1, reason)


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x @ x.t(), x.t()),
        lambda x: (x @ x.t(), x),
        lambda x: (y := x + 1, y[0]),
        lambda x: ((y := x @ x.t())[1:], y.t()[0], y[0] * 2),
        lambda x: (*(y := x + 1).split(2), y),
        lambda x: (torch.sort(x)[0][1], (y := x @ x.t()).expand(3, 4, 4), y),
    ],
    ids=["of an input", "an input", "of a result", "of what is no result", "parts", "of several results"],
)
def test_results_that_are_views_are_views_of_the_same_tensors(function: Any) -> None:
    def written(made: Any, x: Any) -> list[Any]:
        with torch.no_grad():
            results = [x, *made(x)]
            for number, result in enumerate(results):
                result[(0,) * result.dim()] = number + 100
            return [result.clone() for result in results]

    found = written(torch.compile(function, backend="tuner"), X.clone())
    for one, other in zip(found, written(function, X.clone()), strict=True):
        equal(one, other)
    require_counts(1, 0)


@pytest.mark.slow
def test_a_call_that_a_program_refuses_is_computed_in_eager_mode() -> None:
    compiled = dynamo_backend.backend(torch.fx.symbolic_trace(lambda x: x * 2), [X])
    with forward_ad.dual_level():
        for _ in range(2):
            tangent = forward_ad.unpack_dual(compiled(forward_ad.make_dual(X, X))).tangent
            equal(tangent, 2 * X)
    require_counts(1, 1, "forward-mode autograd is not supported")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Conv2d(8, 8, 3, groups=8), (1, 8, 9, 9)),  # depthwise: a schedule is for it
        (nn.Conv3d(2, 3, 2), (1, 2, 4, 4, 4)),  # as images
    ],
    ids=["depthwise", "3d"],
)
def test_unusual_convolutions_are_taken(module: Any, shape: Any) -> None:
    x = torch.linspace(-2, 2, torch.Size(shape).numel()).reshape(shape)
    with torch.no_grad():
        equal(torch.compile(module.eval(), backend="tuner")(x), module(x))
    require_counts(1, 0)


@pytest.mark.slow
@pytest.mark.parametrize("is_faster", [False, True])
def test_scalar_loops_are_taken_where_another_back_end_is_not_faster(
    is_faster: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dynamo_backend, "is_faster", lambda *_: is_faster)
    module = nn.MaxPool2d(17).eval()
    x = torch.linspace(-2, 2, 64 * 40 * 40).reshape(1, 64, 40, 40)
    with torch.no_grad():
        equal(torch.compile(module, backend="tuner")(x), module(x))
    why = "no schedule fits: linalg.pooling_nchw_max; eager is faster" if is_faster else ""
    require_counts(int(not is_faster), int(is_faster), why)


@pytest.mark.slow
def test_a_backend_that_fails_leaves_eager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamo_backend, "FALLBACK", "no such backend")
    with torch.no_grad():
        found = torch.compile(lambda x: torch.sort(x)[0], backend="tuner")(X)
    equal(found, torch.sort(X)[0])
    require_counts(0, 1, "; no such backend: ")


@pytest.mark.parametrize("is_faster", [False, True])
def test_a_refused_graph_is_left_to_eager_mode_where_that_is_faster(
    is_faster: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiled(graph: Any, _: Any) -> Any:
        return lambda *inputs: graph(*inputs)

    timed = []

    def timing(theirs: Any, _: Any, inputs: Any) -> bool:
        timed.append(theirs(*inputs))  # writes into copies
        return is_faster

    monkeypatch.setattr(dynamo_backend, "FALLBACK", "another")
    monkeypatch.setattr(graph_fallbacks, "is_faster", timing)
    monkeypatch.setitem(_BACKENDS, "another", None)
    monkeypatch.setitem(_COMPILER_FNS, "another", compiled)
    x = torch.tensor([3.0, 1.0])
    state = torch.random.get_rng_state()
    with torch.no_grad():
        found = torch.compile(lambda x: x.add_(torch.rand(2)).sum(), backend="tuner")(x)
    assert len(timed) == 1
    assert torch.equal(found, x.sum())
    torch.random.set_rng_state(state)
    equal(x, torch.tensor([3.0, 1.0]) + torch.rand(2))
    require_counts(0, 1, "; eager mode is faster than another" if is_faster else "")


class Sorted(nn.Module):  # type: ignore[misc,unused-ignore]
    """An operator that is not supported."""

    def forward(self, x: Any) -> Any:
        return torch.sort(x)[0] * 2


class Counting(nn.Module):  # type: ignore[misc,unused-ignore]
    """A product between operators in PyTorch, and a counter of calls that fails after the first few."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.table = nn.Buffer(torch.arange(float(most)))
        self.calls = nn.Buffer(torch.zeros(1, dtype=torch.int64))

    def forward(self, x: Any) -> Any:
        self.calls.add_(1)
        return torch.sort(self.first(x))[0] + self.table[self.calls]


@pytest.mark.parametrize("is_faster", [False, True])
def test_a_graph_in_parts_is_left_to_eager_mode_where_that_is_faster(
    is_faster: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = []

    def timing(theirs: Any, ours: Any, inputs: Any) -> bool:
        for _ in range(3):
            equal(ours(*inputs), theirs(*inputs))
        timed.append(len(inputs))
        return is_faster

    monkeypatch.setattr(dynamo_backend, "is_eager_faster", graph_fallbacks.is_eager_faster)
    monkeypatch.setattr(graph_fallbacks, "is_faster", timing)
    module = nn.Sequential(nn.Linear(16, 16), Sorted()).eval()
    with torch.no_grad():
        equal(torch.compile(module, backend="tuner")(X), module(X))
    assert len(timed) == 1
    require_counts(int(not is_faster), int(is_faster), "eager mode is faster")
    assert not is_faster or "aten.sort" in tuner.torch.graph_counts().reasons[0]


def test_a_graph_of_any_length_is_timed_at_the_length_of_its_example(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = []

    def timing(theirs: Any, ours: Any, inputs: Any) -> bool:
        equal(ours(*inputs), theirs(*inputs))
        timed.append([value for value in inputs if isinstance(value, int)])
        return True

    monkeypatch.setattr(dynamo_backend, "is_eager_faster", graph_fallbacks.is_eager_faster)
    monkeypatch.setattr(graph_fallbacks, "is_faster", timing)
    module = nn.Sequential(nn.Linear(16, 16), Sorted()).eval()
    with torch.no_grad():
        equal(torch.compile(module, backend="tuner", dynamic=True)(X), module(X))
    assert timed == [[len(X)]]
    require_counts(0, 1, "eager mode is faster")


def test_timing_a_graph_in_parts_changes_no_tensor_and_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamo_backend, "is_eager_faster", graph_fallbacks.is_eager_faster)
    module = Counting(5).eval()
    compiled: Any = torch.compile(module, backend="tuner")
    with torch.no_grad():
        for call in range(1, 4):
            found = compiled(X)
            assert module.calls.item() == call
            equal(found, torch.sort(module.first(X))[0] + call)
    require_counts(1, 0)


def test_a_refused_graph_that_inductor_writes_other_numbers_for_is_left_to_eager_mode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As inductor, which reads rows of ``x.copy_(x.flip(0))`` after they are overwritten (PyTorch 2.13)."""

    def overwriting(graph: Any, _: Any) -> Any:
        def call(x: Any) -> Any:
            for index in range(len(x)):
                x[index] = x[-1 - index]
            return graph(x.clone())

        return call

    def flipped(x: Any) -> Any:
        x.copy_(x.flip(0))
        return torch.sort(x)[0]

    monkeypatch.setattr(dynamo_backend, "FALLBACK", "another")
    monkeypatch.setitem(_BACKENDS, "another", None)
    monkeypatch.setitem(_COMPILER_FNS, "another", overwriting)
    x = torch.linspace(-2, 2, 5)
    with torch.no_grad():
        torch.compile(flipped, backend="tuner")(x)
    assert torch.equal(x, torch.linspace(2, -2, 5))
    require_counts(0, 1, "; another writes other numbers into its inputs")


def test_a_database_of_the_environment_may_come_later_and_a_malformed_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = torch.nn.Linear(4, 2).eval()
    graph, x = torch.fx.symbolic_trace(module), torch.ones(3, 4)
    monkeypatch.setenv("TUNER_DB", str(tmp_path / "missing.db"))
    with torch.no_grad():
        equal(torch.compile(module, backend="tuner")(x), module(x))
        equal(tuner.torch.compile(module, (x,))(x), module(x))
    require_counts(1, 0)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("TUNER_DB", "nothing://x")
    with pytest.raises(UsageError, match=r"^database: "):
        dynamo_backend.backend(graph, (x,))


NETWORKS = {each.name: each for each in networks.EXPORTS}
CONVOLUTIONS = (nn.Conv2d, nn.ConvTranspose2d)
ALLOWED = 1e-5  # of the largest number of a result


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_is_one_graph_that_gives_what_eager_gives(name: str) -> None:
    dynamo.utils.counters.clear()
    made = export.build(NETWORKS[name])
    compiled = torch.compile(made.module, backend="tuner")
    (wanted,) = made.expected
    with torch.no_grad():
        for _ in range(2):
            assert (compiled(*made.inputs) - wanted).abs().max() <= ALLOWED * wanted.abs().max()
    counts = tuner.torch.graph_counts()
    assert counts.taken + counts.left == 1
    assert all(reason.startswith("convolution would run as loops") for reason in counts.reasons)
    assert counts.taken == 1 or any(isinstance(each, CONVOLUTIONS) for each in made.module.modules())
    assert sum(dynamo.utils.counters["graph_break"].values()) == 0


def test_a_call_that_fails_when_it_is_repeated_is_not_faster() -> None:
    cache = torch.zeros(4)
    position = torch.zeros((), dtype=torch.long)

    def next_element() -> Any:
        position.add_(1)
        return cache[position]

    assert not is_faster(next_element, lambda: cache.sum(), ())
    assert position > len(cache) - 1
