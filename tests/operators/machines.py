"""The two simulated machines, which compute a table's operators: the interpreter of MLIR, and that of PTX."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tests.operators.table import SHIFTS, Operator
from tests.programs.interpreter.lane_kernels import each_applied
from tests.simulator.instructions.test_integers import numpy_name
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

    @property
    def roundings(self) -> tuple[str, ...]:
        """Ways to whole numbers: to zero ``rzi``, the nearest ``rni``, down ``rmi``, up ``rpi``."""

    def converted(self, source: str, target: str, a: Array, mode: str = "rzi") -> Array:
        """Returns numbers of one type as numbers of another; ``mode``: from floats to integers."""


@dataclass(frozen=True)
class Interpreter:
    """Kernels in MLIR: integers have no sign there, an operator says how it reads them."""

    integers: tuple[int, ...] = (1, 8, 16, 32, 64)
    floats: tuple[str, ...] = ("f16", "bf16", "f32", "f64")
    roundings: tuple[str, ...] = ("rzi",)

    def text(self, operator: Operator) -> str:
        return operator.mlir

    def results(self, operators: Sequence[Operator], kind: str, a: Array, b: Array) -> list[Array]:
        named = kind if kind in FLOATS else f"i{kind[1:]}"
        result = _dtype(kind)
        lines = [
            (each.mlir.format(type=named), np.dtype(bool) if each.is_truth else result) for each in operators
        ]
        return each_applied(lines, a.astype(result), b.astype(result))

    def converted(self, source: str, target: str, a: Array, mode: str = "rzi") -> Array:
        assert mode == "rzi"
        is_wider = int(target.lstrip("subf")) > int(source.lstrip("subf"))
        if source in FLOATS:
            name = ("extf" if is_wider else "truncf") if target in FLOATS else f"fpto{target[0]}i"
        elif target in FLOATS:
            name = f"{source[0]}itofp"
        else:
            name = f"ext{source[0]}i" if is_wider else "trunci"
        named = (each if each in FLOATS else f"i{each[1:]}" for each in (source, target))
        line = f"%r = arith.{name} %a : {' to '.join(named)}"
        found: Array = each_applied([(line, _dtype(target))], a.astype(_dtype(source)))[0]
        return found


@dataclass(frozen=True)
class Ptx:
    """Instructions of PTX, one kernel for each."""

    integers: tuple[int, ...] = (16, 32, 64)
    floats: tuple[str, ...] = ("f16", "f32", "f64")
    roundings: tuple[str, ...] = ("rzi", "rni", "rmi", "rpi")

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

    def converted(self, source: str, target: str, a: Array, mode: str = "rzi") -> Array:
        is_exact = source in FLOATS and int(target.lstrip("subf")) > int(source.lstrip("subf"))
        of_floats = "" if is_exact else ".rn"
        how = of_floats if target in FLOATS else f".{mode}" if source in FLOATS else ""
        held = a.view(np.uint16) if source == "bf16" else a
        name = "u2" if target == "bf16" else np.dtype(FLOATS.get(target) or numpy_name(target)).str
        found = each_lane(f"cvt{how}.{target}.{source} %d, %a;", held, result=name)
        return found.view(FLOATS[target]) if target == "bf16" else found


def _dtype(kind: str) -> "np.dtype[Any]":
    return np.dtype(FLOATS[kind]) if kind in FLOATS else _signless(kind)


def _signless(kind: str) -> "np.dtype[Any]":
    return np.dtype(bool) if kind[1:] == "1" else np.dtype(f"i{int(kind[1:]) // 8}")
