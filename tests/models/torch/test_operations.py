"""tuner::mm, addmm, bmm, linear: equal to torch's, traced by fakes, weights packed once for each version."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.default_suite import ALL
from tuner.core.errors import UsageError

pytestmark = pytest.mark.mlir

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch._subclasses import FakeTensorMode  # noqa: E402 - after the skip
from torch.autograd import forward_ad  # noqa: E402

import tuner.torch  # noqa: E402
from tuner.models.torch import operations  # noqa: E402

torch.manual_seed(0)
A, B, BIAS = torch.randn(6, 16), torch.randn(16, 24), torch.randn(24)
BATCH = torch.randn(3, 6, 16)


equal = partial(torch.testing.assert_close, rtol=1e-5, atol=1e-5)


def test_products_are_those_of_torch_and_keep_the_sign_of_lazily_negated_operands() -> None:
    equal(tuner.torch.mm(A, B), A @ B)
    equal(tuner.torch.mm(A, B.t().contiguous().t()), A @ B)
    equal(torch.ops.tuner.addmm(BIAS, A, B), torch.addmm(BIAS, A, B))
    equal(tuner.torch.bmm(BATCH, BATCH.transpose(1, 2)), BATCH @ BATCH.transpose(1, 2))
    equal(tuner.torch.linear(BATCH, B.t(), BIAS), torch.nn.functional.linear(BATCH, B.t(), BIAS))
    equal(tuner.torch.linear(A[0], B.t()), A[0] @ B)
    lazy = torch.complex(torch.randn(6, 16), torch.randn(6, 16)).conj().imag
    assert lazy.is_neg()
    equal(tuner.torch.mm(lazy, B), lazy @ B)
    weight = torch.nn.Parameter(torch._neg_view(B.t().clone()))  # noqa: SLF001 - as torch makes them
    with torch.no_grad():
        equal(tuner.torch.linear(A, weight), A @ weight.t())


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_other_floats_are_rounded_once(dtype: Any) -> None:
    a, b, bias, batch = (operand.to(dtype) for operand in (A, B, BIAS, BATCH))
    weight = torch.nn.Parameter(b.t().clone(), requires_grad=False)
    wide = torch.float32 if dtype.itemsize < 4 else dtype
    calls: tuple[tuple[Any, Any], ...] = (
        (tuner.torch.mm(a, b), a.to(wide) @ b.to(wide)),
        (tuner.torch.addmm(bias, a, b), a.to(wide) @ b.to(wide) + bias.to(wide)),
        (tuner.torch.bmm(batch, batch.transpose(1, 2)), batch.to(wide) @ batch.to(wide).transpose(1, 2)),
        (tuner.torch.linear(a, weight, bias), a.to(wide) @ b.to(wide) + bias.to(wide)),
    )
    for found, expected in calls:
        assert found.dtype is dtype
        torch.testing.assert_close(found.to(wide), expected, rtol=torch.finfo(dtype).eps, atol=1e-5)


def test_a_weight_is_packed_once_for_each_version(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = torch.nn.Parameter(B.t().clone())
    with torch.no_grad():
        for _ in range(2):
            equal(tuner.torch.linear(A, weight, BIAS), A @ weight.t() + BIAS)
        first = dict(operations.PACKED[weight].functions)
        weight.mul_(3)
        equal(tuner.torch.linear(A, weight, BIAS), A @ weight.t() + BIAS)
        again = operations.PACKED[weight].functions
    assert list(first) == list(again)
    assert list(first.values()) != list(again.values())
    ((product, is_transposed),) = first
    assert product.is_weight
    assert is_transposed


def _allocate_again(weight: Any) -> None:
    weight.data = torch.zeros(0)  # frees the memory, which the next tensor of its size may get
    weight.data = torch.randn(16, 16)


def _set_one_element(weight: Any) -> None:
    weight.detach().numpy()[15, 3] = 9


@pytest.mark.parametrize(
    "change",
    [
        lambda weight: weight.data.copy_(torch.randn(16, 16)),
        lambda weight: weight.data.neg_(),
        lambda weight: weight.data.copy_(weight.data.flip(0)),
        _set_one_element,
        lambda weight: setattr(weight, "data", weight.data.t()),
        _allocate_again,
    ],
    ids=["data", "negated", "rows swapped", "numpy", "strides", "address"],
)
def test_every_change_of_a_weight_is_seen(change: Any) -> None:
    weight = torch.nn.Parameter(torch.randn(16, 16))
    with torch.no_grad():
        tuner.torch.linear(A, weight)
        change(weight)
        equal(tuner.torch.linear(A, weight), A @ weight.t())


def test_changes_of_a_weight_without_versions_are_seen() -> None:
    with torch.inference_mode():
        weight = torch.nn.Parameter(torch.randn(16, 16), requires_grad=False)
        tuner.torch.linear(A, weight)
        weight.mul_(2)
        equal(tuner.torch.linear(A, weight), A @ weight.t())


def test_torch_finds_nothing_wrong_with_them_shapes_are_known_and_gradients_refused() -> None:
    torch.library.opcheck(torch.ops.tuner.linear.default, (A, B.t().contiguous(), BIAS))
    torch.library.opcheck(torch.ops.tuner.bmm.default, (BATCH, BATCH.transpose(1, 2)))
    torch.library.opcheck(torch.ops.tuner.addmm.default, (BIAS, A, B))
    with FakeTensorMode():
        x, w = torch.empty(2, 3, 16), torch.empty(24, 16)
        assert tuner.torch.linear(x, w).shape == (2, 3, 24)
        assert tuner.torch.mm(w, torch.empty(16, 5)).shape == (24, 5)
    with pytest.raises(UsageError, match="autograd is not supported"):
        tuner.torch.linear(A, torch.nn.Parameter(B.t().clone()))
    equal(torch.vmap(CALLS["mm"])(BATCH), BATCH @ B)


FOUND = "^tuner::mm: a: found"
NUMBER, B_T, META = torch.tensor(1.0), B.t(), (A.to("meta"), B.to("meta"))
NESTED = partial(torch.nested.nested_tensor, [A, A])  # which warns


@pytest.mark.drawn(ALL)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage:UserWarning")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tuner.torch.mm(A, A), "tuner::mm: shapes 6x16 and 6x16 do not fit together"),
        (lambda: tuner.torch.bmm(BATCH, BATCH), "tuner::bmm: shapes 3x6x16 and 3x6x16 do not fit"),
        (lambda: tuner.torch.linear(A, B), "tuner::linear: shapes 6x16 and 16x24 do not fit"),
        (lambda: tuner.torch.addmm(A, A, B), "tuner::addmm: shapes 6x16 and 6x16 and 16x24 do not fit"),
        (lambda: tuner.torch.mm(A.int(), B.int()), "tuner::mm: found int32, allowed float32, float64, bfl"),
        (lambda: tuner.torch.mm([[1.0]], B), r"^tuner::mm: a: found \[\[1.0\]\], allowed a torch.Tensor$"),
        (lambda: tuner.torch.mm(A, B.numpy()), "^tuner::mm: b: found numpy.ndarray, allowed a torch.Tensor$"),
        (lambda: tuner.torch.mm(None, B), "^tuner::mm: a: found None, allowed a torch.Tensor$"),
        (lambda: tuner.torch.addmm(1.0, A, B), "^tuner::addmm: bias: found 1.0, allowed a torch.Tensor$"),
        (lambda: tuner.torch.linear(A, B_T, "x"), "^tuner::linear: bias: found 'x', allowed a torch.Tensor$"),
        (lambda: tuner.torch.mm(A, NUMBER), r"^tuner::mm: shapes 6x16 and \(\) do not fit together$"),
        (lambda: tuner.torch.bmm(*META), "^tuner::bmm: shapes 6x16 and 16x24 do not fit together$"),
        (lambda: tuner.torch.mm(META[0], META[0]), "^tuner::mm: shapes 6x16 and 6x16 do not fit"),
        (lambda: tuner.torch.mm(A.to_sparse(), B), f"{FOUND} layout torch.sparse_coo, allowed a dense"),
        (lambda: tuner.torch.mm(NESTED(), B), f"{FOUND} a nested tensor, allowed a dense tensor$"),
        (lambda: tuner.torch.mm(A, B.double()), "tuner::mm: found float32 and float64, allowed"),
        (lambda: tuner.torch.mm(A[:0], B), "a matrix has no elements"),
        (lambda: tuner.torch.bmm(A[None][:0], B[None][:0]), "a matrix has no elements"),
    ],
)
def test_what_does_not_fit_is_named(call: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # of torch itself
def test_what_would_be_lost_or_has_no_memory_is_refused() -> None:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(A, torch.ones_like(A))
        with pytest.raises(UsageError, match="tuner::mm: forward-mode autograd is not supported"):
            tuner.torch.mm(dual, B)
    freed = A.clone()
    freed.untyped_storage().resize_(0)
    with pytest.raises(UsageError, match="tuner::mm: found a tensor without memory"):
        tuner.torch.mm(freed, B)
    weight = torch.nn.Parameter(B.t().clone(), requires_grad=False)
    weight.untyped_storage().resize_(0)
    with pytest.raises(UsageError, match="tuner::linear: found a tensor without memory"):
        tuner.torch.linear(A, weight)


TRANSFORMS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda product, x: torch.func.grad(lambda x: product(x).sum())(x),
    "vjp": lambda product, x: torch.func.vjp(product, x),
    "jvp": lambda product, x: torch.func.jvp(product, (x,), (x,)),
    "jacfwd": lambda product, x: torch.func.jacfwd(product)(x),
    "jvp of vmap": lambda product, x: torch.func.jvp(torch.vmap(product), (x[None],), (x[None],)),
}
CALLS: dict[str, Callable[[Any], Any]] = {
    "mm": lambda x: torch.ops.tuner.mm(x, B),
    "addmm": lambda x: torch.ops.tuner.addmm(BIAS, x, B),
    "bmm": lambda x: torch.ops.tuner.bmm(x[None], B[None]),
    "linear": lambda x: torch.ops.tuner.linear(x, B.t()),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.filterwarnings("ignore:.*jit.*deprecated:DeprecationWarning")  # of torch itself
def test_derivatives_by_transforms_are_refused(name: str, transform: str) -> None:
    with pytest.raises(UsageError, match=f"tuner::{name}: .*autograd is not supported"):
        TRANSFORMS[transform](CALLS[name], A)


@pytest.mark.parametrize("name", CALLS)
def test_autocast_and_operands_of_two_devices_are_refused(name: str) -> None:
    with torch.autocast("cpu"):
        with pytest.raises(UsageError, match=rf"tuner::{name}: torch\.autocast is not supported"):
            CALLS[name](A)
        with torch.autocast("cpu", enabled=False):
            assert CALLS[name](A).dtype is torch.float32
        with FakeTensorMode() as mode, pytest.raises(UsageError, match=r"torch\.autocast is not supported"):
            torch.ops.tuner.mm(mode.from_tensor(A), mode.from_tensor(B))
    operands = {"mm": (A, B), "addmm": (BIAS, A, B), "bmm": (BATCH, BATCH), "linear": (A, B.t())}[name]
    with pytest.raises(UsageError, match=f"tuner::{name}: found devices cpu and meta, allowed one"):
        getattr(torch.ops.tuner, name)(*operands[:-1], operands[-1].to("meta"))
