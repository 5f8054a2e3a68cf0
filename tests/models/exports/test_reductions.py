"""Drawn expressions of two reductions, and losses and metrics, are eager mode's, of rows of any length.

Rows that no vector divides have lanes that hold no element: these must add nothing, in either reduction.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.program_compiler import compiler_of
from tuner.core.candidate import TargetName
from tuner.core.instruction_sets import AVX2, AVX512, SETS
from tuner.models.execution import host_function
from tuner.runtime.cpu.host import describe_machine, own_flags
from tuner.targets.cpu import target

pytestmark = pytest.mark.mlir
torch: Any = pytest.importorskip("torch", reason="torch is not installed")
export = pytest.importorskip("tests.models.exports.export")

F = torch.nn.functional
Function = Callable[..., Any]
LONGEST = 70
CPU = TargetName("cpu")
NUMBERS = ("float32", "float64", "bfloat16", "float16", "int8", "int16", "int32", "int64")
REDUCTIONS: dict[str, Function] = {
    "sum": lambda x: x.sum(-1),
    "greatest": lambda x: x.amax(-1),
    "least": lambda x: x.amin(-1),
    "any": lambda x: (x > 1).any(-1),
    "all": lambda x: (x > -2).all(-1),
    "none": lambda x: (~(x > 1)).all(-1),
    "argmax": lambda x: x.argmax(-1),
    "argmin": lambda x: x.argmin(-1),
    "nonzero": lambda x: torch.count_nonzero(x, -1),
    "positive": lambda x: (x > 0).sum(-1),
    "not positive": lambda x: (~(x > 0)).sum(-1),
    "between": lambda x: ((x > -1) & ~(x > 1)).sum(-1),
    "product": lambda x: (1 + (x > 1).to(x.dtype)).clamp(max=1).prod(-1),
    "mean of some": lambda x: torch.where(x > 0, x, torch.zeros_like(x)).sum(-1) / (x > 0).sum(-1).clamp(1),
}
OF_FLOATS: dict[str, Function] = {
    "mean": lambda x: x.mean(-1),
    "variance": lambda x: x.float().var(-1, correction=0),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=-1),
    "logsumexp": lambda x: torch.logsumexp(x, -1),
}
OF_TRUTHS: dict[str, Function] = {
    "set": lambda x: x.sum(-1),
    "clear": lambda x: (~x).sum(-1),
    "any": lambda x: x.any(-1),
    "all": lambda x: x.all(-1),
    "any clear": lambda x: (~x).any(-1),
    "unequal": lambda x: (x ^ x.flip(-1)).sum(-1),
}
JOINS: tuple[Function, ...] = (
    lambda left, right: left + 10 * right,
    lambda left, right: left / (1 + right.abs()),
    lambda left, right: torch.where(left > right, left, -right),
)


def functions_of(dtype: str) -> dict[str, Function]:
    if dtype == "bool":
        return OF_TRUTHS
    return REDUCTIONS | (OF_FLOATS if getattr(torch, dtype).is_floating_point else {})


def numbers_of(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Returns numbers whose sums are exact in any order; some rows are negative."""
    if dtype == "bool":
        return torch.from_numpy(rng.random(shape) > 0.4)
    signs = rng.choice([1, -1, -1], (*shape[:-1], 1))
    halves = torch.from_numpy(signs * rng.integers(-2, 6, shape) / 2)
    return (halves if getattr(torch, dtype).is_floating_point else 2 * halves).to(getattr(torch, dtype))


def drawn(dtype: str, rng: np.random.Generator) -> Function:
    """Returns one reduction, or an expression of two; the result is of f32."""
    named = functions_of(dtype)
    left, right = (named[name] for name in rng.choice(list(named), 2))
    join = JOINS[rng.integers(len(JOINS))]
    if rng.random() < 0.2:
        return lambda x: left(x).float()
    return lambda x: join(left(x).float(), right(x).float())


def require_eager(function: Function, *inputs: Any) -> None:
    """Compiles a function, which returns a tuple, as fusions, and compares with eager mode."""
    text = export.exported_text(export.Function(function), inputs)
    program = host_function(compiler_of(CPU).compile(text, as_fusions=True))
    results = program(*map(export.array_of, inputs))
    narrow = any(x.dtype in (torch.bfloat16, torch.float16) for x in inputs)
    limit = 0.02 if narrow else 1e-5
    for number, (found, wanted) in enumerate(zip(results, function(*inputs), strict=True)):
        expected = export.array_of(wanted)
        np.testing.assert_allclose(found, expected, limit, limit, err_msg=f"result {number}")


