"""``tuner.matmul`` after a call, with arrays of which one component differs: always right."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.forked import in_child
from tests.library.dispatch.rules import rule_of
from tuner.core.problem import Matmul
from tuner.library.dispatch.matmul import DispatchedMatmul
from tuner.library.dispatch.resolver import BASELINE
from tuner.library.dispatch.rule import rule_text
from tuner.payload.reference import Array
from tuner.runtime.cpu.memory import placed_copy
from tuner.targets.registry import real_backends

pytestmark = [
    pytest.mark.mlir,
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
]

SIZE = 16  # of both matrices: one that takes another for it is wrong, and does not fail
SLOW_S, FAST_S = 2e-3, 1e-9
RNG = np.random.default_rng(3)
A, B = (RNG.standard_normal((SIZE, SIZE)).astype(np.float32) for _ in range(2))


class Subclass(np.ndarray[Any, Any]):
    """An array of a user's class."""


def steps(a: Array) -> Array:
    """Returns the same numbers with another row between two rows."""
    wide = np.zeros((2 * SIZE, SIZE), a.dtype)
    wide[::2] = a
    return wide[::2]


def read_only(a: Array) -> Array:
    found = a.copy()
    found.flags.writeable = False
    return found


Pair = tuple[Array, Array]
VARIANTS: dict[str, Callable[[], Pair]] = {
    "contents": lambda: (B, A),
    "rows": lambda: (A[:5], B),
    "columns": lambda: (A, np.ascontiguousarray(B[:, :5])),
    "depth": lambda: (np.ascontiguousarray(A[:, :5]), B[:5]),
    "type": lambda: (A.astype(np.float64), B.astype(np.float64)),
    "type of one": lambda: (A, B.astype(np.float64)),
    "integers": lambda: ((A * 9).astype(np.int64), (B * 9).astype(np.int64)),
    "sign": lambda: ((A * 9).astype(np.int8).view(np.uint8), (B * 9).astype(np.int8).view(np.uint8)),
    "order of bytes": lambda: (A.astype(">f4"), B.astype(">f4")),
    "transposed A": lambda: (A.T, B),
    "transposed B": lambda: (A, B.T),
    "both transposed": lambda: (A.T, B.T),
    "steps": lambda: (steps(A), B),
    "steps of B": lambda: (A, steps(B)),
    "reversed": lambda: (A[::-1], B[:, ::-1]),
    "repeated": lambda: (np.broadcast_to(A[0], A.shape), B),
    "address": lambda: (placed_copy(A, 4), B),
    "address of B": lambda: (A, placed_copy(B, 8)),
    "sharing": lambda: (A, A),
    "sharing, transposed": lambda: (A, A.T),
    "read-only": lambda: (read_only(A), read_only(B)),
    "class": lambda: (A.view(Subclass), B),
    "negated": lambda: (-A, B),
}


@pytest.fixture(scope="module")
def multiply(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Array]:
    """Gives products by a kernel, from a rule that has one for the base shape; the base was called."""
    folder: Path = tmp_path_factory.mktemp("rule")
    rule = folder / "mm.rule.yaml"
    rule.write_text(rule_text(rule_of({Matmul(SIZE, SIZE, SIZE): (SLOW_S, FAST_S)})))
    multiply = DispatchedMatmul(real_backends, lambda: folder / "first-use")

    def call(a: Array, b: Array, **options: Any) -> Array:
        return multiply(a, b, rule=rule, measure="never", **options)

    assert multiply.chosen(A, B, rule=rule, measure="never").source != BASELINE
    assert right(call(A, B), A, B)
    return call


def right(found: Array, a: Array, b: Array) -> bool:
    expected = np.matmul(a, b)
    return found.dtype == expected.dtype and np.allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("name", VARIANTS)
def test_arrays_that_differ_in_one_component_are_multiplied_right(
    multiply: Callable[..., Array], name: str
) -> None:
    a, b = VARIANTS[name]()
    assert right(multiply(a, b), a, b)
    assert right(multiply(A, B), A, B)


def test_outputs_of_other_kinds_are_filled_right(multiply: Callable[..., Array]) -> None:
    memory = np.zeros((SIZE, 2 * SIZE), np.float32)
    shared = A.copy()
    outputs = (np.zeros_like(A), np.asfortranarray(A), memory[:, ::2], np.zeros(A.shape), placed_copy(A, 4))
    for out in outputs:
        assert multiply(A, B, out=out) is out
        assert np.allclose(out, A @ B, atol=1e-4)
    assert np.allclose(multiply(shared, B, out=shared), A @ B, atol=1e-4)


@pytest.mark.slow
def test_other_threads_and_a_forked_process_multiply_right(multiply: Callable[..., Array]) -> None:
    found: list[Array] = []
    thread = threading.Thread(target=lambda: found.append(multiply(A.T, B)))
    thread.start()
    thread.join()
    assert right(found[0], A.T, B)
    assert in_child(lambda: right(multiply(A, B), A, B) and right(multiply(A[:7], B), A[:7], B))
