"""Programs of a dynamic size n, with numpy's results: what tests of rules, functions and commands share."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.texts import text_beside
from tuner.mlir.bindings import ir
from tuner.models.dynamic.size_analysis import KnownSizes
from tuner.models.run.sized_types import PaddedArray

Array = np.ndarray[Any, np.dtype[Any]]


@contextlib.contextmanager
def poisoned() -> Iterator[None]:
    """Context manager: padding of arguments of floats is NaN, and programs rely on nothing else.

    Indices keep 0: another number would be out of the tensors that they read.
    """
    known = KnownSizes.note_argument
    filled = PaddedArray.filled

    def note_poisoned(self: Any, argument: Any, *sizes: Any) -> None:
        known(self, argument, *sizes)
        if isinstance(argument.type.element_type, ir.FloatType):
            self.zero_padded.discard(argument)

    def filled_with_nan(self: Any, argument: Any, size: int) -> Any:
        array = filled(self, argument, size).copy()
        if np.issubdtype(array.dtype, np.floating):
            array[...] = np.nan
            array[tuple(map(slice, argument.shape))] = argument
        return array

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KnownSizes, "note_argument", note_poisoned)
        patch.setattr(PaddedArray, "filled", filled_with_nan)
        yield


SHIPPED = Path(__file__).parents[3] / "examples" / "softmax_n.mlir"


@dataclass(frozen=True)
class Example:
    """A program by the name of its text, with the draws of its arguments and numpy's results."""

    name: str
    draw: Callable[[np.random.Generator, Any], tuple[Array, ...]]
    results: Callable[..., tuple[Array, ...]]

    @property
    def text(self) -> str:
        if self.name == "SOFTMAX":
            return SHIPPED.read_text()
        return text_beside(__file__.replace("programs.py", "test_specialization.py"), self.name)


def normal(*shape: int) -> Callable[[np.random.Generator, int], Array]:
    """Returns a draw of f32 numbers of a shape, in which 0 stands for n."""

    def draw(rng: np.random.Generator, size: int) -> Array:
        return rng.standard_normal([length or size for length in shape]).astype(np.float32)

    return draw


def drawn(*draws: Callable[[np.random.Generator, int], Array]) -> Callable[..., tuple[Array, ...]]:
    return lambda rng, size: tuple(draw(rng, size) for draw in draws)


def positive(*shape: int) -> Callable[[np.random.Generator, int], Array]:
    return lambda rng, size: np.abs(normal(*shape)(rng, size)) + np.float32(0.1)


def softmax(x: Array) -> Array:
    exponentials = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(-1, keepdims=True))


def attention(q: Array, k: Array, v: Array) -> tuple[Array]:
    return (softmax(q @ k.transpose(0, 2, 1)) @ v,)


def windows(x: Array, w: Array) -> tuple[Array]:
    padded = np.pad(x, ((0, 0), (1, 2), (0, 0)), constant_values=0.5)
    places = range(padded.shape[1] - 2)
    return (np.stack([np.einsum("bkc,kcf->bf", padded[:, at : at + 3], w) for at in places], axis=1),)


def views(x: Array) -> tuple[Array, Array, Array]:
    return (x.ravel(), x[:, 1:4:2], np.concatenate([np.full((1, 4), 2, np.float32), x]))


def padded_to(x: Array) -> tuple[Array, Array]:
    rows = np.exp(x)
    after = np.pad(rows, ((0, 80 - len(x)), (0, 0)), constant_values=0.5)
    around = np.pad(rows, ((1, len(x)), (0, 0)), constant_values=0.5)
    return after, around


def encoder(x: Array, weight: Array) -> tuple[Array, Array, Array]:
    mixed = softmax(x @ weight @ x.transpose(0, 2, 1)) @ x
    return mixed, mixed.mean(1), mixed.mean(1).sum(0)


def rows_of(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


# of two sizes: their draws take the pair (n, m)
OF_TWO_SIZES = (
    Example("ENCODER", lambda rng, at: (rows_of(rng, at[1], at[0], 4), rows_of(rng, 4, 4)), encoder),
    Example(
        "BOTH",
        lambda rng, at: (rows_of(rng, at[0], 3), rows_of(rng, at[1], 3), rows_of(rng, sum(at) + 1, 3)),
        lambda _x, _y, z: (np.exp(z),),
    ),
)
EXAMPLES = (
    Example(
        "LINEAR",
        drawn(normal(0, 8), normal(8, 12), normal(12)),
        lambda x, w, b: (np.maximum(x @ w + b, 0),),
    ),
    Example(
        "MLP",
        drawn(normal(0, 8), normal(8, 16), normal(16, 4)),
        lambda x, up, down: (np.tanh(x @ up) @ down,),
    ),
    Example("SOFTMAX", drawn(normal(3, 0)), lambda x: (softmax(x),)),
    Example("ATTENTION", drawn(normal(2, 0, 4), normal(2, 0, 4), normal(2, 0, 4)), attention),
    Example("MEAN", drawn(normal(0, 5)), lambda x: (np.exp(x).mean(0),)),
    Example("PRODUCT_OVER_N", drawn(positive(0, 3)), lambda x: (np.log(x.T) @ x,)),
    Example("WINDOWS", drawn(normal(1, 0, 2), normal(3, 2, 4)), windows),
    Example(
        "TOKENS",
        drawn(lambda rng, size: rng.integers(0, 9, size), normal(9, 6), normal(1, 6)),
        lambda ids, table, first: (np.concatenate([first, table[ids]]).reshape(-1, 2, 3),),
    ),
    Example("GREATEST", drawn(normal(3, 0)), lambda x: (x.max(1), x.argmax(1))),
    Example(
        "NARROW",
        drawn(lambda rng, size: rng.integers(-128, 128, size, np.int8)),
        lambda x: (x + np.int64(5 * len(x)).astype(np.int8),),
    ),
    Example("VIEWS", drawn(normal(0, 4)), views),
    Example(
        "RESHAPES",
        drawn(normal(0, 4)),
        lambda x: (x.reshape(-1, 2), x.reshape(1, -1, 2, 2), np.exp(x).ravel()),
    ),
    Example("LAST_ROWS", drawn(normal(0, 4)), lambda x: (np.exp(x[-1]), np.exp(x[-1:, 1::2]))),
    Example(
        "CHECKED_INDEX",
        drawn(lambda rng, size: rng.integers(0, 9, size), normal(9, 4)),
        lambda ids, table: (table[ids - 1],),
    ),
    Example(
        "CHOSEN",
        drawn(normal(0, 4)),
        lambda x: (
            x if len(x) > 2 else np.exp(x),
            np.ones(len(x) + 1, np.float32),
            np.asarray(len(x)),
        ),
    ),
    Example(
        "PADDED_VIEW",
        drawn(normal(0, 3)),
        lambda x: (np.pad(np.exp(x[None]), ((0, 0), (1, 2), (0, 0)), constant_values=0.5),),
    ),
    Example("PADDED_TO", drawn(normal(0, 3)), padded_to),
    Example(
        "TWICE_AND_ONE",
        lambda rng, n: (normal(0, 3)(rng, n), normal(0, 3)(rng, 2 * n + 1)),
        lambda _, y: (np.exp(y), np.exp(y).sum(0)),
    ),
    Example(
        "DECIDED", drawn(normal(0, 4), normal(0, 4)), lambda x, y: (x + y, np.asarray(len(x), np.float32))
    ),
)
