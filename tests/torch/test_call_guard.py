"""What a program was compiled under is compared at each call: it is followed, or refused in one line."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from tuner.core.errors import UsageError

pytestmark = [
    pytest.mark.mlir,
    pytest.mark.filterwarnings("ignore"),  # of torch, about its own code
]

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip
from torch._subclasses import FakeTensorMode  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

import tuner.torch  # noqa: E402
from tests.programs.exports.export import Function  # noqa: E402
from tuner.torch.export import export_module  # noqa: E402
from tuner.torch.program import TensorProgram  # noqa: E402

X = torch.linspace(-2, 2, 12).reshape(3, 4)
FREED = X.clone()
FREED.untyped_storage().resize_(0)
MODULE = nn.Linear(4, 2).eval()


@pytest.fixture(scope="module")
def program() -> TensorProgram:
    return tuner.torch.compile(MODULE, (X,))


class Passing(TorchFunctionMode):
    """Passes each call of torch on, as a mode of the user might change it."""

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        return function(*arguments, **(keywords or {}))


@contextlib.contextmanager
def default_dtype(dtype: Any) -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def test_lazy_signs_of_inputs_of_examples_and_of_weights_are_resolved(program: TensorProgram) -> None:
    lazy = torch.complex(torch.zeros(3, 4), X).conj().imag
    assert lazy.is_neg()
    assert torch.equal(program(lazy), program(-X))
    module = Function(lambda x: x * 3 + module.shift)
    module.register_buffer("shift", lazy)
    shifted = tuner.torch.compile(module, (lazy,))
    assert torch.equal(shifted(X), X * 3 + module.shift)


@pytest.mark.parametrize("is_inside", [False, True], ids=["outside", "inside"])
def test_tensors_of_inference_mode_are_taken(program: TensorProgram, is_inside: bool) -> None:
    with torch.inference_mode():
        made = X.clone()
    with torch.inference_mode(is_inside):
        assert torch.equal(program(made), program(X))
        assert program(X).is_inference() == is_inside


def test_parameters_are_taken_where_no_gradients_are_asked_for(program: TensorProgram) -> None:
    with torch.no_grad():
        assert torch.equal(program(nn.Parameter(X)), program(X))
    with pytest.raises(UsageError, match="autograd is not supported"):
        program(nn.Parameter(X))
    with torch.device("cpu"):  # a default device that is the processor changes nothing
        assert torch.equal(program(X), program(X.clone()))


class Doubling(torch.Tensor):  # type: ignore[misc,name-defined,unused-ignore]
    """Doubles the results of linear layers."""

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        found = super().__torch_function__(function, types, arguments, keywords)
        return found * 2 if function is nn.functional.linear else found


class Plain(torch.Tensor):  # type: ignore[misc,name-defined,unused-ignore]
    """A type of tensors that changes nothing."""


def test_tensors_that_change_operations_are_refused(program: TensorProgram) -> None:
    assert torch.equal(program(X.as_subclass(Plain)), program(X))
    message = "argument 0: found Doubling, whose __torch_function__ a program would not call"
    with pytest.raises(UsageError, match=message):
        program(X.as_subclass(Doubling))
    with pytest.raises(UsageError, match=message):
        export_module(MODULE, (X.as_subclass(Doubling),))


MODES: dict[str, tuple[Callable[[], Any], str]] = {
    "autocast": (
        lambda: torch.autocast("cpu"),
        r"torch\.autocast is not supported around a program; compile",
    ),
    "default dtype": (lambda: default_dtype(torch.float64), "found default dtype float64, allowed float32"),
    "dispatch mode": (FakeTensorMode, "a TorchDispatchMode, such as FakeTensorMode, is not supported"),
    "function mode": (Passing, "Passing is not supported: it changes operations of the module"),
    "default device": (lambda: torch.device("meta"), "DeviceContext is not supported"),
}


@pytest.mark.parametrize("name", MODES)
def test_a_mode_that_a_program_would_not_follow_is_refused_at_a_call_and_when_compiled(
    program: TensorProgram, name: str
) -> None:
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


def test_tangents_are_refused(program: TensorProgram) -> None:
    with forward_ad.dual_level():
        assert torch.equal(program(X), program(X.clone()))
        with pytest.raises(
            UsageError, match="forward-mode autograd is not supported: the input has a tangent"
        ):
            program(forward_ad.make_dual(X, X))


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "vmap": lambda program: torch.vmap(program)(torch.stack([X, X])),
    "grad": lambda program: torch.func.grad(lambda x: program(x).sum())(X),
    "jvp": lambda program: torch.func.jvp(program, (X,), (X,)),
    "functionalize": lambda program: torch.func.functionalize(program)(X),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_refused(program: TensorProgram, name: str) -> None:
    with pytest.raises(UsageError, match=r"argument 0: transforms of torch\.func are not supported"):
        TRANSFORMS[name](program)


def test_tracing_and_compiling_inside_of_a_transform_are_refused(program: TensorProgram) -> None:
    with pytest.raises(UsageError, match=r"transforms of torch\.func are not supported: compile outside"):
        torch.vmap(lambda x: tuner.torch.compile(MODULE, (X,))(x))(torch.stack([X, X]))
    with pytest.raises(UsageError, match=r"torch\.jit\.trace is not supported"):
        torch.jit.trace(program.__call__, (X,))


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
    with pytest.raises(UsageError, match=f"argument 0: {message}"):
        program(make())
    with pytest.raises(UsageError, match=f"argument 0: {message}"):
        export_module(MODULE, (make(),))
    module = Function(lambda x: x + 1)
    module.register_buffer("weight", make())
    with pytest.raises(UsageError, match=f"weight: {message}"):
        export_module(module, (X,))


def test_a_nested_tensor_is_refused(program: TensorProgram) -> None:
    nested = torch.nested.nested_tensor([X[0], X[1, :2]])
    with pytest.raises(UsageError, match="argument 0: found a nested tensor, allowed a dense tensor"):
        program(nested)
    with pytest.raises(UsageError, match="argument 0: found a nested tensor, allowed a dense tensor"):
        export_module(MODULE, (nested,))
