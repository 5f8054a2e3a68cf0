"""The two simulated machines, which compute a table's operators: the interpreter of MLIR, and that of PTX."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tests.operators.table import SHIFTS, Operator
from tests.programs.interpreter.lane_kernels import each_applied
from tests.simulator.ptx.snippets import each_lane

Array = NDArray[Any]
FLOATS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


class Machine(Protocol):
    """A machine that computes operators for each element of two arrays."""

    @property
    def integers(self) -> tuple[int, ...]:
        """Widths in bits."""

    @property
    def floats(self) -> tuple[str, ...]:
        """Names of types."""

    def text(self, operator: Operator) -> str:
        """Returns the operator's text on this machine, "" where it has none."""

    def results(self, operators: Sequence[Operator], kind: str, a: Array, b: Array) -> list[Array]:
        """Returns the results of operators on operands of a type: ``s32``, ``u8``, ``f16``."""


@dataclass(frozen=True)
class Interpreter:
    """Kernels in MLIR: integers have no sign there, an operator says how it reads them."""

    integers: tuple[int, ...] = (1, 8, 16, 32, 64)
    floats: tuple[str, ...] = ("f16", "bf16", "f32", "f64")

    def text(self, operator: Operator) -> str:
        return operator.mlir

    def results(self, operators: Sequence[Operator], kind: str, a: Array, b: Array) -> list[Array]:
        named = kind if kind in FLOATS else f"i{kind[1:]}"
        result = np.dtype(FLOATS[kind]) if kind in FLOATS else _signless(kind)
        lines = [
            (each.mlir.format(type=named), np.dtype(bool) if each.is_truth else result) for each in operators
        ]
        return each_applied(lines, a.astype(result), b.astype(result))


@dataclass(frozen=True)
class Ptx:
    """Instructions of PTX, one kernel for each."""

    integers: tuple[int, ...] = (16, 32, 64)
    floats: tuple[str, ...] = ("f16", "f32", "f64")

    def text(self, operator: Operator) -> str:
        return operator.ptx

    def results(self, operators: Sequence[Operator], kind: str, a: Array, b: Array) -> list[Array]:
        return [
            each_lane(
                each.ptx.format(type=kind, bits=kind[1:]),
                a,
                b.astype(np.uint32) if each in SHIFTS else b,
                result="u4" if each.is_truth else a.dtype.str,
                declare=".reg .pred %q;" if each.is_truth else "",
            )
            for each in operators
        ]


def _signless(kind: str) -> "np.dtype[Any]":
    return np.dtype(bool) if kind[1:] == "1" else np.dtype(f"i{int(kind[1:]) // 8}")
