"""Operators of a module that tuner does not support run by PyTorch; the parts between them are compiled."""

import warnings
from typing import Any

import pytest

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]  # of torch, about its own code

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402

import tuner.torch  # noqa: E402
from tuner.core.errors import UsageError  # noqa: E402
from tuner.models.torch.parted_function import PartedFunction  # noqa: E402

X = torch.linspace(-2, 2, 32 * 64).reshape(32, 64).sin()


class Routed(nn.Module):  # type: ignore[misc,unused-ignore]
    """Experts of which each row takes the two with the greatest weights."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(64, 4)
        self.experts = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))

    def forward(self, x: Any) -> tuple[Any, Any]:
        weights, chosen = torch.topk(self.gate(x).softmax(-1), 2)
        total = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            share = (weights * (chosen == number)).sum(-1, keepdim=True)
            total = total + share * expert(x).relu()
        return total, chosen


class Sorted(nn.Module):  # type: ignore[misc,unused-ignore]
    """Two products with an operator between them that is not supported, and one that writes in place."""

    def __init__(self, between: Any = lambda x: torch.sort(x)[0]) -> None:
        super().__init__()
        self.first = nn.Linear(64, 64)
        self.second = nn.Linear(64, 64)
        self.between = between

    def forward(self, x: Any) -> Any:
        return self.second(self.between(self.first(x).relu_()))


class Spectrum(nn.Module):  # type: ignore[misc,unused-ignore]
    """A product of the magnitudes of a Fourier transform, between two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(64, 64)
        self.last = nn.Linear(9, 64)
        self.register_buffer("window", torch.hann_window(16))

    def forward(self, x: Any) -> Any:
        waves = torch.stft(self.first(x), 16, 8, window=self.window, return_complex=True)
        return self.last(waves.abs())


def require_equal(found: Any, expected: Any) -> None:
    leaves = torch.utils._pytree.tree_leaves  # noqa: SLF001 - torch's only API
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def seeded(made: Any) -> Any:
    torch.manual_seed(0)
    return made().eval()


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("made", "operator", "parts"),
    [(Routed, "aten.topk", 3), (Sorted, "aten.sort", 3), (Spectrum, "aten.abs", 3)],
)
def test_a_module_runs_its_unsupported_operators_by_pytorch(made: Any, operator: str, parts: int) -> None:
    module = seeded(made)
    with pytest.raises(UsageError, match=operator):
        tuner.torch.compile(module, (X,))
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        program = tuner.torch.compile(module, (X,), fallback="eager")
    (line,) = [str(note.message) for note in notes if "in PyTorch: " in str(note.message)]
    assert f"{operator} at " in line
    function: Any = program.function
    assert isinstance(function, PartedFunction)
    assert len(function.parts) == parts
    for x in (X, X.flip(0).contiguous()):
        with torch.no_grad():
            require_equal(program(x), module(x))
    with pytest.raises(UsageError, match=r"found float32 of shape \(16, 64\), allowed float32"):
        program(X[:16])
    with pytest.raises(UsageError, match="only a program of fusions is exported"):
        program.export("nowhere")
    assert program.stale() == ()
    with torch.no_grad():
        next(module.parameters()).add_(1)
    assert len(program.stale()) == 1


@pytest.mark.parametrize(
    ("between", "message"),
    [
        (torch.rand_like, r"aten\.rand_like.*it draws random numbers"),
        (lambda x: torch.rand_like(x) + torch.sort(x)[0], "it draws random numbers"),
        (lambda x: torch.sort(x)[0] + x.as_strided((32, 64), (2, 3)), "by the strides of its input"),
        (lambda x: torch.sort(x)[0][x.sum().long() :], "dynamic sizes|torch.export refuses the module"),
    ],
)
def test_a_module_that_would_not_be_as_in_eager_mode_is_refused_whole(between: Any, message: str) -> None:
    module = seeded(lambda: Sorted(between))
    with pytest.raises(UsageError, match=message):
        tuner.torch.compile(module, (X,), fallback="eager")


