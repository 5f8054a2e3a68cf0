"""Writes small payloads as torch-mlir writes them: constants as resources, elementwise ops as generics."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

ALIGNMENT_BYTES = (4).to_bytes(4, "little")  # with which the data of a resource begin
BODIES = {
    "relu": ("%p = arith.cmpf ugt, %x, %zero : f32", "%q = arith.select %p, %x, %zero : f32"),
    "tanh": ("%q = math.tanh %x : f32",),
    "square": ("%q = arith.mulf %x, %x : f32",),
    "exp": ("%q = math.exp %x : f32",),
}
BINARY = {"add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "div": "arith.divf"}


@dataclass(frozen=True)
class Tensor:
    name: str
    shape: tuple[int, ...]

    @property
    def type(self) -> str:
        return "tensor<" + "".join(f"{size}x" for size in self.shape) + "f32>"


Operand = tuple[Tensor, Sequence[int]]  # and which loops its dimensions are
Operands = Sequence[Operand]


class PayloadText:
    def __init__(self) -> None:
        self.arguments: list[Tensor] = []
        self.weights: list[np.ndarray] = []
        self.lines: list[str] = []

    def argument(self, *shape: int) -> Tensor:
        self.arguments.append(Tensor(f"%arg{len(self.arguments)}", shape))
        return self.arguments[-1]

    def weight(self, array: np.ndarray) -> Tensor:
        self.weights.append(array.astype(np.float32))
        name = f"weight_{len(self.weights) - 1}"
        return self._add(array.shape, f"arith.constant dense_resource<{name}> : RESULT")

    def matmul(self, left: Tensor, right: Tensor) -> Tensor:
        *batch, rows, _ = left.shape
        zeros = self.filled((*batch, rows, right.shape[-1]), "%zero")
        name = "linalg.batch_matmul" if batch else "linalg.matmul"
        ins = f"ins({left.name}, {right.name} : {left.type}, {right.type})"
        return self._add(zeros.shape, f"{name} {ins} outs({zeros.name} : RESULT) -> RESULT")

    def filled(self, shape: Sequence[int], number: str) -> Tensor:
        outs = f"outs({self._empty(shape).name} : RESULT) -> RESULT"
        return self._add(shape, f"linalg.fill ins({number} : f32) {outs}")

    def unary(self, name: str, operand: Tensor) -> Tensor:
        return self._generic(operand.shape, [(operand, range(len(operand.shape)))], BODIES[name])

    def binary(self, name: str, left: Tensor, right: Tensor) -> Tensor:
        """The second operand may have fewer dimensions, which are the last ones of the first operand."""
        rank = len(left.shape)
        operands = [(left, range(rank)), (right, range(rank - len(right.shape), rank))]
        return self._generic(left.shape, operands, (f"%q = {BINARY[name]} %x, %y : f32",))

    def by_row(self, name: str, left: Tensor, row: Tensor) -> Tensor:
        """The second operand has one number for each row of the first operand."""
        operands = [(left, range(len(left.shape))), (row, range(len(row.shape)))]
        return self._generic(left.shape, operands, (f"%q = {BINARY[name]} %x, %y : f32",))

    def transpose(self, operand: Tensor, order: Sequence[int]) -> Tensor:
        empty = self._empty([operand.shape[each] for each in order])
        outs = f"outs({empty.name} : RESULT) permutation = {list(order)}"
        return self._add(empty.shape, f"linalg.transpose ins({operand.name} : {operand.type}) {outs}")

    def reduced(self, name: str, operand: Tensor) -> Tensor:
        """The sum, or the largest, of each row."""
        rank = len(operand.shape)
        number, op = {"sum": ("%zero", "arith.addf"), "max": ("%least", "arith.maximumf")}[name]
        init, body = self.filled(operand.shape[:-1], number), (f"%q = {op} %x, %out : f32",)
        return self._generic(operand.shape, [(operand, range(rank))], body, (init, range(rank - 1)))

    def softmax(self, operand: Tensor) -> Tensor:
        largest = self.reduced("max", operand)
        powers = self.unary("exp", self.by_row("sub", operand, largest))
        return self.by_row("div", powers, self.reduced("sum", powers))

    def reshape(self, operand: Tensor, shape: Sequence[int]) -> Tensor:
        """To one dimension, then to a shape of as many elements."""
        flat = operand
        if len(operand.shape) > 1:
            merged = f"{operand.name} {[list(range(len(operand.shape)))]} : {operand.type} into RESULT"
            flat = self._add((math.prod(operand.shape),), f"tensor.collapse_shape {merged}")
        if len(shape) == 1:
            return flat
        split = f"{[list(range(len(shape)))]} output_shape {list(shape)}"
        return self._add(shape, f"tensor.expand_shape {flat.name} {split} : {flat.type} into RESULT")

    def sliced(self, operand: Tensor, offsets: Sequence[int], shape: Sequence[int]) -> Tensor:
        places = f"{list(offsets)} {list(shape)} {[1] * len(shape)}"
        return self._add(shape, f"tensor.extract_slice {operand.name}{places} : {operand.type} to RESULT")

    def padded(self, operand: Tensor, low: Sequence[int], high: Sequence[int]) -> Tensor:
        shape = [sum(sizes) for sizes in zip(low, operand.shape, high, strict=True)]
        arguments = ", ".join(f"%i{number}: index" for number in range(len(low)))
        region = f"{{\n^bb0({arguments}):\ntensor.yield %zero : f32\n}} : {operand.type} to RESULT"
        return self._add(shape, f"tensor.pad {operand.name} low{list(low)} high{list(high)} {region}")

    def concatenated(self, operands: Sequence[Tensor], dimension: int) -> Tensor:
        shape = list(operands[0].shape)
        shape[dimension] = sum(each.shape[dimension] for each in operands)
        names, types = ", ".join(e.name for e in operands), ", ".join(e.type for e in operands)
        return self._add(shape, f"tensor.concat dim({dimension}) {names} : ({types}) -> RESULT")

    def inserted(self, part: Tensor, into: Tensor, offsets: Sequence[int]) -> Tensor:
        places = f"{into.name}{list(offsets)} {list(part.shape)} {[1] * len(offsets)}"
        return self._add(
            into.shape, f"tensor.insert_slice {part.name} into {places} : {part.type} into RESULT"
        )

    def text(self, *results: Tensor) -> str:
        arguments = ", ".join(f"{each.name}: {each.type}" for each in self.arguments)
        types = ", ".join(each.type for each in results)
        body = "\n".join(self.lines)
        names = ", ".join(each.name for each in results)
        constants = "%zero = arith.constant 0.0 : f32\n%least = arith.constant 0xFF800000 : f32"
        head = f"func.func @main({arguments}) -> ({types}) {{"
        function = f"{head}\n{constants}\n{body}\nreturn {names} : {types}\n}}"
        data = [(ALIGNMENT_BYTES + each.tobytes()).hex().upper() for each in self.weights]
        entries = ",\n".join(f'      weight_{number}: "0x{digits}"' for number, digits in enumerate(data))
        resources = "{-#\n  dialect_resources: {\n    builtin: {\n" + entries + "\n    }\n  }\n#-}\n"
        return f"module {{\n{function}\n}}\n\n" + (resources if data else "")

    def _generic(
        self, loops: Sequence[int], operands: Operands, body: Sequence[str], init: Operand | None = None
    ) -> Tensor:
        init = init or (self._empty(loops), range(len(loops)))
        dims = ", ".join(f"d{number}" for number in range(len(loops)))
        places = (", ".join(f"d{each}" for each in dimensions) for _, dimensions in (*operands, init))
        maps = ", ".join(f"affine_map<({dims}) -> ({each})>" for each in places)
        kinds = ", ".join(f'"{"parallel" if at in init[1] else "reduction"}"' for at in range(len(loops)))
        names, types = (", ".join(getattr(t, each) for t, _ in operands) for each in ("name", "type"))
        inputs = ", ".join(f"%{name}: f32" for name in "xy"[: len(operands)])
        head = f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}"
        outs = f"ins({names} : {types}) outs({init[0].name} : {init[0].type})"
        lines = "\n".join([f"^bb0({inputs}, %out: f32):", *body, "linalg.yield %q : f32"])
        return self._add(init[0].shape, f"{head} {outs} {{\n{lines}\n}} -> RESULT")

    def _empty(self, shape: Sequence[int]) -> Tensor:
        return self._add(shape, "tensor.empty() : RESULT")

    def _add(self, shape: Sequence[int], text: str) -> Tensor:
        """Adds an operation, in whose text RESULT is the type of its result; returns the result."""
        tensor = Tensor(f"%v{len(self.lines)}", tuple(shape))
        self.lines.append(f"{tensor.name} = {text.replace('RESULT', tensor.type)}")
        return tensor


def with_weights(text: str) -> str:
    """Returns a text in which ``dense<NUMBERS>`` are many different numbers."""
    seeds = count()

    def numbers(found: re.Match[str]) -> str:
        shape = [int(size) for size in found[1].split("x")]
        weight = np.random.default_rng(next(seeds)).standard_normal(shape).astype(np.float32) / shape[-1]
        return f'dense<"0x{weight.tobytes().hex().upper()}"> : tensor<{found[1]}xf32>'

    return re.sub(r"dense<NUMBERS> : tensor<([\dx]+)xf32>", numbers, text)
