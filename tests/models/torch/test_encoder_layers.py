"""PyTorch's fast paths of encoder layers and attentions, each one operator of torch.compile, are taken."""

from typing import Any

import pytest

pytestmark = [
    pytest.mark.mlir,
    pytest.mark.filterwarnings("ignore"),  # of torch, about its own code
    pytest.mark.usefixtures("fresh_back_end"),
]

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip

import tuner.torch  # noqa: E402
from tests.models.torch.test_partition import seeded  # noqa: E402

ROWS, POSITIONS, WIDTH, HEADS = 2, 6, 16, 2
X = torch.linspace(-2, 2, ROWS * POSITIONS * WIDTH).reshape(ROWS, POSITIONS, WIDTH).sin()
ENDS = torch.arange(POSITIONS).expand(ROWS, -1) >= torch.tensor([[4], [6]])  # True: padding
CAUSAL = torch.full((POSITIONS, POSITIONS), -torch.inf).triu(1)
NEAR = torch.eye(POSITIONS) - 0.25  # numbers of a mask that are not 0 hide a key in the fast path


def require_as_eager(module: Any, *arguments: Any, **keywords: Any) -> None:
    """Requires results of eager mode, NaN included, of one graph that is taken."""
    leaves = torch.utils._pytree.tree_leaves  # noqa: SLF001 - torch's only API
    with torch.no_grad():
        found = torch.compile(module, backend="tuner")(*arguments, **keywords)
        expected = module(*arguments, **keywords)
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5, equal_nan=True)
    counts = tuner.torch.graph_counts()
    assert (counts.taken, counts.left, counts.in_torch) == (1, 0, ())


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        ({}, {}),
        ({"norm_first": True, "activation": "gelu"}, {}),
        ({}, {"src_mask": CAUSAL}),
        ({"norm_first": True}, {"src_mask": NEAR}),
        ({}, {"src_key_padding_mask": ENDS}),
        ({"activation": "gelu"}, {"src_mask": CAUSAL != 0, "src_key_padding_mask": ENDS}),
    ],
    ids=["plain", "norm first", "causal", "a mask of numbers", "padding", "both"],
)
def test_an_encoder_layer_is_fusions(options: dict[str, Any], keywords: dict[str, Any]) -> None:
    layer = seeded(lambda: nn.TransformerEncoderLayer(WIDTH, HEADS, 32, batch_first=True, **options))
    require_as_eager(layer, X, **keywords)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"need_weights": False},
        {"average_attn_weights": False},
        {"key_padding_mask": torch.tensor([[False], [True]]).expand(-1, POSITIONS)},  # no key is seen: NaN
    ],
    ids=["averaged weights", "no weights", "weights", "hidden"],
)
def test_an_attention_of_one_tensor_is_fusions(keywords: dict[str, Any]) -> None:
    module = seeded(lambda: nn.MultiheadAttention(WIDTH, HEADS, batch_first=True))
    require_as_eager(module, X, X, X, **keywords)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("mask", [CAUSAL, NEAR, CAUSAL != 0], ids=["causal", "numbers", "truths"])
def test_an_encoder_with_a_mask_is_one_graph_whether_the_mask_is_causal_or_not(mask: Any) -> None:
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 32, batch_first=True)
    module = seeded(lambda: nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
    require_as_eager(module, X, mask=mask)
    assert tuner.torch.graph_counts().without_graph == ()


@pytest.mark.slow
def test_an_encoder_in_bf16_is_as_near_to_float64_as_eager_mode() -> None:
    layer = seeded(lambda: nn.TransformerEncoderLayer(WIDTH, HEADS, 32, batch_first=True))
    exact = seeded(lambda: nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)).double()
    module = seeded(lambda: nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)).bfloat16()
    x = X.bfloat16()
    with torch.no_grad():
        exact.load_state_dict(module.state_dict())
        expected = exact(x.double())
        errors = [
            (made(x).double() - expected).abs().max()
            for made in (torch.compile(module, backend="tuner"), module)
        ]
    assert errors[0] <= 1.5 * errors[1]


@pytest.mark.slow
def test_encoder_layers_of_several_lengths_are_taken() -> None:
    layer = seeded(lambda: nn.TransformerEncoderLayer(WIDTH, HEADS, 32, batch_first=True))
    compiled: Any = torch.compile(layer, backend="tuner")
    with torch.no_grad():
        for x in (X, X[:, :5], X[:, :3]):
            torch.testing.assert_close(compiled(x), layer(x), rtol=1e-5, atol=1e-5)
    counts = tuner.torch.graph_counts()
    assert (counts.taken, counts.left, counts.in_torch) == (2, 0, ())
