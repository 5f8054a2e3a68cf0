"""Indices split into what varies and a constant."""

import pytest

from tests.mlir.kernels import parsed
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.ir.reading import split_constant, walk, without_constant

pytestmark = pytest.mark.mlir


def splits(*expressions: str) -> list[tuple[str, int]]:
    """Returns what each affine expression of s0 and s1 is split into, its base as text."""
    ops = "\n".join(
        f"%{number} = affine.apply affine_map<()[s0, s1] -> ({text})>()[%i, %j]"
        for number, text in enumerate(expressions)
    )
    with parsed(f"func.func @f(%i: index, %j: index) {{\n{ops}\nreturn\n}}") as module:
        found = [split_constant(op.results[0]) for op in walk(module, "affine.apply")]
        return [(base[0], constant) for base, constant in found if isinstance(base, tuple)]


def test_constants_are_taken_out_of_sums() -> None:
    one, other, third = splits("s0 mod 8 + s1 + 24", "s0 mod 8 + s1", "s0 mod 8 + s1 + 8 + 8")
    assert {one[0], other[0], third[0]} == {one[0]}
    assert (one[1], other[1], third[1]) == (24, 0, 16)


def test_what_varies_differently_has_another_base() -> None:
    one, other = splits("s0 mod 8 + 8", "s0 mod 4 + 8")
    assert one[0] != other[0]


def test_arguments_and_constants_split_as_well() -> None:
    with transform.new_context(), ir.Location.unknown():
        lines = ("%c = arith.constant 7 : index", "%s = arith.addi %i, %c : index", "return")
        module = transform.parse("func.func @f(%i: index) {\n" + "\n".join(lines) + "\n}", "payload")
        argument = module.body.operations[0].regions[0].blocks[0].arguments[0]
        assert split_constant(argument) == (argument, 0)
        assert split_constant(walk(module, "arith.constant")[0].results[0]) == (None, 7)
        total = walk(module, "arith.addi")[0].results[0]
        assert split_constant(total) == (total, 0)


@pytest.mark.parametrize(
    ("lines", "constant", "base"),
    [
        (["%x = affine.apply affine_map<()[s0] -> (s0 + 8)>()[%i]"], 8, "%arg0"),
        (["%k = arith.addi %i, %c7 : index", "%x = arith.addi %k, %c7 : index"], 14, "%arg0"),
        (
            ["%k = arith.addi %i, %c7 : index", "%x = affine.apply affine_map<()[s0] -> (s0 + 8)>()[%k]"],
            15,
            "%arg0",
        ),
        (["%x = arith.addi %c7, %c7 : index"], 14, "None"),
        (["%x = arith.subi %i, %c7 : index"], 0, "arith.subi"),
        # a constant within a product or a remainder is none of the sum
        (
            [
                "%k = arith.addi %i, %c7 : index",
                "%x = affine.apply affine_map<()[s0] -> (s0 + s0 mod 8 + 1)>()[%k]",
            ],
            1,
            "affine.apply affine_map<()[s0] -> (s0 + s0 mod 8)>",
        ),
        (
            ["%k = arith.addi %i, %c7 : index", "%x = affine.apply affine_map<()[s0] -> (s0 * 2)>()[%k]"],
            0,
            "affine.apply affine_map<()[s0] -> (s0 * 2)>",
        ),
    ],
)
def test_constants_are_added_last(lines: list[str], constant: int, base: str) -> None:
    body = "\n".join(("%c7 = arith.constant 7 : index", *lines, '"test.use"(%x) : (index) -> ()', "return"))
    with transform.new_context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        module = transform.parse(f"func.func @f(%i: index) {{\n{body}\n}}", "payload")
        use = walk(module, "test.use")[0]
        with ir.InsertionPoint(use):
            found, number = without_constant(use.operands[0])
        assert number == constant
        text = (
            "None" if found is None else found.get_name() if isinstance(found.owner, ir.Block) else str(found)
        )
        assert base in text.replace("#map", "affine.apply")
