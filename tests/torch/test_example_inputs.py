"""A call differs from the example inputs in the numbers of tensors alone: other constants are compared."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from tuner.core.errors import UsageError

pytestmark = pytest.mark.mlir

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip

import tuner.torch  # noqa: E402
from tests.programs.exports.export import Function  # noqa: E402
from tuner.torch.export import export_module  # noqa: E402
from tuner.torch.program import TensorProgram  # noqa: E402

X, Y = torch.linspace(-2, 2, 12).reshape(3, 4), torch.linspace(5, 9, 12).reshape(3, 4)


class Difference(nn.Module):
    """Subtracts a keyword, and a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(X.clone())

    def forward(self, x: Any, *, y: Any) -> Any:
        return x - y * 2 - self.weight


Called = tuple[tuple[Any, ...], dict[str, Any]]
WEIGHTED = Difference().eval()
SHARED: dict[str, tuple[Any, Called, Called]] = {
    "twice": (Function(lambda x, y: x - y), ((X, X), {}), ((X, Y), {})),
    "keyword": (WEIGHTED, ((X,), {"y": X}), ((X,), {"y": Y})),
    "list": (Function(lambda pair: pair[0] - pair[1]), (([X, X],), {}), (([X, Y],), {})),
    "overlapping views": (Function(lambda x, y: x - y), ((X[:2], X[1:]), {}), ((X[:2], Y[1:]), {})),
    "a weight": (WEIGHTED, ((WEIGHTED.weight,), {"y": X}), ((Y,), {"y": X})),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", SHARED)
def test_tensors_that_share_memory_in_the_example_are_inputs_each(name: str) -> None:
    module, example, (arguments, keywords) = SHARED[name]
    program = tuner.torch.compile(module, *example)
    with torch.no_grad():
        expected = module(*arguments, **keywords)
    torch.testing.assert_close(program(*arguments, **keywords), expected)


class Scaled(nn.Module):
    """Takes numbers, a truth, a text and None."""

    def forward(
        self, x: Any, scale: Any, is_shifted: bool = True, name: str | None = None, sizes: Any = ()
    ) -> Any:
        return x * scale + (1 if is_shifted else 2) + len(name or "") + len(sizes)


@pytest.fixture(scope="module")
def scaled() -> TensorProgram:
    return tuner.torch.compile(Scaled(), (X, 2.5, False, None, [3, 4]))


def test_numbers_truths_lists_and_none_are_constants(scaled: TensorProgram) -> None:
    assert torch.equal(scaled(Y, 2.5, False, None, [3, 4]), Y * 2.5 + 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (X, 2.0, False, None, [3, 4]),
            r"argument 1: found 2\.0, allowed 2\.5, which the program was compiled",
        ),
        (
            (X, 2.5, True, None, [3, 4]),
            "argument 2: found True, allowed False, which .*; compile the module again",
        ),
        ((X, 2.5, 0, None, [3, 4]), "argument 2: found 0, allowed False"),
        ((X, 2.5, False, X, [3, 4]), "argument 3: found a tensor, allowed None"),
        ((X, 2.5, False, None, [3, 5]), "argument 5: found 5, allowed 4"),
        ((X, 2.5, False, None, [3]), "arguments: found another structure than that of the example inputs"),
        ((None, 2.5, False, None, [3, 4]), "argument 0: found NoneType, allowed a tensor"),
    ],
)
def test_another_constant_is_refused(scaled: TensorProgram, arguments: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        scaled(*arguments)


@pytest.mark.slow
def test_constants_are_compared_by_their_bits() -> None:
    constants = export_module(Scaled(), (X, -0.0))
    assert constants.tensors_of((Y, -0.0), {}) == (Y,)
    with pytest.raises(UsageError, match=r"found 0\.0, allowed -0\.0"):
        constants.tensors_of((Y, 0.0), {})
    assert export_module(Scaled(), (X, math.nan)).tensors_of((Y, math.nan), {}) == (Y,)


@pytest.mark.parametrize("arguments", [[X], X], ids=["list", "tensor"])
def test_examples_are_a_tuple(arguments: Any) -> None:
    with pytest.raises(UsageError, match=r"arguments: found (list|torch\.Tensor), allowed a tuple"):
        tuner.torch.compile(nn.Linear(4, 2), arguments)


RANDOM: dict[str, Callable[[], Any]] = {
    "dropout": lambda: nn.Dropout(0.5).train(),
    "numbers": lambda: Function(lambda x: x + torch.rand(3, 4)),
    "dropout between layers": lambda: nn.LSTM(4, 4, num_layers=2, dropout=0.5).train(),
    "dropout of attention": lambda: Function(
        lambda x: nn.functional.scaled_dot_product_attention(x, x, x, None, 0.5)
    ),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", RANDOM)
def test_modules_that_draw_random_numbers_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"the module draws random numbers, by .*; call module\.eval\(\)"):
        export_module(RANDOM[name](), (X,))


def test_indices_of_a_max_pool_and_strides_of_an_input_are_refused() -> None:
    x = X.reshape(1, 1, 3, 4)
    indices = Function(lambda x: nn.functional.max_pool2d(x, 2, return_indices=True)[1])
    with pytest.raises(
        UsageError, match="indices of a max_pool are not supported: those of NaN would be wrong"
    ):
        export_module(indices, (x,))
    assert export_module(Function(lambda x: nn.functional.max_pool2d(x, 2)), (x,)).inputs == (0,)
    with pytest.raises(
        UsageError, match=r"aten\.as_strided is not supported: it reads memory by the strides"
    ):
        export_module(Function(lambda x: x.as_strided((2, 2), (1, 2))), (X,))


BYTES = torch.zeros(1, 1, 4, 4, dtype=torch.uint8)
BAGS = torch.zeros(2, 2, dtype=torch.int64)
REFUSED: dict[str, tuple[Any, tuple[Any, ...]]] = {
    r"aten\.embedding_bag\.\w+ with per_sample_weights is not supported": (
        lambda x, bags, weights: nn.functional.embedding_bag(bags, x, mode="sum", per_sample_weights=weights),
        (X, BAGS, torch.rand(2, 2)),
    ),
    r"aten\.upsample_bilinear2d\.vec of uint8 is not supported: PyTorch computes it in fixed point": (
        lambda x: nn.functional.interpolate(x, scale_factor=1.7, mode="bilinear"),
        (BYTES,),
    ),
    "a result of complex numbers is not supported": (lambda x: torch.complex(x, x), (X,)),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_torch_mlir_would_get_wrong_is_refused(message: str) -> None:
    function, tensors = REFUSED[message]
    with pytest.raises(UsageError, match=message):
        export_module(Function(function), tensors)


def test_sums_of_embeddings_without_weights_and_resized_floats_are_right() -> None:
    def sums(x: Any, bags: Any) -> Any:
        return nn.functional.embedding_bag(bags, x, torch.tensor([0, 2]), mode="sum")

    def resized(x: Any) -> Any:
        return nn.functional.interpolate(x, scale_factor=1.7, mode="bilinear")

    for function, tensors in (
        (sums, (X, torch.tensor([0, 2, 1, 1]))),
        (resized, (BYTES.float() + X[:1, 0],)),
    ):
        module: Any = Function(function)
        torch.testing.assert_close(tuner.torch.compile(module, tensors)(*tensors), module(*tensors))
