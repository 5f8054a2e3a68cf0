"""After a call, one in which one component differs is right as in eager mode, or refused.

The first call is then right again.
Components: types, signs, sizes, strides, addresses, lazy signs, sharing, weights, modes, threads, processes,
devices, and static attributes of a module.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest

from tests.forked import in_child
from tuner.core.errors import UsageError

# warnings are of torch, about its own code; of fork next to threads
pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip
from torch.autograd import forward_ad  # noqa: E402

import tuner.torch  # noqa: E402
from tests.models.exports.export import Function  # noqa: E402

SIZE = 16  # of all matrices: one that takes another for it is wrong, and does not fail
torch.manual_seed(0)
X, Y = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
Call = Callable[..., Any]


def steps(x: Any) -> Any:
    """Returns the same numbers with another row between two rows."""
    return torch.stack((x, torch.zeros_like(x)), 1).view(2 * SIZE, SIZE)[::2]


def unaligned(x: Any) -> Any:
    """Returns the same numbers at an address that is not a multiple of 16 bytes."""
    memory = torch.empty(x.numel() + 1)
    memory[1:] = x.flatten()
    return memory[1:].view(x.shape)


# What may differ in a tensor of a call
TENSORS: dict[str, Callable[[Any], Any]] = {
    "contents": torch.neg,
    "type": lambda x: x.double(),
    "half": lambda x: x.half(),
    "whole numbers": lambda x: (x * 9).to(torch.int8),
    "sign": lambda x: (x * 9).to(torch.uint8),
    "truths": lambda x: x > 0,
    "rows": lambda x: x[:5],
    "dimensions": lambda x: x[None],
    "transposed": lambda x: x.t(),
    "steps": steps,
    "repeated": lambda x: x[:1].expand(SIZE, SIZE),
    "address": unaligned,
    "lazily negated": lambda x: torch._neg_view(x),  # noqa: SLF001 - as torch makes them
    "part of a conjugate": lambda x: torch.complex(x, x * 2).conj().imag,
    "gradients": lambda x: x.clone().requires_grad_(),
    "a parameter": lambda x: nn.Parameter(x.clone()),
    "sparse": lambda x: x.to_sparse(),
    "device": lambda x: x.to("meta"),
}


@contextmanager
def switched(switch: Callable[[Any], None], given: Any, usual: Any) -> Iterator[None]:
    switch(given)
    try:
        yield
    finally:
        switch(usual)


MODES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "gradients": torch.enable_grad,
    "autocast": lambda: torch.autocast("cpu"),
    "autocast that is off": lambda: torch.autocast("cpu", enabled=False),
    "default dtype": lambda: switched(torch.set_default_dtype, torch.float64, torch.float32),
    "deterministic": lambda: switched(torch.use_deterministic_algorithms, True, False),
    "default device": lambda: torch.device("meta"),
    "tangents": forward_ad.dual_level,
}
TRANSFORMS: dict[str, Callable[[Call], Call]] = {
    "vmap": lambda call: lambda x, y: torch.vmap(call)(x[None], y[None]),
    "jvp of the first": lambda call: lambda x, y: torch.func.jvp(lambda x: call(x, y), (x,), (x,)),
    "jvp of the second": lambda call: lambda x, y: torch.func.jvp(lambda y: call(x, y), (y,), (y,)),
    "gradient": lambda call: lambda x, y: torch.func.grad(lambda x: call(x, y).sum())(x),
    "functionalize": torch.func.functionalize,
}


def equal(found: Any, expected: Any) -> bool:
    if isinstance(expected, tuple):
        return all(equal(one, other) for one, other in zip(found, expected, strict=True))
    return bool(found.dtype == expected.dtype and torch.allclose(found, expected, rtol=1e-4, atol=1e-4))


def right_or_refused(call: Call, eager: Call, *tensors: Any) -> bool:
    try:
        found = call(*tensors)
    except (UsageError, NotImplementedError, RuntimeError) as error:
        return not isinstance(error, UsageError) or "\n" not in str(error)
    expected = eager(*tensors)
    if any(each.is_meta for each in tensors):
        return bool(found.is_meta and found.shape == expected.shape)
    return equal(found, expected)


def require_all(call: Call, eager: Call) -> None:
    """Calls with X and Y, then with one component changed, then with X and Y again, which must be right."""
    wrong = []

    def check(name: str, *tensors: Any, mode: AbstractContextManager[Any] | None = None) -> None:
        with torch.no_grad():
            assert equal(call(X, Y), eager(X, Y)), name
        with mode or nullcontext():
            if not right_or_refused(call, eager, *tensors):
                wrong.append(name)

    for name, change in TENSORS.items():
        for at, tensors in enumerate(((change(X), Y), (X, change(Y)), (change(X), change(Y)))):
            check(f"{name} of {('first', 'second', 'both')[at]}", *tensors, mode=torch.no_grad())
    for name, mode in MODES.items():
        check(name, X, Y, mode=mode())
    check("sharing", X, X)
    check("sharing of memory", X, X.t())
    check("order", Y, X)
    for name, transform in TRANSFORMS.items():
        if not right_or_refused(transform(call), transform(eager), X, Y):
            wrong.append(name)
    with torch.inference_mode():
        made = X.clone(), Y.clone()
    check("made under inference mode", *made, mode=torch.no_grad())
    assert wrong == []
    with torch.no_grad():
        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(lambda: equal(call(Y, X), eager(Y, X))).result()
        expected = eager(Y, X)  # here: MKL may loop for ever in a forked process (mm_account_ptr_by_tid)
        assert in_child(lambda: equal(call(Y, X), expected))


PRODUCTS: dict[str, tuple[Call, Call]] = {
    "mm": (torch.ops.tuner.mm, torch.mm),
    "linear": (torch.ops.tuner.linear, nn.functional.linear),
    "bmm": (lambda x, y: torch.ops.tuner.bmm(x[None], y[None])[0], torch.mm),
    "addmm": (lambda x, y: torch.ops.tuner.addmm(x[:1].sum(0), x, y), lambda x, y: torch.addmm(x[0], x, y)),
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", PRODUCTS)
def test_operations_with_a_tensor(name: str) -> None:
    require_all(*PRODUCTS[name])


@pytest.mark.parametrize("name", ["mm", "linear"])
def test_operations_with_a_parameter(name: str) -> None:
    """The second operand is packed; the same parameter is given to the other operation in between."""
    weight, pairs = nn.Parameter(Y.clone()), [PRODUCTS["mm"], PRODUCTS["linear"]]
    (call, eager), (other, _) = pairs if name == "mm" else reversed(pairs)

    def packed(x: Any, y: Any) -> Any:
        if y is not Y:
            return call(x, y)
        with torch.no_grad():
            other(X, weight)
        return call(x, weight)

    require_all(packed, lambda x, y: eager(x, weight if y is Y else y))


@pytest.mark.slow
def test_the_bias_of_an_operation_and_programs() -> None:
    weight = nn.Parameter(Y.clone())
    biases = (None, X[0], Y[:, 3], X[0, :1].expand(SIZE), torch._neg_view(X[0]), weight[0])  # noqa: SLF001
    with torch.no_grad():
        for bias in (*biases, *reversed(biases)):
            assert equal(torch.ops.tuner.linear(X, weight, bias), nn.functional.linear(X, weight, bias))
        for bias in (X[0].double(), X[0, :3], X):
            with pytest.raises(UsageError, match="tuner::linear"):
                torch.ops.tuner.linear(X, weight, bias)
    module = Both().eval()
    require_all(tuner.torch.compile(module, (X, Y)), module)


class Both(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(SIZE, SIZE)

    def forward(self, x: Any, y: Any) -> Any:
        return self.line(x) * 2 + y.t() @ x


@pytest.mark.parametrize(("dtype", "other"), [(torch.int8, torch.uint8), (torch.int32, torch.int64)])
def test_programs_of_whole_numbers_take_no_other_kind(dtype: Any, other: Any) -> None:
    x = torch.arange(5).to(dtype)
    program = tuner.torch.compile(Function(lambda x: x + x), (x,))
    assert equal(program(x), x + x)
    with pytest.raises(UsageError, match="argument 0: found"):
        program(x.to(other))


class Attributes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(SIZE, eps=1e-5)
        self.scale = 1.0
        self.is_negated = False
        self.slope = nn.LeakyReLU(0.25)
        self.offset = torch.zeros(SIZE)

    def forward(self, x: Any) -> Any:
        found = self.slope(self.norm(x) * self.scale + self.offset).sum(0)
        return -found if self.is_negated else found


CHANGES: dict[str, Callable[[Any], object]] = {
    "eps": lambda module: setattr(module.norm, "eps", 3.0),
    "number": lambda module: setattr(module, "scale", 2.5),
    "truth": lambda module: setattr(module, "is_negated", True),
    "tensor": lambda module: setattr(module, "offset", torch.ones(SIZE)),
    "parameter": lambda module: setattr(module.norm, "weight", nn.Parameter(torch.full((SIZE,), 2.0))),
    "module": lambda module: setattr(module, "slope", nn.ReLU()),
}


@pytest.mark.slow
def test_static_attributes_under_the_back_end_of_torch_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.compile guards them; the back end must not find the code of another value."""
    torch._dynamo.reset()  # noqa: SLF001
    monkeypatch.setattr("tuner.models.torch.dynamo_backend.FALLBACK", "eager")
    tuner.torch.graph_counts(reset=True)
    module: Any = Attributes().eval()
    compiled: Any = torch.compile(module, backend="tuner")
    # a number that changes becomes an input of the graph, which is left: here it stays a constant
    constants = torch._dynamo.config.patch(recompile_limit=2 * len(CHANGES), specialize_float=True)  # noqa: SLF001
    with torch.no_grad(), constants:
        assert equal(compiled(X), module(X))
        for name, change in CHANGES.items():
            before = module(X)
            change(module)
            assert not equal(before, module(X)), name
            assert equal(compiled(X), module(X)), name
    assert tuner.torch.graph_counts().left == 0


@pytest.mark.slow
def test_static_attributes_of_two_programs() -> None:
    """Each program is that of the module as it was: nothing of one is found for the other."""
    modules = []
    with torch.no_grad():
        for name in ("eps", "number"):
            module = Attributes().eval()
            CHANGES[name](module)
            modules.append((tuner.torch.compile(module, (X,)), module))
        for program, module in modules:
            assert equal(program(X), module(X))
