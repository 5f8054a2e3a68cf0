from typing import Any

import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.mlir.effects import aliases
from tuner.mlir.ir.reading import walk

pytestmark = pytest.mark.mlir


M = "memref<16xf32>"
MODULE = text_beside(__file__, "MODULE")


def roots(body: str, kind: str = M) -> list[str]:
    """Returns the names of the roots of %v, which the body defines."""
    with parsed(MODULE.replace("BODY", body).replace("VTYPE", kind)) as module:
        found = aliases.roots_of(_used(module))
        return [aliases.described(root) for root in found]


def _used(module: Any) -> Any:
    return walk(module, "func.call")[-1].operands[0]


LOOP = "%v{more} = scf.for %i = %c0 to %n step %c1 iter_args({carried}) -> ({types}) {{ {body} }}"


def test_views_belong_to_what_they_are_views_of() -> None:
    row, kind = "memref<4xf32, strided<[1], offset: 4>>", "memref<2x2xf32, strided<[2, 1], offset: 4>>"
    body = f"""%s = memref.subview %a[4] [4] [1] : {M} to {row}
    %v = memref.expand_shape %s [[0, 1]] output_shape [2, 2] : {row} into {kind}"""
    assert roots(body, kind) == ["argument %arg0"]


def test_an_allocation_is_its_own_root() -> None:
    assert roots(f"%v = memref.alloc() : {M}") == ["%alloc of memref.alloc"]


def test_a_global_is_one_buffer_however_often_it_is_named() -> None:
    body = f"%x = memref.get_global @g : {M} %v = memref.get_global @g : {M}"
    with parsed(MODULE.replace("BODY", body).replace("VTYPE", M)) as module:
        first = walk(module, "memref.get_global")[0]
        assert aliases.roots_of(_used(module)) == (first.results[0],)


def test_a_loop_that_hands_on_one_buffer_keeps_it() -> None:
    inner = f"%s = memref.cast %x : {M} to memref<?xf32> %t = memref.cast %s : memref<?xf32> to {M}"
    loop = LOOP.format(more="", carried="%x = %a", types=M, body=f"{inner} scf.yield %t : {M}")
    assert roots(loop) == ["argument %arg0"]


def test_a_loop_that_swaps_two_buffers_may_give_either() -> None:
    carried, types = "%x = %a, %y = %b", f"{M}, {M}"
    loop = LOOP.format(more=":2", carried=carried, types=types, body=f"scf.yield %y, %x : {types}")
    body = loop.replace("%v:2", "%w:2") + f" %v = memref.cast %w#0 : {M} to {M}"
    assert roots(body) == ["argument %arg0", "argument %arg1"]


def test_a_while_loop_is_followed_through_both_regions() -> None:
    body = text_beside(__file__, "WHILE")
    assert roots(body) == ["argument %arg0"]


@pytest.mark.parametrize(
    ("otherwise", "found"), [("%a", ["argument %arg0"]), ("%b", ["argument %arg0", "argument %arg1"])]
)
def test_branches_may_yield_different_buffers(otherwise: str, found: list[str]) -> None:
    body = f"%v = scf.if %c -> {M} {{ scf.yield %a : {M} }} else {{ scf.yield {otherwise} : {M} }}"
    assert roots(body) == found
    assert roots(f"%v = arith.select %c, %a, {otherwise} : {M}") == found


def test_what_a_call_returns_is_refused() -> None:
    with pytest.raises(
        CandidateError,
        match=r"^%0 of func\.call: found a buffer of unknown origin, allowed allocations and views$",
    ):
        roots(f"%v = func.call @other(%a) : ({M}) -> {M}")


def test_an_argument_of_another_block_is_refused() -> None:
    with pytest.raises(
        CandidateError,
        match=r"^argument %0 in func\.func: found a buffer, allowed scf\.for, scf\.while, scf\.if$",
    ):
        roots(f"cf.br ^next(%a : {M}) ^next(%v: {M}):")
