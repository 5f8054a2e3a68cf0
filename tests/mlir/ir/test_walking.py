"""Walks that collect ops."""

import re
from pathlib import Path

import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, WalkResult
from tuner.mlir.ir.reading import ancestor_in_block, parents_of, walk, walk_ops, walk_where

pytestmark = pytest.mark.mlir

MODULE = text_beside(__file__, "MODULE")
MLIR_WALK = re.compile(r"(?<!ast)\.walk\(")
FAILURE = CandidateError(Stage.COMPILE, "no such op")
ASKED = ("scf.for", "scf.if", "func.func", "builtin.module", "math.exp")


def test_ops_of_several_names_come_in_post_order_with_the_root() -> None:
    with parsed(MODULE) as module:
        found = walk(module, *ASKED)
        assert [op.name for op in found] == [
            *("func.func", "builtin.module", "scf.for", "scf.if", "scf.for", "func.func", "builtin.module")
        ]
        assert found == walk_where(module, lambda op: op.name in ASKED)
        assert found[-1] == module.operation


def test_a_walk_of_an_op_sees_what_is_in_it_and_no_other() -> None:
    with parsed(MODULE) as module:
        inner, outer = walk(module, "scf.for")
        assert walk(outer, "scf.for") == [inner, outer]
        assert walk(inner, "scf.for", "func.call") == [inner]


def test_blocks_that_nothing_branches_to_are_left_out() -> None:
    with parsed(MODULE) as module:
        found, everywhere = walk(module, "func.call"), walk_where(module, lambda op: op.name == "func.call")
        assert found == everywhere[:2]
        assert len(everywhere) == 3


def test_what_was_found_can_be_changed_and_erased() -> None:
    with parsed(MODULE) as module:
        for call in walk(module, "func.call"):
            call.erase()
        assert walk(module, "func.call") == []
        assert module.operation.verify()


NESTED = text_beside(__file__, "NESTED")


def test_ops_around_are_named_from_the_innermost_outwards() -> None:
    with parsed(NESTED) as module:
        (store,) = walk(module, "memref.store")
        names = [op.name for op in parents_of(store)]
        assert names == ["scf.if", "scf.if", "func.func"]


def test_an_op_has_one_holder_in_each_block_around_it() -> None:
    with parsed(NESTED) as module:
        (store,), (inner, outer) = walk(module, "memref.store"), walk(module, "scf.if")
        held_by = [ancestor_in_block(store, each.block) for each in (store, inner, outer)]
        assert held_by == [store, inner, outer]
        assert ancestor_in_block(outer, store.block) is None


@pytest.mark.parametrize("error", [FAILURE, RecursionError("too deep"), KeyboardInterrupt()])
def test_an_exception_in_a_walk_comes_out_as_itself(error: BaseException) -> None:
    visited: list[str] = []

    def visit(op: Op) -> WalkResult:
        visited.append(op.name)
        raise error

    with parsed(MODULE) as module, pytest.raises(type(error)) as caught:
        walk_ops(module, visit, is_pre_order=True)
    assert caught.value is error
    assert visited == ["builtin.module"]


def test_only_this_module_calls_the_walk_of_mlir() -> None:
    """Elsewhere an exception would be a RuntimeError, whose text is a traceback."""
    sources = (file for file in Path("tuner").rglob("*.py") if file.name not in ("reading.py", "lowering.py"))
    assert [str(file) for file in sources if MLIR_WALK.search(file.read_text())] == []
