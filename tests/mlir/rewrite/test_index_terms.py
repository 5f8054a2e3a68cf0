"""Indices split into what varies and a constant."""

import pytest

from tuner.mlir import interpreter
from tuner.mlir.bindings import ir
from tuner.mlir.rewrite.index_terms import split_constant
from tuner.mlir.rewrite.walking import walk

pytestmark = pytest.mark.mlir


def splits(*expressions: str) -> list[tuple[str, int]]:
    """Returns what each affine expression of s0 and s1 is split into, its base as text."""
    ops = "\n".join(
        f"%{number} = affine.apply affine_map<()[s0, s1] -> ({text})>()[%i, %j]"
        for number, text in enumerate(expressions)
    )
    with interpreter.new_context(), ir.Location.unknown():
        module = interpreter.parse(f"func.func @f(%i: index, %j: index) {{\n{ops}\nreturn\n}}", "payload")
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
    with interpreter.new_context(), ir.Location.unknown():
        lines = ("%c = arith.constant 7 : index", "%s = arith.addi %i, %c : index", "return")
        module = interpreter.parse("func.func @f(%i: index) {\n" + "\n".join(lines) + "\n}", "payload")
        argument = module.body.operations[0].regions[0].blocks[0].arguments[0]
        assert split_constant(argument) == (argument, 0)
        assert split_constant(walk(module, "arith.constant")[0].results[0]) == (None, 7)
        total = walk(module, "arith.addi")[0].results[0]
        assert split_constant(total) == (total, 0)
