"""Operators on padded tensors give what they give on the call's, whatever is in the padding.

Graphs are written for a size S and run by PyTorch itself, with NaN and large integers as padding.
"""

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402

from tuner.models.torch.dynamic_sizes import read_sizes_of_arguments  # noqa: E402
from tuner.models.torch.graph_export import exported_graph  # noqa: E402
from tuner.models.torch.module_parts import ModuleGraph  # noqa: E402
from tuner.models.torch.padded_graph import PaddedGraph  # noqa: E402
from tuner.models.torch.padded_nodes import PaddedNodes, padded_nodes  # noqa: E402
from tuner.models.torch.symbol_sizes import SymbolSize, sizes_of_tensor  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch, about its own code

LEAST, GREATEST, WIDTH = 3, 24, 4
attention = nn.functional.scaled_dot_product_attention


class Of(nn.Module):  # type: ignore[misc,unused-ignore]
    """A function of a tensor, or of token numbers, as a module with some weights."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function
        torch.manual_seed(0)
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.table = nn.Embedding(50, WIDTH)
        self.conv = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)
        self.batch_norm = nn.BatchNorm1d(WIDTH)
        self.register_buffer("rows", torch.randn(GREATEST, WIDTH))

    def forward(self, x: Any) -> Any:
        return self.function(self, x)


# functions of a module and of rows x 4
RULES: dict[str, Any] = {
    "linear": lambda m, x: m.linear(x),
    "norms": lambda m, x: m.norm(x) + nn.functional.rms_norm(x, (WIDTH,)) + m.batch_norm(x),
    "sum": lambda _, x: (x.sum(0), x.sum(), x.sum(1), x.sum((0, 1), keepdim=True)),
    "mean": lambda _, x: (x.mean(0), x.mean(), x.mean(1), x.unsqueeze(0).mean((1, 2), keepdim=True)),
    "mean of bfloat16": lambda _, x: x.bfloat16().mean(0),
    "greatest": lambda _, x: (x.amax(0), x.max(), *x.max(0), x.max(1)[0], x.argmax(0), x[:, 0].argmax()),
    "least": lambda _, x: (x.amin(0), x.min(), *x.min(0), x.argmin(0), x.argmin(1)),
    "extremes of integers": lambda _, x: ((10 * x).int().amax(0), (10 * x).int().amin(0)),
    "any and all": lambda _, x: ((x > 9).any(0), (x > -9).all(0), (x > 0).all(), x.count_nonzero(0)),
    "prod": lambda _, x: x.prod(0),
    "softmax": lambda _, x: (x.softmax(0), x.log_softmax(0), x.softmax(1), x.logsumexp(0)),
    "norm of vectors": lambda _, x: (torch.linalg.vector_norm(x, 2, 0), torch.linalg.vector_norm(x, 1)),
    "products": lambda _, x: (x.t() @ x, x @ x.t(), torch.mm(x.t(), x), x.t() @ x[:, 0], x[:, 0] @ x),
    "products of a batch": lambda _, x: torch.bmm(x.t().unsqueeze(0), x.unsqueeze(0)),
    "sums with products": lambda m, x: torch.addmm(m.linear.weight, x.t(), x),
    "causal attention": lambda m, x: attention(x[None], m.linear(x)[None], x[None], is_causal=True),
    "attention": lambda m, x: attention(x[None], m.linear(x)[None], x[None]),
    "attention of one query": lambda m, x: attention(m.rows[None, :1], x[None], x[None]),
    "attention by a mask": lambda _, x: attention(x[None], x[None], x[None], (x[:, 0] > 0)[None, :, None]),
    "attention by keys": lambda _, x: attention(x[None], x[None], x[None], (x[:, 0] > -1)[None, None]),
    "attention with a sum": lambda _, x: attention(x[None], x[None], x[None], (x @ x.t())[None]),
    "convolution": lambda m, x: m.conv(x.t().unsqueeze(0)),
    "pad": lambda _, x: nn.functional.pad(x, (0, 0, 2, 1), value=7.0).sum(0),
    "embedding": lambda m, x: m.table((x.abs() * 9).long()[:, 0]),
    "gather": lambda m, x: (
        m.rows[:1].expand(x.shape[0], WIDTH).gather(1, (x.abs() * 1.2).long().clamp(max=3))
    ),
    "index_select": lambda m, x: m.rows.index_select(0, (x.abs() * 3).long()[:, 0]),
    "views": lambda _, x: (x.unflatten(1, (2, 2)).transpose(0, 1).flatten(2), x.reshape(-1), x.view(-1, 2)),
    "rows in front": lambda _, x: x.flatten().sum(),
    "expand": lambda _, x: x.unsqueeze(1).expand(-1, 3, -1) + x[None].repeat(2, 1, 1).transpose(0, 1)[:, :1],
    "range": lambda _, x: x * torch.arange(x.shape[0])[:, None] + torch.arange(1, 2 * x.shape[0], 2)[:, None],
    "filled": lambda _, x: torch.full((x.shape[0], 1), 3.0) + torch.zeros_like(x) + x.new_ones(x.shape[0], 1),
    "numbers": lambda _, x: (x / x.shape[0], torch.arange(x.shape[0]) == x.shape[0] - 1, x + x.shape[0] * 2),
    "elements from the front": lambda _, x: (x[0], x[2], x[1:], x[:2]),
    "elements from the end": lambda _, x: (x[-1], x[-2], x[-1:], x[-3:], x[:-1]),
    "weights of a size": lambda m, x: m.rows[: x.shape[0]] + x,
    "cat": lambda m, x: (torch.cat([m.rows[:3], x]), torch.cat([x, x], 1), torch.stack([x, x], 1)),
    "triangles": lambda _, x: ((x @ x.t()).tril(), (x @ x.t()).triu(1)),
    "prefix sums": lambda _, x: (x.cumsum(0), x.cumsum(1)),
    "parts": lambda _, x: (*x.split(2, 1), *x.unbind(1), *x.topk(2, 1), x.var(1)),
    "dropout": lambda _, x: nn.functional.dropout(x, 0.5, training=False),
}

WITHOUT_RULES: dict[str, tuple[Any, str]] = {
    "flip": (lambda _, x: x.flip(0), "its sizes are dynamic"),
    "roll": (lambda _, x: x.roll(1, 0), "its sizes are dynamic"),
    "behind": (lambda m, x: torch.cat([x, m.rows[:1]]), "puts something behind a dimension"),
    "merged": (lambda _, x: x.t().reshape(-1), "merges a dimension of a dynamic size"),
    "sorted": (lambda _, x: x.sort(0)[0], "along a dimension of a dynamic size"),
    "variance": (lambda _, x: x.var(0), "along a dimension of a dynamic size"),
    "index": (lambda _, x: x.argmax(), "its index counts the elements"),
    "read": (lambda _, x: x.index_select(0, torch.arange(2)), "reads a dimension of a dynamic size by"),
    "normalized": (lambda _, x: nn.functional.group_norm(x.t()[None], 2), "it normalizes a dimension"),
    "order": (lambda _, x: torch.linalg.vector_norm(x, 3, 0), "neither 1 nor 2"),
    "exponent": (lambda _, x: x ** x.shape[0], "a number that it takes is a dynamic size"),
    "rounded": (lambda _, x: x.bfloat16() / x.shape[0], "would be rounded to the type of the tensor"),
    "fill": (lambda _, x: torch.full((2,), x.shape[0]), "a number that it takes is a dynamic size"),
    "repeated": (lambda _, x: x.repeat(2, 1), "it repeats a dimension"),
    "other queries": (
        lambda m, x: attention(m.rows[None], x[None], x[None], is_causal=True),
        "for queries and keys of different sizes",
    ),
    "heads": (lambda _, x: attention(x.t()[None], x.t()[None], x.t()[None]), "its heads have a dynamic size"),
    "channels": (
        lambda m, x: nn.functional.conv1d(m.rows.t()[None], x.t()[:, :, None].transpose(0, 1)),
        "channels",
    ),
    "steps": (lambda _, x: x[::2], "not a multiple of one size and a constant"),
    "before the end": (lambda _, x: x[-3:-1], "begins before the end"),
}


def graph_of(function: Any) -> tuple[ModuleGraph, PaddedNodes]:
    x = torch.randn(9, WIDTH)
    module = Of(function).eval()
    program = exported_graph(module, (x,), None, ({0: Dim("t", min=LEAST, max=GREATEST)},))
    read_sizes_of_arguments(program.graph, program.graph.find_nodes(op="placeholder"))
    graph = ModuleGraph.of(program, (x,))
    return graph, padded_nodes(graph, is_all_compiled=True)


def poisoned(x: Any, size: int) -> Any:
    return torch.cat([x, torch.full((size - x.shape[0], *x.shape[1:]), float("nan"))])


@pytest.mark.parametrize("name", RULES)
def test_padding_does_not_reach_results(name: str) -> None:
    graph, padded = graph_of(RULES[name])
    assert padded.size is not None
    assert not padded.in_torch
    piece, _ = graph.piece(graph.nodes, graph.results)
    module = Of(RULES[name]).eval()
    for size in (LEAST, 8, GREATEST):
        written = PaddedGraph(piece, padded.size.symbol, size)
        for n in {LEAST, 4, 7, 8, 23, GREATEST}:
            if n > size:
                continue
            x = torch.randn(n, WIDTH, generator=torch.Generator().manual_seed(n))
            inputs = (poisoned(x, size), torch.tensor(n))[: 1 + written.takes_size]
            results = written.module(*inputs)
            expected = torch.utils._pytree.tree_leaves(module(x))  # noqa: SLF001 - torch's only API
            for result, node, right in zip(results, graph.results, expected, strict=True):
                torch.testing.assert_close(cut(result, node, n), right, equal_nan=True)


def cut(result: Any, node: Any, n: int) -> Any:
    for dim, size in enumerate(sizes_of_tensor(node.meta["val"])):
        if isinstance(size, SymbolSize):
            result = result.narrow(dim, 0, size.at(n))
    return result


@pytest.mark.parametrize("name", WITHOUT_RULES)
def test_an_operator_that_padding_would_change_is_not_compiled(name: str) -> None:
    function, reason = WITHOUT_RULES[name]
    _, padded = graph_of(function)
    assert any(reason in why for why in padded.in_torch.values()), padded.in_torch


@pytest.mark.parametrize("scale", [None, 0.5, -0.5])
@pytest.mark.parametrize("is_causal", [True, False])
def test_an_attention_of_bf16_is_written_out_in_f32(is_causal: bool, scale: float | None) -> None:
    def function(m: Any, x: Any) -> Any:
        query, key, value = (tensor[None].bfloat16() for tensor in (x, m.linear(x), x))
        return attention(query, key, value, is_causal=is_causal, scale=scale)

    graph, padded = graph_of(function)
    assert padded.size is not None
    piece, _ = graph.piece(graph.nodes, graph.results)
    written = PaddedGraph(piece, padded.size.symbol, 8)
    x = torch.randn(5, WIDTH)
    (result,) = written.module(poisoned(x, 8), torch.tensor(5))
    expected = Of(function).eval()(x)
    assert result.dtype is torch.bfloat16
    torch.testing.assert_close(result[:, :5], expected, rtol=2e-2, atol=1e-2)


def test_a_row_with_nan_changes_what_reads_it_alone() -> None:
    """Masks keep padding out, and nothing of the call: its own NaN and infinity stay."""
    function = RULES["causal attention"]
    graph, padded = graph_of(function)
    assert padded.size is not None
    piece, _ = graph.piece(graph.nodes, graph.results)
    written = PaddedGraph(piece, padded.size.symbol, 8)
    x = torch.randn(5, WIDTH)
    x[3, 1] = float("inf")
    (result,) = written.module(poisoned(x, 8), torch.tensor(5))
    expected = Of(function).eval()(x)
    finite = expected.isfinite()  # PyTorch adds -inf to hidden scores: NaN where one is infinite
    assert 0 < finite.sum() < finite.numel()
    torch.testing.assert_close(result[:, :5][finite], expected[finite])
    assert not result[:, 3:5].isfinite().all()
