"""What a program was compiled under is compared at each call: it is followed, or refused in one line.

A call differs from the example inputs in the numbers of tensors alone: other constants are compared.
"""

import contextlib
import math
from collections.abc import Callable
from typing import Any

import pytest

from tuner.core.errors import UsageError

pytestmark = pytest.mark.mlir
WARNED_OF = pytest.mark.filterwarnings("ignore")  # by torch, about its own code

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip
from torch._subclasses import FakeTensorMode  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402
from torch.overrides import BaseTorchFunctionMode  # noqa: E402

import tuner.torch  # noqa: E402
from tests.models.exports.export import Function  # noqa: E402
from tuner.models.torch.export import export_module  # noqa: E402
from tuner.models.torch.program import TensorProgram  # noqa: E402

X, Y = torch.linspace(-2, 2, 12).reshape(3, 4), torch.linspace(5, 9, 12).reshape(3, 4)
F = nn.functional
FREED = X.clone()
FREED.untyped_storage().resize_(0)
MODULE = nn.Linear(4, 2).eval()


@pytest.fixture(scope="module")
def program() -> TensorProgram:
    return tuner.torch.compile(MODULE, (X,))


def require_refusal(program: TensorProgram, x: Any, message: str) -> None:
    for take in (program, lambda x: export_module(MODULE, (x,))):
        with pytest.raises(UsageError, match=f"argument 0: {message}"):
            take(x)


@contextlib.contextmanager
def default_dtype(dtype: Any) -> Any:
    with contextlib.ExitStack() as stack:
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        yield torch.set_default_dtype(dtype)


def test_lazy_signs_of_inputs_of_examples_and_of_weights_are_resolved(program: TensorProgram) -> None:
    lazy = torch.complex(torch.zeros(3, 4), X).conj().imag
    assert lazy.is_neg()
    assert torch.equal(program(lazy), program(-X))
    module = Function(lambda x: x * 3 + module.shift)
    module.register_buffer("shift", lazy)
    assert torch.equal(tuner.torch.compile(module, (lazy,))(X), X * 3 + module.shift)


@pytest.mark.parametrize("is_inside", [False, True], ids=["outside", "inside"])
def test_tensors_of_inference_mode_are_taken(program: TensorProgram, is_inside: bool) -> None:
    with torch.inference_mode():
        made = X.clone()
    with torch.inference_mode(is_inside):
        assert torch.equal(program(made), program(X))
        assert program(X).is_inference() == is_inside


def test_parameters_without_gradients_and_harmless_subclasses_are_taken(program: TensorProgram) -> None:
    with torch.no_grad():
        assert torch.equal(program(nn.Parameter(X)), program(X))
    with pytest.raises(UsageError, match="autograd is not supported"):
        program(nn.Parameter(X))
    with torch.device("cpu"):  # a default device that is the processor changes nothing
        assert torch.equal(program(X), program(X.clone()))
    assert torch.equal(program(X.as_subclass(Plain)), program(X))
    message = "found Doubling, whose __torch_function__ a program would not call"
    require_refusal(program, X.as_subclass(Doubling), message)


