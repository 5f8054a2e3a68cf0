"""Walks that collect ops, copies of modules, and indices split into what varies and a constant."""

import re
from pathlib import Path

import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.mlir import transform
from tuner.mlir.bindings import Op, WalkResult, ir
from tuner.mlir.ir import index_terms, reading
from tuner.mlir.ir.index_terms import split_constant
from tuner.mlir.ir.reading import walk, walk_where

MODULE = text_beside(__file__, "MODULE")
MLIR_WALK = re.compile(r"(?<!ast)\.walk\(")
FAILURE = CandidateError(Stage.COMPILE, "no such op")
ASKED = ("scf.for", "scf.if", "func.func", "builtin.module", "math.exp")


def test_a_walk_finds_ops_of_several_names_in_post_order_with_its_root_and_nothing_outside() -> None:
    with parsed(MODULE) as module:
        found = walk(module, *ASKED)
        expected = ("func.func", "builtin.module", "scf.for", "scf.if", "scf.for", "func.func")
        assert [op.name for op in found] == [*expected, "builtin.module"]
        assert found == walk_where(module, lambda op: op.name in ASKED)
        assert found[-1] == module.operation
        inner, outer = walk(module, "scf.for")
        assert walk(outer, "scf.for") == [inner, outer]
        assert walk(inner, "scf.for", "func.call") == [inner]


def test_blocks_that_nothing_branches_to_are_left_out_and_what_was_found_can_be_erased() -> None:
    with parsed(MODULE) as module:
        found, everywhere = walk(module, "func.call"), walk_where(module, lambda op: op.name == "func.call")
        assert found == everywhere[:2]
        assert len(everywhere) == 3
        for call in found:
            call.erase()
        assert walk(module, "func.call") == []
        assert module.operation.verify()


def test_ops_around_are_listed_from_the_innermost_outwards_one_in_each_block() -> None:
    with parsed(text_beside(__file__, "NESTED")) as module:
        (store,), (inner, outer) = walk(module, "memref.store"), walk(module, "scf.if")
        assert [op.name for op in reading.parents_of(store)] == ["scf.if", "scf.if", "func.func"]
        around = [store, inner, outer]
        assert [reading.ancestor_in_block(store, each.block) for each in around] == around
        assert reading.ancestor_in_block(outer, store.block) is None


@pytest.mark.parametrize("error", [FAILURE, RecursionError("too deep"), KeyboardInterrupt()])
def test_an_exception_in_a_walk_comes_out_as_itself(error: BaseException) -> None:
    visited: list[str] = []

    def visit(op: Op) -> WalkResult:
        visited.append(op.name)
        raise error

    with parsed(MODULE) as module, pytest.raises(type(error)) as caught:
        reading.walk_ops(module, visit, is_pre_order=True)
    assert caught.value is error
    assert visited == ["builtin.module"]


OWN_WALK = ("reading.py", "torch_dialect.py")  # of torch-mlir's own bindings


def test_only_this_module_calls_the_walk_of_mlir() -> None:
    """Elsewhere an exception would be a RuntimeError, whose text is a traceback."""
    sources = (file for file in Path("tuner").rglob("*.py") if file.name not in OWN_WALK)
    assert [str(file) for file in sources if MLIR_WALK.search(file.read_text())] == []


def test_a_copy_is_equal_and_changes_alone() -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text_beside(__file__, "COPIED"))
        before = module.operation.get_asm(enable_debug_info=True)
        copied = reading.copy_of(module)
        assert copied.operation.get_asm(enable_debug_info=True) == before
        copied.body.operations[0].operation.erase()
        assert module.operation.get_asm(enable_debug_info=True) == before


# Indices split into what varies and a constant.
def splits(*expressions: str) -> list[tuple[str, int]]:
    maps = (f"affine.apply affine_map<()[s0, s1] -> ({each})>()[%i, %j]" for each in expressions)
    ops = "\n".join(f"%{number} = {text}" for number, text in enumerate(maps))
    with parsed(f"func.func @f(%i: index, %j: index) {{\n{ops}\nreturn\n}}") as module:
        found = [split_constant(op.results[0]) for op in walk(module, "affine.apply")]
        return [(base[0], constant) for base, constant in found if isinstance(base, tuple)]


def test_constants_are_taken_out_of_sums_and_what_varies_differently_has_another_base() -> None:
    found = splits("s0 mod 8 + s1 + 24", "s0 mod 8 + s1", "s0 mod 8 + s1 + 8 + 8")
    assert len({base for base, _ in found}) == 1
    assert [constant for _, constant in found] == [24, 0, 16]
    one, other = splits("s0 mod 8 + 8", "s0 mod 4 + 8")
    assert one[0] != other[0]


def test_arguments_and_constants_split_as_well() -> None:
    body = "%c = arith.constant 7 : index %s = arith.addi %i, %c : index return"
    with parsed(f"func.func @f(%i: index) {{ {body} }}") as module:
        argument = module.body.operations[0].regions[0].blocks[0].arguments[0]
        assert split_constant(argument) == (argument, 0)
        assert split_constant(walk(module, "arith.constant")[0].results[0]) == (None, 7)
        total = walk(module, "arith.addi")[0].results[0]
        assert split_constant(total) == (total, 0)


PLUS_7 = "%k = arith.addi %i, %c7 : index"
MOD_8 = "affine.apply affine_map<()[s0] -> (s0 + s0 mod 8{})>"
TIMES_2 = "affine.apply affine_map<()[s0] -> (s0 * 2)>"


@pytest.mark.parametrize(
    ("lines", "constant", "base"),
    [
        (["%x = affine.apply affine_map<()[s0] -> (s0 + 8)>()[%i]"], 8, "%arg0"),
        ([PLUS_7, "%x = arith.addi %k, %c7 : index"], 14, "%arg0"),
        ([PLUS_7, "%x = affine.apply affine_map<()[s0] -> (s0 + 8)>()[%k]"], 15, "%arg0"),
        (["%x = arith.addi %c7, %c7 : index"], 14, "None"),
        (["%x = arith.subi %i, %c7 : index"], 0, "arith.subi"),
        # a constant within a product or a remainder is none of the sum
        ([PLUS_7, f"%x = {MOD_8.format(' + 1')}()[%k]"], 1, MOD_8.format("")),
        ([PLUS_7, f"%x = {TIMES_2}()[%k]"], 0, TIMES_2),
    ],
)
def test_constants_are_added_last(lines: list[str], constant: int, base: str) -> None:
    body = "\n".join(("%c7 = arith.constant 7 : index", *lines, '"test.use"(%x) : (index) -> ()', "return"))
    with transform.new_context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        module = transform.parse(f"func.func @f(%i: index) {{\n{body}\n}}", "payload")
        use = walk(module, "test.use")[0]
        with ir.InsertionPoint(use):
            found, number = index_terms.without_constant(use.operands[0])
        assert number == constant
        text = found.get_name() if found and isinstance(found.owner, ir.Block) else str(found)
        assert base in text.replace("#map", "affine.apply")
