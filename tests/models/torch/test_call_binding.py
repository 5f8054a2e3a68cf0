"""Calls of a program bind arguments as Python binds those of the module; what does not bind is one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]  # of torch, about its own code

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip

import tuner.torch  # noqa: E402
from tuner.core.errors import UsageError  # noqa: E402

X, MASK = torch.randn(2, 3), torch.randn(2, 3)
Call = Callable[[Any], Any]


class Masked(nn.Module):
    def forward(
        self, x: Any, mask: Any = None, scale: float = 1.0, *rest: Any, pair: Any = None, **more: Any
    ) -> Any:
        del rest, pair, more
        return x * scale if mask is None else x * mask * scale


EXAMPLES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "keywords": ((), {"x": X, "mask": MASK}),
    "positions": ((X, MASK), {}),
    "a default spelled out": ((X,), {"scale": 1.0, "mask": MASK}),
}
CALLS: dict[str, Call] = {
    "as keywords": lambda call: call(x=X, mask=MASK),
    "in another order": lambda call: call(mask=MASK, x=X),
    "by position": lambda call: call(X, MASK),
    "mixed": lambda call: call(X, mask=MASK),
    "a default by position": lambda call: call(X, MASK, 1.0),
    "a default by keyword": lambda call: call(scale=1.0, mask=MASK, x=X, pair=None),
}
WRONG: dict[str, tuple[Call, str]] = {
    "missing": (
        lambda call: call(mask=MASK),
        r"^arguments: missing a required argument: 'x'; the module takes",
    ),
    "twice": (lambda call: call(X, MASK, mask=MASK), "^arguments: multiple values for argument 'mask'"),
    "left out": (lambda call: call(X), "^argument 1: found NoneType, allowed a tensor$"),
    "another constant": (lambda call: call(X, MASK, 2.0), "^argument scale: found 2.0, allowed 1.0, which"),
    "a tensor": (lambda call: call(X, MASK, X), "^argument scale: found a tensor, allowed 1.0, which"),
    "unknown": (
        lambda call: call(X, MASK, what=3),
        "^arguments: what is not among the example inputs; compile",
    ),
    "the rest": (
        lambda call: call(X, MASK, 1.0, 5),
        r"^arguments: \*rest\[0\] is not among the example inputs",
    ),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("example", EXAMPLES)
def test_a_call_binds_as_that_of_the_module(example: str) -> None:
    arguments, keywords = EXAMPLES[example]
    program = tuner.torch.compile(Masked(), arguments, keywords)
    for name, call in CALLS.items():
        assert torch.equal(call(program), X * MASK), name


@pytest.fixture(scope="module")
def by_position() -> Any:
    return tuner.torch.compile(Masked(), (X, MASK))


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.drawn(10)
def test_a_call_that_does_not_bind_is_one_line(by_position: Any, name: str) -> None:
    call, message = WRONG[name]
    with pytest.raises(UsageError, match=message):
        call(by_position)


def test_trees_of_arguments_bind_in_any_order_of_their_keys() -> None:
    class Trees(nn.Module):
        def forward(self, given: Any, *rest: Any, **more: Any) -> Any:
            return given["a"] - given["b"][0] + rest[0] * more["last"]

    module = Trees()
    program = tuner.torch.compile(module, ({"a": X, "b": [MASK]}, X), {"last": MASK})
    assert torch.equal(program({"b": [MASK], "a": X}, X, last=MASK), X - MASK + X * MASK)
    with pytest.raises(
        UsageError, match=r"^arguments: found another structure than that of the example inputs$"
    ):
        program({"b": MASK, "a": X}, X, last=MASK)
    with pytest.raises(
        UsageError, match=r"^arguments: \*rest\[0\] is missing, which the example inputs have$"
    ):
        program({"a": X, "b": [MASK]}, last=MASK)


def test_an_exported_program_and_a_loaded_one_say_what_they_take(by_position: Any, tmp_path: Path) -> None:
    exported = tuner.torch.compile(torch.export.export(Masked(), (X,), {"mask": MASK}))
    assert torch.equal(exported(mask=MASK, x=X), X * MASK)
    with pytest.raises(UsageError, match=r"too many positional arguments; the module takes \(x, \*, mask\)$"):
        exported(X, MASK)
    by_position.export(tmp_path / "masked")
    loaded = tuner.torch.load(tmp_path / "masked")
    assert torch.equal(loaded(X, MASK), X * MASK)
    with pytest.raises(UsageError, match=r"'mask'; the module takes \(tensor_0, tensor_1, /\)$"):
        loaded(X, MASK, mask=MASK)
    with pytest.raises(UsageError, match="missing a required argument: 'tensor_1'"):
        loaded(X)


def test_torch_compile_binds_calls_itself() -> None:
    tuner.torch.graph_counts(reset=True)
    compiled: Any = torch.compile(Masked(), backend="tuner")
    with torch.no_grad():
        for name, call in CALLS.items():
            assert torch.equal(call(compiled), X * MASK), name
    assert tuner.torch.graph_counts().left == 0
