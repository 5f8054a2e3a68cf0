import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.mlir.effects import aliases
from tuner.mlir.ir.reading import walk

pytestmark = pytest.mark.mlir


M = "memref<16xf32>"
MODULE = text_beside(__file__, "MODULE")
SWAP = f"""%r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %b) -> ({M}, {M}) {{
      scf.yield %y, %x : {M}, {M}
    }}"""


def numbers(body: str) -> tuple[list[int], int]:
    """Returns the alias sets of the three arguments, and how many memrefs are known."""
    with parsed(MODULE.replace("BODY", body)) as module:
        function = module.body.operations[0].operation
        found = aliases.AliasSets(function)
        arguments = list(function.regions[0].blocks[0].arguments)[:3]
        return [found.of(argument) for argument in arguments], len(list(aliases.buffers_of(function)))


def test_buffers_that_nothing_mixes_are_alias_sets_of_one() -> None:
    assert numbers("") == ([0, 1, 2], 3)


def test_buffers_that_a_loop_swaps_are_one_alias_set() -> None:
    (a, b, c), known = numbers(SWAP)
    assert a == b != c
    assert known == 3 + 2 + 2


def test_alias_sets_grow_by_every_choice() -> None:
    choice = f"%s = arith.select %flag, %r#0, %c : {M}"
    (a, b, c), _ = numbers(f"{SWAP} {choice}")
    assert a == b == c


def test_members_of_an_alias_set_of_several_are_no_singletons() -> None:
    with parsed(MODULE.replace("BODY", SWAP)) as module:
        function = module.body.operations[0].operation
        found = aliases.AliasSets(function)
        a, _, c = list(function.regions[0].blocks[0].arguments)[:3]
        assert (found.is_singleton(a), found.is_singleton(c)) == (False, True)
        result = walk(module, "scf.for")[0].results[0]
        assert len(found.roots_of(result)) == 2
        assert found.knows(result)


def test_what_is_inside_of_other_operations_is_not_walked() -> None:
    inner = f"scf.parallel (%i) = (%c0) to (%n) step (%c1) {{ %t = memref.alloc() : {M} }}"
    assert numbers(inner)[1] == 3
    assert numbers(f"scf.if %flag {{ %t = memref.alloc() : {M} }}")[1] == 4


def test_a_buffer_belongs_to_the_block_that_made_it() -> None:
    with parsed(MODULE.replace("BODY", f"scf.if %flag {{ %t = memref.alloc() : {M} }}")) as module:
        function = module.body.operations[0].operation
        outer, branch = function.regions[0].blocks[0], walk(module, "scf.if")[0].regions[0].blocks[0]
        assert aliases.block_of(outer.arguments[0]) == outer
        assert aliases.block_of(walk(module, "memref.alloc")[0].results[0]) == branch