class Doubling(torch.Tensor):  # type: ignore[misc,name-defined,unused-ignore]
    @classmethod
    def __torch_function__(cls, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        found = super().__torch_function__(function, types, arguments, keywords)
        return found * 2 if function is nn.functional.linear else found


class Plain(torch.Tensor):  # type: ignore[misc,name-defined,unused-ignore]
    """A type of tensors that changes nothing."""


AUTOCAST = r"torch\.autocast is not supported around a program; compile"
MODES: dict[str, tuple[Callable[[], Any], str]] = {
    "autocast": (lambda: torch.autocast("cpu"), AUTOCAST),
    "default dtype": (lambda: default_dtype(torch.float64), "found default dtype float64, allowed float32"),
    "dispatch mode": (FakeTensorMode, "a TorchDispatchMode, such as FakeTensorMode, is not supported"),
    "function": (BaseTorchFunctionMode, "FunctionMode is not supported: it changes operations of the module"),
    "default device": (lambda: torch.device("meta"), "DeviceContext is not supported"),
}


@pytest.mark.parametrize("name", MODES)
def test_a_mode_that_a_program_would_not_follow_is_refused(program: TensorProgram, name: str) -> None:
    """At a call and when compiled."""
    make, message = MODES[name]
    with make(), pytest.raises(UsageError, match=message):
        program(X)
    if name != "default dtype":
        with make(), pytest.raises(UsageError, match=message):
            tuner.torch.compile(MODULE, (X,))


@pytest.mark.slow
def test_autocast_inside_of_a_module_is_followed() -> None:
    class Narrow(nn.Linear):
        def forward(self, x: Any) -> Any:
            with torch.autocast("cpu"):
                return super().forward(x)

    module = Narrow(4, 2).eval()
    found = tuner.torch.compile(module, (X,))(X)
    assert found.dtype is torch.bfloat16
    torch.testing.assert_close(found, module(X), rtol=1e-2, atol=1e-2)


def test_the_default_dtype_is_that_of_compiling() -> None:
    numbers = torch.arange(4)
    with default_dtype(torch.float64):
        program = tuner.torch.compile(Function(lambda x: x / 3), (numbers,))
        assert torch.equal(program(numbers), numbers / 3)
    with pytest.raises(UsageError, match="found default dtype float32, allowed float64"):
        program(numbers)


@WARNED_OF
def test_tangents_and_tracing_and_compiling_inside_of_a_transform_are_refused(program: TensorProgram) -> None:
    with forward_ad.dual_level():
        assert torch.equal(program(X), program(X.clone()))
        line = "forward-mode autograd is not supported: the input has a tangent"
        with pytest.raises(UsageError, match=line):
            program(forward_ad.make_dual(X, X))
    with pytest.raises(UsageError, match=r"transforms of torch\.func are not supported: compile outside"):
        torch.vmap(lambda x: tuner.torch.compile(MODULE, (X,))(x))(torch.stack([X, X]))
    with pytest.raises(UsageError, match=r"torch\.jit\.trace is not supported"):
        torch.jit.trace(program.__call__, (X,))
    nested = torch.nested.nested_tensor([X[0], X[1, :2]])
    require_refusal(program, nested, "found a nested tensor, allowed a dense tensor")


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "vmap": lambda program: torch.vmap(program)(torch.stack([X, X])),
    "grad": lambda program: torch.func.grad(lambda x: program(x).sum())(X),
    "jvp": lambda program: torch.func.jvp(program, (X,), (X,)),
    "functionalize": lambda program: torch.func.functionalize(program)(X),
}


@WARNED_OF
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_refused(program: TensorProgram, name: str) -> None:
    with pytest.raises(UsageError, match=r"argument 0: transforms of torch\.func are not supported"):
        TRANSFORMS[name](program)


KINDS: dict[str, tuple[Callable[[], Any], str]] = {
    "fake": (
        lambda: FakeTensorMode().from_tensor(X),
        "found FakeTensor, allowed a tensor with its own memory",
    ),
    "freed": (lambda: FREED, "found a tensor without memory: its storage was freed"),
    "sparse": (X.to_sparse, "found sparse_coo, allowed a dense tensor"),
    "mkldnn": (X.to_mkldnn, "found _mkldnn, allowed a dense tensor"),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", KINDS)
def test_a_tensor_without_dense_memory_is_named(program: TensorProgram, name: str) -> None:
    make, message = KINDS[name]
    require_refusal(program, make(), message)
    module = Function(lambda x: x + 1)
    module.register_buffer("weight", make())
    with pytest.raises(UsageError, match=f"weight: {message}"):
        export_module(module, (X,))


# Other constants than those of the example inputs.
class Difference(nn.Module):
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

    def forward(self, x: Any, scale: Any, is_shifted: Any = True, name: Any = None, sizes: Any = ()) -> Any:
        return x * scale + (1 if is_shifted else 2) + len(name or "") + len(sizes)


COMPILED_FOR = ", which the program was compiled .*; compile the module again"


@pytest.fixture(scope="module")
def scaled() -> TensorProgram:
    return tuner.torch.compile(Scaled(), (X, 2.5, False, None, [3, 4]))


def test_numbers_truths_lists_and_none_are_constants(scaled: TensorProgram) -> None:
    assert torch.equal(scaled(Y, 2.5, False, None, [3, 4]), Y * 2.5 + 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, 2.0, False, None, [3, 4]), rf"argument 1: found 2\.0, allowed 2\.5{COMPILED_FOR}"),
        ((X, 2.5, True, None, [3, 4]), f"argument 2: found True, allowed False{COMPILED_FOR}"),
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
    constants = export_module(Scaled(), (X, -0.0)).form
    assert constants.tensors_of((Y, -0.0), {}) == (Y,)
    with pytest.raises(UsageError, match=r"found 0\.0, allowed -0\.0"):
        constants.tensors_of((Y, 0.0), {})
    assert export_module(Scaled(), (X, math.nan)).form.tensors_of((Y, math.nan), {}) == (Y,)


