"""Generics that sum products are matmuls: in each order of dimensions and loops, and with each body."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.fusion_problems import fusion_problems
from tests.models.file_check import filled
from tests.models.fusions.host_execution import FusedFunction, formed
from tuner.core.fusions import CONTRACTION, LOOPS, ROWS, FusedProgram
from tuner.core.numpy_types import DTYPES

pytestmark = pytest.mark.mlir
FLOATS = {"multiply": "arith.mulf", "add": "arith.addf", "extend": "arith.extf"}
INTEGERS = {"multiply": "arith.muli", "add": "arith.addi", "extend": "arith.extsi"}
UNSIGNED = {**INTEGERS, "extend": "arith.extui"}
SUM = ("%s = {add} %before, %p : {sum}",)
PLAIN = ("%p = {multiply} %x, %y : {sum}", *SUM)
REVERSED = ("%p = {multiply} %y, %x : {sum}", "%s = {add} %p, %before : {sum}")
FUSED = ("%s = math.fma %y, %x, %before : {sum}",)
EXTENDED = (
    "%w = {extend} %x : {left} to {sum}",
    "%v = {extend} %y : {right} to {sum}",
    "%p = {multiply} %v, %w : {sum}",
    *SUM,
)
LEFT_EXTENDED = ("%w = {extend} %x : {left} to {sum}", "%p = {multiply} %w, %y : {sum}", *SUM)
SIZES = {"b": 3, "m": 5, "n": 7, "k": 4}
MATMUL = ("mk", "kn", "mn")
BATCHED = ("bmk", "bkn", "bmn")


@dataclass(frozen=True)
class Einsum:
    """A generic by what its operands are indexed by, as for ``numpy.einsum``, and by its types."""

    operands: tuple[str, str, str] = MATMUL
    loops: str = "mnk"
    types: tuple[str, str, str] = ("f32", "f32", "f32")
    body: Sequence[str] = PLAIN
    ops: dict[str, str] | None = None  # by which ``body`` multiplies, adds and extends
    start: str = "%zeros"
    sizes: dict[str, int] | None = None

    def text(self, name: str = "") -> str:
        """Returns the program as a generic, or as the operation ``linalg.name``."""
        ops = self.ops or (FLOATS if "f" in self.types[2] else INTEGERS)
        elements = dict(zip(("left", "right", "sum"), self.types, strict=True))
        body = "\n".join(self.body).format(**ops, **elements)
        kinds = ('"parallel"' if loop in self.operands[2] else '"reduction"' for loop in self.loops)
        parts = {
            "zero": "0" if ops["add"] == "arith.addi" else "0.0",
            "cast": "{cast = #linalg.type_fn<cast_unsigned>}" if ops == UNSIGNED else "",
            "loops": ", ".join(self.loops),
            "kinds": ", ".join(kinds),
            "body": body,
            "start": self.start,
            "operation": name,
        }
        of_elements = zip(("a_element", "b_element", "element"), self.types, strict=True)
        of_loops = zip(("a_loops", "b_loops", "c_loops"), map(", ".join, self.operands), strict=True)
        of_tensors = zip(("a_tensor", "b_tensor", "result"), self._tensors(), strict=True)
        return filled(
            __file__, "NAMED" if name else "GENERIC", **parts, **dict([*of_elements, *of_loops, *of_tensors])
        )

    def shapes(self) -> list[list[int]]:
        sizes = self.sizes or SIZES
        return [[sizes[loop] for loop in loops] for loops in self.operands]

    def _tensors(self) -> list[str]:
        pairs = zip(self.shapes(), self.types, strict=True)
        return [f"tensor<{''.join(f'{size}x' for size in shape)}{element}>" for shape, element in pairs]

    def arrays(self, seed: int = 0) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        pairs = zip(self.shapes(), self.types, strict=True)
        return [np.asarray(rng.integers(-9, 9, shape)).astype(DTYPES[element]) for shape, element in pairs]

    def expected(self, left: Any, right: Any, start: Any) -> Any:
        """Returns the exact result: of whole numbers from -9 to 8, or the same bytes without a sign."""
        if self.ops == UNSIGNED:
            left, right = left.view(np.uint8), right.view(np.uint8)
        names = f"{self.operands[0]},{self.operands[1]}->{self.operands[2]}"
        product = np.einsum(names, left.astype(np.float64), right.astype(np.float64))
        return product + (start.astype(np.float64) if self.start == "%c" else 0)


def program(text: str) -> FusedProgram:
    return formed(text).program


def require_right(einsum: Einsum) -> None:
    arrays = einsum.arrays()
    (result,) = FusedFunction(formed(einsum.text()))(*arrays)
    np.testing.assert_array_equal(result.astype(np.float64), einsum.expected(*arrays))


NN_NT_TN = [MATMUL, ("mk", "nk", "mn"), ("km", "kn", "mn"), ("km", "nk", "mn")]
BATCHES = [BATCHED, ("bmk", "bnk", "bmn"), ("bkm", "bkn", "bmn")]
BODIES = {
    "reversed": Einsum(body=REVERSED),
    "fma": Einsum(body=FUSED),
    "f64": Einsum(types=("f64",) * 3),
    "f16": Einsum(types=("f16", "f16", "f32"), body=EXTENDED),
    "bf16": Einsum(types=("bf16", "bf16", "f32"), body=EXTENDED),
    "bf16 and f32": Einsum(types=("bf16", "f32", "f32"), body=LEFT_EXTENDED),
    "i8": Einsum(types=("i8", "i8", "i32"), body=EXTENDED),
    "u8": Einsum(types=("i8", "i8", "i32"), body=EXTENDED, ops=UNSIGNED),
    "i8 and i32": Einsum(types=("i8", "i32", "i32"), body=LEFT_EXTENDED),
    "i32": Einsum(types=("i32",) * 3),
    "batch of u8": Einsum(BATCHED, "bmnk", ("i8", "i8", "i32"), EXTENDED, UNSIGNED),
    "start": Einsum(start="%c"),
    "batch with a start": Einsum(BATCHED, "bmnk", start="%c"),
}


@pytest.mark.parametrize("einsum", BODIES.values(), ids=BODIES)
def test_each_body_of_a_sum_of_products_is_that_of_the_named_matmul(einsum: Einsum) -> None:
    name = "batch_matmul" if "b" in einsum.loops else "matmul"
    assert program(einsum.text()) == program(einsum.text(name))
    require_right(einsum)


@pytest.mark.parametrize("operands", [*NN_NT_TN, *BATCHES])
@pytest.mark.parametrize("reverse", [False, True], ids=["", "other loops"])
def test_each_layout_is_the_named_matmul_in_each_order_of_loops(
    operands: tuple[str, str, str], reverse: bool
) -> None:
    loops = "bmnk" if "b" in operands[0] else "mnk"
    sizes = {"b": 3, "m": 20, "n": 256, "k": 33}
    einsum = Einsum(operands, loops[::-1] if reverse else loops, sizes=sizes)
    named = replace(einsum, loops=loops).text("batch_matmul" if "b" in operands[0] else "matmul")
    assert program(einsum.text()) == program(named)
    assert fusion_problems(einsum.text())[-1].scheduled_as == fusion_problems(named)[-1].scheduled_as
    require_right(einsum)


@pytest.mark.parametrize(
    ("operands", "sizes", "shape"),
    [
        (("k", "kn", "n"), {}, "1x7x4"),
        (("km", "k", "m"), {}, "1x5x4"),
        (("umk", "kvn", "mun"), {"u": 1, "v": 1}, "5x7x4"),
        (("mk", "kn", "nm"), {}, "7x5x4"),
        (("bmk", "kn", "bmn"), {}, "15x7x4"),
        (("bhmd", "bhnd", "bhmn"), {"h": 2, "d": 8}, "6x5x7x8"),
        (("bmhd", "bnhd", "bhmn"), {"h": 2, "d": 8}, "6x5x7x8"),
        (("bmhd", "hdn", "bmn"), {"h": 2, "d": 8}, "15x7x16"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, tuple) and isinstance(value[0], str) else "",
)
def test_loops_of_one_kind_are_one_dimension(
    operands: tuple[str, str, str], sizes: dict[str, int], shape: str
) -> None:
    loops = "".join(dict.fromkeys("".join(operands)))
    einsum = Einsum(operands, loops, sizes=SIZES | sizes)
    product = program(einsum.text()).fusions[-1]
    assert product.kind == CONTRACTION
    assert fusion_problems(einsum.text())[-1].shape == shape
    require_right(einsum)


CUBE = ("%p = arith.mulf %x, %y : f32", "%q = arith.mulf %p, %x : f32", "%s = arith.addf %q, %before : f32")
ROUNDED = (
    "%p = {multiply} %x, %y : {left}",
    "%w = {extend} %p : {left} to {sum}",
    "%s = {add} %w, %before : {sum}",
)
BYTES = (
    "%w = arith.extsi %x : i8 to i32",
    "%v = arith.extui %y : i8 to i32",
    "%p = arith.muli %w, %v : i32",
    *SUM,
)
OTHERS = {
    "of another product": (Einsum(body=CUBE), LOOPS),
    "of rounded products": (Einsum(types=("bf16", "bf16", "f32"), body=ROUNDED), LOOPS),
    "of bits": (Einsum(types=("i1",) * 3), LOOPS),
    "of bytes with and without sign": (Einsum(types=("i8", "i8", "i32"), body=BYTES), LOOPS),
    "product less the sum": (Einsum(body=(PLAIN[0], "%s = arith.subf %before, %p : f32")), LOOPS),
    "summed before": (Einsum(("mbk", "kn", "mn"), "mnkb"), LOOPS),
    "repeated": (Einsum(("mk", "kn", "mbn"), "mbnk"), LOOPS),
    "of vectors": (Einsum(("k", "k", ""), "k"), ROWS),
    "of rows": (Einsum(("mk", "k", "m"), "mk"), ROWS),
    "of a batch of rows": (Einsum(("bmk", "bk", "bm"), "bmk"), ROWS),
}


@pytest.mark.parametrize(("einsum", "kind"), OTHERS.values(), ids=OTHERS)
def test_what_is_no_matmul_stays_as_it_is(einsum: Einsum, kind: str) -> None:
    (fusion,) = program(einsum.text()).fusions
    assert fusion.kind == kind


@st.composite
def einsums(draw: Any) -> Einsum:
    """Draws up to two loops of each kind, of sizes from 1, and orders of each operand's and of all loops."""
    groups = [
        draw(st.sampled_from(["", first, first + second])) for first, second in ("bd", "mi", "nj", "kl")
    ]
    batch, rows, columns, summed = groups
    operands = (batch + rows + summed, batch + columns + summed, batch + rows + columns)
    orders = ["".join(draw(st.permutations(loops))) for loops in (*operands, "".join(groups))]
    sizes = {loop: draw(st.integers(1, 5)) for loop in "".join(groups)}
    start = draw(st.sampled_from(["%zeros", "%c"]))
    return Einsum((orders[0], orders[1], orders[2]), orders[3], start=start, sizes=sizes)


@settings(max_examples=40)
@given(einsums())
@example(Einsum(("mk", "kn", "mn"), "mnk", sizes={"m": 1, "n": 1, "k": 1}))
@example(Einsum(("kbm", "njbl", "mbnj"), "kbmnjl", sizes=dict.fromkeys("kbmnjl", 2)))
def test_a_drawn_einsum_is_right(einsum: Einsum) -> None:
    require_right(einsum)
