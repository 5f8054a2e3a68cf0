"""LSTM, GRU and RNN layers run in programs: in steps where these are few, else in blocks of steps."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]  # of torch, about its own code

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip

import tuner.torch  # noqa: E402
from tests.models.torch.test_partition import require_equal, seeded  # noqa: E402
from tuner.core.errors import UsageError  # noqa: E402
from tuner.models.compile import fusions_in_child  # noqa: E402
from tuner.models.run.fused_program import FusedFunction  # noqa: E402
from tuner.models.torch import dynamo_backend, recurrences, recurrent_blocks  # noqa: E402
from tuner.models.torch.export import export_module  # noqa: E402

TIMES, ROWS, WIDTH, HIDDEN = 5, 3, 8, 16
X = torch.linspace(-2, 2, TIMES * ROWS * WIDTH).reshape(TIMES, ROWS, WIDTH).sin()
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "layers": {"num_layers": 2},
    "directions": {"bidirectional": True},
    "all": {"num_layers": 2, "bidirectional": True, "batch_first": True},
    "no bias": {"bias": False},
}


def states_of(module: Any, rows: int = ROWS) -> Any:
    layers = module.num_layers * (1 + module.bidirectional)
    widths = [module.proj_size or module.hidden_size]
    if isinstance(module, nn.LSTM):
        widths.append(module.hidden_size)
    states = [torch.linspace(-1, 1, layers * rows * width).reshape(layers, rows, width) for width in widths]
    return tuple(states) if len(states) > 1 else states[0]


@pytest.mark.drawn(4)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("made", [nn.LSTM, nn.GRU, nn.RNN, partial(nn.RNN, nonlinearity="relu")])
def test_a_layer_is_a_program_of_fusions(made: Any, options: dict[str, Any]) -> None:
    module = seeded(lambda: made(WIDTH, HIDDEN, **options))
    x = X.transpose(0, 1).contiguous() if module.batch_first else X
    states = states_of(module)
    with torch.no_grad():
        for arguments in ((x,), (x, states)):
            program = tuner.torch.compile(module, arguments)
            assert isinstance(program.function, FusedFunction)
            require_equal(program(*arguments), module(*arguments))


def test_equal_steps_have_one_code() -> None:
    module = seeded(lambda: nn.LSTM(WIDTH, HIDDEN))
    texts = []
    for times in (TIMES, TIMES + 3):
        exported = export_module(module, (torch.zeros(times, ROWS, WIDTH),))
        texts.append([fusion.text for fusion in fusions_in_child(exported.text)])
    shorter, longer = texts
    assert len(longer) > len(shorter)
    # the product of all inputs and the copies of the result have other sizes
    assert len(set(longer)) == len(set(shorter)) < len(shorter)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_types_are_as_near_to_float64_as_eager_mode(dtype: Any) -> None:
    module = seeded(lambda: nn.LSTM(WIDTH, HIDDEN)).to(dtype)
    x = X.to(dtype)
    with torch.no_grad():
        found = tuner.torch.compile(module, (x,))(x)[0]
        eager = module(x)[0]
        exact = module.double()(x.double())[0]
    assert found.dtype is dtype
    error = (found.double() - exact).abs().max()
    assert error <= (eager.double() - exact).abs().max() + torch.finfo(dtype).eps


def test_a_projection_and_a_sequence_without_rows_are_as_in_eager_mode() -> None:
    module = seeded(lambda: nn.LSTM(WIDTH, HIDDEN, proj_size=4))
    with torch.no_grad():
        require_equal(tuner.torch.compile(module, (X,))(X), module(X))
        module = seeded(lambda: nn.GRU(WIDTH, HIDDEN))
        require_equal(tuner.torch.compile(module, (X[:, 0],))(X[:, 0]), module(X[:, 0]))


def test_a_long_layer_is_refused_with_its_steps_and_runs_in_blocks_with_a_fallback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recurrences, "MOST_STEPS", 4)
    monkeypatch.setattr(recurrent_blocks, "BLOCK", 3)

    class Tagger(nn.Module):  # type: ignore[misc,unused-ignore]
        def __init__(self, made: Any) -> None:
            super().__init__()
            self.layers = made(WIDTH, HIDDEN, num_layers=2, bidirectional=True, batch_first=True)
            self.last = nn.Linear(2 * HIDDEN, 5)

        def forward(self, x: Any) -> Any:
            output, states = self.layers(x)
            return self.last(output).transpose(0, 1).flatten(1), states

    for made in (nn.LSTM, nn.GRU):
        module = seeded(partial(Tagger, made))
        x = torch.linspace(-2, 2, ROWS * 7 * WIDTH).reshape(ROWS, 7, WIDTH).sin()
        with pytest.raises(UsageError, match=r"it has 28 steps: a program has at most 4"):
            tuner.torch.compile(module, (x,))
        program = tuner.torch.compile(module, (x,), fallback="eager")
        assert "steps" not in program.why_no_fusions
        with torch.no_grad():
            require_equal(program(x), module(x))


@pytest.mark.usefixtures("fresh_back_end")
@pytest.mark.parametrize("made", [nn.LSTM, nn.GRU])
def test_the_back_end_takes_a_recurrent_module_and_sees_changed_weights(made: Any) -> None:
    module = seeded(lambda: made(WIDTH, HIDDEN))
    compiled: Any = torch.compile(module, backend="tuner")
    with torch.no_grad():
        require_equal(compiled(X), module(X))
        module.weight_hh_l0.mul_(-1)
        require_equal(compiled(X), module(X))
    counts = tuner.torch.graph_counts()
    assert (counts.taken, counts.left, counts.without_graph) == (1, 0, ())


@pytest.mark.usefixtures("fresh_back_end")
@pytest.mark.parametrize("made", [nn.LSTM, nn.GRU])
def test_the_back_end_takes_sequences_of_several_lengths_and_rows(made: Any) -> None:
    module = seeded(lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), made(WIDTH, HIDDEN)))
    compiled: Any = torch.compile(module, backend="tuner")
    with torch.no_grad():
        for x in (X, X[:3], X[:4, :2], X[:4, :2]):
            require_equal(compiled(x), module(x))


@pytest.mark.usefixtures("fresh_back_end")
@pytest.mark.parametrize(
    "made", [nn.LSTM, nn.GRU, nn.RNN, partial(nn.LSTM, bidirectional=True, batch_first=True)]
)
def test_the_back_end_has_one_graph_for_all_lengths_after_the_first(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recurrent_blocks, "BLOCK", 4)
    monkeypatch.setattr(recurrent_blocks, "FEWER", (1,))
    module = seeded(lambda: made(WIDTH, HIDDEN))
    compiled: Any = torch.compile(module, backend="tuner")
    along = int(module.batch_first)
    with torch.no_grad():
        for length in (6, 3, 8, 5, 2, 11, 4, 7, 9, 10, 12):
            x = torch.linspace(-2, 2, length * ROWS * WIDTH).reshape(length, ROWS, WIDTH).sin()
            x = x.transpose(0, along).contiguous()
            require_equal(compiled(x), module(x))
    counts = tuner.torch.graph_counts()
    assert (counts.taken, counts.left, counts.in_torch, counts.without_graph) == (2, 0, (), ())


def test_a_layer_of_a_dynamic_length_is_refused_and_runs_in_blocks_with_a_fallback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recurrent_blocks, "BLOCK", 4)
    monkeypatch.setattr(recurrent_blocks, "FEWER", (1,))
    module = seeded(lambda: nn.LSTM(WIDTH, HIDDEN, bidirectional=True))
    length: Any = {"dynamic_shapes": ({0: torch.export.Dim("t", min=1, max=64)},)}
    with pytest.raises(UsageError, match=r"aten\.lstm"):
        tuner.torch.compile(module, (X,), **length)
    program = tuner.torch.compile(module, (X,), fallback="eager", **length)
    with torch.no_grad():
        for steps in (TIMES, 3, 1, 9):
            x = torch.linspace(-2, 2, steps * ROWS * WIDTH).reshape(steps, ROWS, WIDTH).sin()
            require_equal(program(x), module(x))


@pytest.mark.usefixtures("fresh_back_end")
def test_with_gradients_dynamo_makes_no_graph_of_a_recurrent_module_and_that_is_counted() -> None:
    module = seeded(lambda: nn.LSTM(WIDTH, HIDDEN))

    def call(x: Any) -> Any:
        return module(x)[0]

    with torch.enable_grad():
        require_equal(torch.compile(call, backend="tuner")(X), call(X))
    counts = tuner.torch.graph_counts()
    assert (counts.taken, counts.left) == (0, 0)
    assert any(
        "RNN, GRU, or LSTM" in reason and f"{Path(__file__).name}:" in reason
        for reason in counts.without_graph
    )


@pytest.mark.usefixtures("fresh_back_end")
def test_a_graph_that_is_left_has_its_recurrent_layers_in_eager_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamo_backend, "FALLBACK", "no such backend")
    module = seeded(lambda: nn.GRU(WIDTH, HIDDEN))
    with torch.no_grad():
        torch.manual_seed(0)
        found = torch.compile(lambda x: module(x)[0] + torch.rand(HIDDEN), backend="tuner")(X)
        torch.manual_seed(0)
        require_equal(found, module(X)[0] + torch.rand(HIDDEN))
    (reason,) = tuner.torch.graph_counts().reasons
    assert reason.endswith("; eager mode has its recurrent layers")


@pytest.mark.usefixtures("fresh_back_end")
def test_other_back_ends_make_no_graph_of_a_recurrent_module() -> None:
    module = seeded(lambda: nn.GRU(WIDTH, HIDDEN))
    graphs = []

    def back_end(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    with torch.no_grad():
        require_equal(torch.compile(module, backend=back_end)(X), module(X))
    assert "gru" not in "".join(graph.code for graph in graphs)
    assert tuner.torch.graph_counts().without_graph == ()
