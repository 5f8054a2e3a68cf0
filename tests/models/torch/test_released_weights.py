"""A module whose weights were released: the program has them, the module says so and holds no memory."""

import copy
import pickle
import re
import weakref
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402

import tuner.torch  # noqa: E402
from tuner.core.errors import UsageError  # noqa: E402

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore::UserWarning:torch")]
RELEASED = (
    r"^Tied: its weights were released when it was compiled: call the compiled program; "
    r"compile it with release_weights=False, which keeps them$"
)


class Tied(nn.Module):
    """Reads one weight in two ways, as rows of a table and as a matrix, and a buffer as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(40, 16)
        self.norm = nn.BatchNorm1d(16)
        self.head = nn.Linear(16, 40, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens: Any) -> Any:
        return self.head(self.norm(self.table(tokens)))


def tied() -> Any:
    torch.manual_seed(0)
    return Tied().eval()


TOKENS = torch.tensor([3, 0, 39, 7])


def test_the_program_has_the_weights_that_the_module_has_no_more() -> None:
    module = tied()
    expected = module(TOKENS).detach()
    weights = [weakref.ref(tensor) for tensor in (*module.parameters(), *module.buffers())]
    program = tuner.torch.compile(module, (TOKENS,), release_weights=True)
    assert [ref() for ref in weights] == [None] * len(weights)
    assert sum(tensor.numel() for tensor in (*module.parameters(), *module.buffers())) == 0
    torch.testing.assert_close(program(TOKENS), expected)
    assert program.stale() == ()


def test_what_another_holds_stays() -> None:
    module = tied()
    held = module.head.weight
    expected = held.detach().clone()
    tuner.torch.compile(module, (TOKENS,), release_weights=True)
    assert torch.equal(held, expected)


@pytest.mark.parametrize(
    "use",
    [
        lambda module: module(TOKENS),
        lambda module: module.head(torch.ones(2, 16)),
        lambda module: module.state_dict(),
        lambda module: nn.Sequential(module).state_dict(),
        lambda module: module.load_state_dict(tied().state_dict()),
        lambda module: tuner.torch.compile(module, (TOKENS,)),
        lambda module: tuner.torch.tune(module, (TOKENS,), trials=1),
        lambda module: copy.deepcopy(module)(TOKENS),
        lambda module: pickle.loads(pickle.dumps(module))(TOKENS),
    ],
)
def test_the_module_says_that_its_weights_were_released(use: Any) -> None:
    module = tied()
    tuner.torch.compile(module, (TOKENS,), release_weights=True)
    with pytest.raises(UsageError) as caught:
        use(module)
    assert re.search(RELEASED, str(caught.value))


def test_an_export_says_that_the_weights_were_released() -> None:
    module = tied()
    tuner.torch.compile(module, (TOKENS,), release_weights=True)
    with pytest.raises(UsageError, match="its weights were released"):
        torch.export.export(module, (TOKENS,))


class Counting(nn.Module):
    """Adds what it was called with to a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(16, 8)
        self.register_buffer("sum", torch.zeros(4, 8))

    def forward(self, x: Any) -> Any:
        self.sum.add_(self.head(x))
        return self.sum * 2


def test_a_buffer_that_calls_change_stays_in_the_module() -> None:
    module = Counting().eval()
    x = torch.rand(4, 16)
    once = module.head(x).detach()
    program = tuner.torch.compile(module, (x,), release_weights=True)
    for calls in (1, 2):
        torch.testing.assert_close(program(x), 2 * calls * once)
        torch.testing.assert_close(module.sum, calls * once)
    assert module.head.weight.numel() == 0


class Routed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(16, 8)

    def forward(self, x: Any) -> Any:
        return self.head(x).topk(2).values


@pytest.mark.filterwarnings("ignore:Routed. in PyTorch")
def test_a_module_with_operators_in_pytorch_keeps_its_weights_and_says_so() -> None:
    module = Routed().eval()
    x = torch.rand(4, 16)
    expected = module(x).detach()
    with pytest.warns(UserWarning, match="Routed: keeps its weights: operators run in PyTorch"):
        program = tuner.torch.compile(module, (x,), fallback="eager", release_weights=True)
    torch.testing.assert_close(program(x), expected)
    torch.testing.assert_close(module(x), expected)


def test_what_cannot_be_released_is_refused_before_it_is_compiled() -> None:
    x = torch.rand(4, 16)
    exported = torch.export.export(nn.Linear(16, 8).eval(), (x,))
    with pytest.raises(UsageError, match="release_weights: found with an exported program"):
        tuner.torch.compile(exported, release_weights=True)
    sizes = ({0: torch.export.Dim("t", min=1, max=64)},)
    with pytest.raises(UsageError, match="release_weights cannot be combined with dynamic_shapes"):
        tuner.torch.compile(nn.Linear(16, 8).eval(), (x,), dynamic_shapes=sizes, release_weights=True)