def use_isa(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiles for ``isa``, which this processor has, or skips the test."""
    if not own_flags() >= SETS[isa].flags:
        pytest.skip(f"needs {isa}")
    machine = replace(describe_machine(), isa=isa)
    if isa == AVX2:
        machine = replace(machine, has_bf16=False, has_vnni=False)
    monkeypatch.setattr(target, "describe_machine", lambda _limit: machine)


def require_drawn(dtype: str, lengths: tuple[int, ...], count: int, rng: np.random.Generator) -> None:
    """Compares ``count`` drawn functions of a row, and of three rows, of each length, in one program."""
    shapes = [shape for length in lengths for shape in ((length,), (3, length))]
    inputs = tuple(numbers_of(dtype, shape, rng) for shape in shapes)
    functions = [[drawn(dtype, rng) for _ in range(count)] for _ in shapes]

    def everything(*tensors: Any) -> tuple[Any, ...]:
        pairs = zip(tensors, functions, strict=True)
        return tuple(function(x) for x, of_x in pairs for function in of_x)

    require_eager(everything, *inputs)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("isa", [AVX2, AVX512])
@pytest.mark.parametrize("dtype", [*NUMBERS, "bool"])
def test_drawn_reductions_are_those_of_eager_mode(
    dtype: str, isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_isa(isa, monkeypatch)
    rng = np.random.default_rng([NUMBERS.index(dtype) if dtype in NUMBERS else 8, len(isa)])
    lengths = tuple(int(length) for length in rng.integers(1, LONGEST + 1, 2))
    require_drawn(dtype, (*lengths, 7), 2, rng)


@pytest.mark.slow
@pytest.mark.parametrize("length", range(1, LONGEST + 1))
def test_every_length_is_reduced(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each type with both instruction sets, every third length with each."""
    rng = np.random.default_rng(length)
    use_isa((AVX2, AVX512)[length % 2], monkeypatch)
    for dtype in [*NUMBERS, "bool"][length % 3 :: 3]:
        require_drawn(dtype, (length,), 6, rng)


# What two counts in one expression are for

CLASSES = 5


def losses(x: Any, target_: Any, truths: Any) -> tuple[Any, ...]:
    """Losses of rows of scores, one of whose targets is ignored, and metrics of truths."""
    weights = torch.linspace(0.5, 2, CLASSES)
    seen = target_.clone()
    ignored = torch.where(torch.arange(len(target_)) == 1, -100, target_)
    logarithms = torch.log_softmax(x, -1)
    predicted = x.argmax(-1)
    is_right = predicted == seen
    kept = ignored >= 0
    score = x[:, 0]
    said = score > 0
    hits = (said & truths).sum()
    precision = hits / said.sum().clamp(1)
    recall = hits / truths.sum().clamp(1)
    return (
        F.cross_entropy(x, seen),
        F.cross_entropy(x, seen, label_smoothing=0.1),
        F.cross_entropy(x, ignored),
        F.cross_entropy(x, ignored, label_smoothing=0.1),
        F.cross_entropy(x, ignored, weight=weights),
        F.cross_entropy(x, ignored, weight=weights, label_smoothing=0.2),
        F.cross_entropy(x, seen, reduction="sum", label_smoothing=0.1),
        F.nll_loss(logarithms, ignored),
        F.binary_cross_entropy(torch.sigmoid(score), truths.to(x.dtype)),
        F.binary_cross_entropy_with_logits(score, truths.to(x.dtype)),
        torch.exp(F.cross_entropy(x, ignored)),
        is_right.float().mean(),
        (is_right & kept).sum() / kept.sum().clamp(1),
        (~is_right & kept).sum() / (~kept).sum().clamp(1),
        2 * precision * recall / (precision + recall).clamp(1e-6),
        (said ^ truths).sum() / (said | ~truths).sum().clamp(1),
    )


@pytest.mark.drawn(1)
@pytest.mark.parametrize("isa", [AVX2, AVX512])
@pytest.mark.parametrize("rows", [6, 7, 13, 20, 33])
def test_losses_and_metrics_are_those_of_eager_mode(
    rows: int, isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_isa(isa, monkeypatch)
    rng = torch.Generator().manual_seed(rows)
    x = torch.randn(rows, CLASSES, generator=rng)
    classes = torch.randint(0, CLASSES, (rows,), generator=rng)
    truths = torch.rand(rows, generator=rng) > 0.5
    require_eager(losses, x, classes, truths)