@pytest.mark.parametrize(
    "write", [lambda x, at: x.scatter(-1, at, 2.0), lambda x, at: x.scatter(-2, at.mT % 32, x)]
)
def test_scatters_along_a_dimension_from_the_end_are_written(write: Any) -> None:
    module = seeded(lambda: Sorted(lambda x: write(x, x.argmax(-1, keepdim=True).expand(-1, 9))))
    program = tuner.torch.compile(module, (X,))
    assert program.why_no_fusions == ""
    with torch.no_grad():
        torch.testing.assert_close(program(X), module(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "write",
    [lambda x, at: x.scatter_add(-1, at, x), lambda x, at: x.scatter_reduce(-1, at, x, "amax")],
)
def test_scatters_along_a_dimension_from_the_end_are_refused_by_name(write: Any) -> None:
    module = seeded(lambda: Sorted(lambda x: write(x, x.argmax(-1, keepdim=True).expand(-1, 9))))
    with pytest.raises(UsageError, match=r"operators that are not supported: aten\.scatter"):
        tuner.torch.compile(module, (X,))


class Bags(nn.Module):  # type: ignore[misc,unused-ignore]
    """Sums of embeddings, which PyTorch computes by an operator of another name."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.EmbeddingBag(64, 64)
        self.last = nn.Linear(64, 64)

    def forward(self, x: Any) -> Any:
        words = x.argmax(-1)
        return self.last(self.bags(words, torch.arange(0, 32, 4)))


class Triangle(nn.Module):  # type: ignore[misc,unused-ignore]
    """Reads a triangle, by indices that depend on no argument."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(64, 64)

    def forward(self, x: Any) -> Any:
        rows, columns = torch.tril_indices(32, 32)
        return self.last(x) * x[rows, columns].sum()


@pytest.mark.parametrize(("made", "in_torch"), [(Bags, "aten.embedding_bag"), (Triangle, "")])
def test_operators_of_other_names_and_those_of_no_argument_are_found(made: Any, in_torch: str) -> None:
    module = seeded(made)
    with pytest.raises(UsageError, match=in_torch or r"aten\.tril_indices"):
        tuner.torch.compile(module, (X,))
    program = tuner.torch.compile(module, (X,), fallback="eager")
    assert in_torch in program.why_no_fusions
    assert bool(program.why_no_fusions) == bool(in_torch)
    with torch.no_grad():
        require_equal(program(X), module(X))


class Rotated(nn.Module):  # type: ignore[misc,unused-ignore]
    """A rotation by complex numbers between products, which are multiplied by real numbers, too."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(64, 64)
        self.second = nn.Linear(64, 64)
        self.register_buffer("angles", torch.polar(torch.ones(32, 32), torch.arange(1024.0).view(32, 32)))

    def forward(self, x: Any) -> Any:
        pairs = torch.view_as_complex((self.first(x) * 0.5).unflatten(-1, (32, 2)))
        return self.second(torch.view_as_real(pairs * self.angles).flatten(-2)) * 2


@pytest.mark.slow
def test_of_operators_without_lines_those_of_complex_numbers_alone_stay_in_pytorch() -> None:
    module = seeded(Rotated)
    exported = torch.export.export(module, (X,))
    for node in exported.graph.nodes:
        node.meta.pop("stack_trace", None)
    program = tuner.torch.compile(exported, (X,), fallback="eager")
    with torch.no_grad():
        require_equal(program(X), module(X))
    function: Any = program.function
    assert "aten.mul.Tensor (it computes with complex numbers)" in function.why_no_fusions
    assert len(function.parts) == 3


def test_where_nothing_is_left_to_compile_the_module_is_refused() -> None:
    class Little(nn.Module):  # type: ignore[misc,unused-ignore]
        def forward(self, x: Any) -> Any:
            return torch.sort(x + 1)[0] * 2

    with pytest.raises(UsageError, match=r"operators that are not supported: aten\.sort"):
        tuner.torch.compile(Little(), (X,), fallback="eager")


@pytest.mark.usefixtures("fresh_back_end")
def test_the_back_end_takes_a_graph_in_parts_and_sees_changed_parameters() -> None:
    module = seeded(Routed)
    compiled: Any = torch.compile(module, backend="tuner")
    with torch.no_grad():
        require_equal(compiled(X), module(X))
        module.experts[0].weight.mul_(-1)
        require_equal(compiled(X), module(X))
    counts = tuner.torch.graph_counts()
    assert (counts.taken, counts.left) == (1, 0)
    (in_torch,) = counts.in_torch
    assert in_torch.startswith("aten.topk")