@pytest.mark.parametrize("arguments", [[X], X], ids=["list", "tensor"])
def test_examples_are_a_tuple(arguments: Any) -> None:
    with pytest.raises(UsageError, match=r"arguments: found (list|torch\.Tensor), allowed a tuple"):
        tuner.torch.compile(nn.Linear(4, 2), arguments)


RANDOM: dict[str, Callable[[], Any]] = {
    "dropout": lambda: nn.Dropout(0.5).train(),
    "numbers": lambda: Function(lambda x: x + torch.rand(3, 4)),
    "one number": lambda: Function(lambda x: x + torch.rand_like(torch.zeros(1))),
    "dropout between layers": lambda: nn.LSTM(4, 4, num_layers=2, dropout=0.5).train(),
    "dropout of attention": lambda: Function(lambda x: F.scaled_dot_product_attention(x, x, x, None, 0.5)),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", RANDOM)
def test_modules_that_draw_random_numbers_are_refused(name: str) -> None:
    with pytest.raises(
        UsageError, match=r"aten\.\S+( at \S+)? \(it draws random numbers\).*; call module\.eval\(\)$"
    ):
        export_module(RANDOM[name](), (X,))


def weighted_bags(x: Any, bags: Any, weights: Any) -> Any:
    return nn.functional.embedding_bag(bags, x, mode="sum", per_sample_weights=weights)


def bags_of_two(x: Any, bags: Any) -> Any:
    return nn.functional.embedding_bag(bags, x, torch.tensor([0, 2]), mode="sum")


def resized(x: Any) -> Any:
    return nn.functional.interpolate(x, scale_factor=1.7, mode="bilinear")


def pool_indices(x: Any) -> Any:
    return nn.functional.max_pool2d(x, 2, return_indices=True)[1]


def strided(x: Any) -> Any:
    return x.as_strided((2, 2), (1, 2))


IMAGE, BYTES = X.reshape(1, 1, 3, 4), torch.zeros(1, 1, 4, 4, dtype=torch.uint8)
BAGS = (X, torch.zeros(2, 2, dtype=torch.int64), torch.rand(2, 2))
OF_BYTES = (resized, (BYTES,))
REFUSED: dict[str, tuple[Any, tuple[Any, ...]]] = {
    r"aten\.embedding_bag\.\w+ at .* \(with per_sample_weights\)": (weighted_bags, BAGS),
    r"aten\.upsample_bilinear2d\.vec .* \(of uint8: PyTorch computes in fixed point\)": OF_BYTES,
    "a result of complex numbers is not supported": (lambda x: torch.complex(x, x), (X,)),
    r"aten\.max_pool\S+ at .* \(its indices, of NaN, would be wrong\)": (
        pool_indices,
        (IMAGE,),
    ),
    r"aten\.as_strided at .* \(it reads memory by the strides": (strided, (X,)),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_torch_mlir_would_get_wrong_is_refused(message: str) -> None:
    function, tensors = REFUSED[message]
    with pytest.raises(UsageError, match=message):
        export_module(Function(function), tensors)


@pytest.mark.slow
def test_embeddings_without_weights_resized_floats_and_a_max_pool_are_right() -> None:
    bags, floats = (X, torch.tensor([0, 2, 1, 1])), (BYTES.float() + X[:1, 0],)
    pooled = (lambda x: F.max_pool2d(x, 2)), (IMAGE,)
    for function, tensors in ((bags_of_two, bags), (resized, floats), pooled):
        module: Any = Function(function)
        torch.testing.assert_close(tuner.torch.compile(module, tensors)(*tensors), module(*tensors))
