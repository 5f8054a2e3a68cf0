"""Programs drawn at random: the fusions, one after the other, compute what the whole program computes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.programs.fusions.grouped_execution import FusedFunction, formed, host_function
from tests.programs.fusions.payload_text import PayloadText, Tensor

pytestmark = pytest.mark.mlir

SIZES = st.sampled_from([1, 2, 3, 4, 6])
STEPS = (
    *("matmul", "bias", "relu", "tanh", "softmax", "transpose", "rows", "flat", "expand"),
    *("slice", "pad", "residual", "concat", "insert", "overwrite", "batch"),
)


@st.composite
def programs(draw: Any) -> tuple[PayloadText, str]:
    """A program of up to eight steps, each on one of the last values, with up to three results."""
    payload = PayloadText()
    values = [payload.argument(draw(SIZES), draw(SIZES))]
    for _ in range(draw(st.integers(1, 8))):
        step, value = draw(st.sampled_from(STEPS)), draw(st.sampled_from(values[-3:]))
        values.append(_applied(draw, payload, step, value, values))
    results = draw(st.lists(st.sampled_from(values), min_size=0, max_size=2))
    return payload, payload.text(values[-1], *results)


def _applied(draw: Any, payload: PayloadText, step: str, value: Tensor, values: list[Tensor]) -> Tensor:
    """The value of a step; tanh where the step cannot be applied."""
    rank = len(value.shape)
    if step in ANY_RANK or (step in OF_ROWS and rank) or (step in RANKS and RANKS[step](value)):
        apply = {**ANY_RANK, **OF_ROWS, **APPLIED}[step]
        return apply(draw, payload, value, values)
    return payload.unary("tanh", value)


def _weight(draw: Any, payload: PayloadText, *shape: int) -> Tensor:
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    return payload.weight(rng.standard_normal(shape) / shape[-1])


def _padded(draw: Any, payload: PayloadText, value: Tensor, _: list[Tensor]) -> Tensor:
    paddings = st.lists(st.integers(0, 2), min_size=len(value.shape), max_size=len(value.shape))
    return payload.padded(value, draw(paddings), draw(paddings))


def _concatenated(draw: Any, payload: PayloadText, value: Tensor, values: list[Tensor]) -> Tensor:
    others = [each for each in values if each.shape == value.shape]
    dimension = draw(st.integers(0, len(value.shape) - 1))
    return payload.concatenated([value, draw(st.sampled_from(others))], dimension)


def _inserted(draw: Any, payload: PayloadText, value: Tensor, _: list[Tensor]) -> Tensor:
    """Into zeros, or into a larger copy of itself."""
    if draw(st.booleans()):
        into = payload.filled([size + 1 for size in value.shape], "%zero")
    else:
        into = payload.padded(value, [0] * len(value.shape), [1] * len(value.shape))
    return payload.inserted(value, into, [draw(st.integers(0, 1)) for _ in value.shape])


def _overwritten(draw: Any, payload: PayloadText, value: Tensor, values: list[Tensor]) -> Tensor:
    """Another value with a part of this one in it; later steps may read the other value as it was."""
    rank = len(value.shape)
    larger = [each for each in values if len(each.shape) == rank]
    larger = [each for each in larger if all(a >= b for a, b in zip(each.shape, value.shape, strict=True))]
    into = draw(st.sampled_from(larger))
    room = zip(into.shape, value.shape, strict=True)
    return payload.inserted(value, into, [draw(st.integers(0, size - part)) for size, part in room])


def _linear(draw: Any, payload: PayloadText, value: Tensor, _: list[Tensor]) -> Tensor:
    return payload.matmul(
        value, payload.transpose(_weight(draw, payload, draw(SIZES), value.shape[1]), (1, 0))
    )


Apply = Callable[[Any, PayloadText, Tensor, list[Tensor]], Tensor]
ANY_RANK: dict[str, Apply] = {
    "relu": lambda _, payload, value, __: payload.unary("relu", value),
    "residual": lambda _, payload, value, __: payload.binary("add", value, payload.unary("square", value)),
}
OF_ROWS: dict[str, Apply] = {
    "bias": lambda draw, payload, value, _: payload.binary(
        "add", value, _weight(draw, payload, value.shape[-1])
    ),
    "softmax": lambda _, payload, value, __: payload.softmax(value),
    "rows": lambda _, payload, value, __: payload.by_row(
        "sub", value, payload.unary("tanh", payload.reduced("sum", value))
    ),
    "pad": _padded,
    "concat": _concatenated,
    "insert": _inserted,
    "overwrite": _overwritten,
}
RANKS: dict[str, Callable[[Tensor], bool]] = {
    "matmul": lambda value: len(value.shape) == 2,
    "batch": lambda value: len(value.shape) == 3,
    "transpose": lambda value: len(value.shape) > 1,
    "flat": lambda value: len(value.shape) > 1,
    "expand": lambda value: 0 < len(value.shape) < 4 and value.shape[0] % 2 == 0,
    "slice": lambda value: bool(value.shape) and value.shape[-1] > 1,
}
APPLIED: dict[str, Apply] = {
    "matmul": _linear,
    "batch": lambda _, payload, value, __: payload.matmul(value, payload.transpose(value, (0, 2, 1))),
    "transpose": lambda draw, payload, value, _: payload.transpose(
        value, draw(st.permutations(range(len(value.shape))))
    ),
    "flat": lambda _, payload, value, __: payload.reshape(value, (int(np.prod(value.shape)),)),
    "expand": lambda _, payload, value, __: payload.reshape(
        value, (2, value.shape[0] // 2, *value.shape[1:])
    ),
    "slice": lambda _, payload, value, __: payload.sliced(
        value, [0] * (len(value.shape) - 1) + [1], [*value.shape[:-1], value.shape[-1] - 1]
    ),
}


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.integers(0, 9))
@pytest.mark.slow
def test_fusions_compute_what_the_whole_program_computes(program: tuple[PayloadText, str], seed: int) -> None:
    payload, text = program
    whole, fusions = host_function(text), FusedFunction(formed(text))
    rng = np.random.default_rng(seed)
    for _ in range(2):  # paddings must be there at the second call, too
        arguments = [rng.standard_normal(each.shape).astype(np.float32) for each in payload.arguments]
        expected = whole(*arguments)
        found = fusions(*arguments)
        for one, other in zip(found, expected if isinstance(expected, tuple) else [expected], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
