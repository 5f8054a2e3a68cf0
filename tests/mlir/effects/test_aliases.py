"""What memory may be the same: aliases of an allocation, alias sets, and the roots of views."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.mlir.effects import aliases
from tuner.mlir.ir.reading import walk

M, OF_16 = "memref<4xf32>", "memref<16xf32>"
OF_X = f"%x = gpu.alloc () : {M}\n"
# What the body of @f does with the memory %x -> the ops that use its address or what was made of it.
USERS = {
    "sizes_of_a_view": "memref.extract_strided_metadata memref.load",
    "a_loaded_number": "memref.load",
    "arithmetic": "arith.addi memref.extract_aligned_pointer_as_index",
    "a_vector": "memref.extract_aligned_pointer_as_index vector.broadcast vector.extract",
    "a_number_of_64_bits": "arith.bitcast arith.bitcast arith.index_cast arith.select"
    " memref.extract_aligned_pointer_as_index",
    "a_struct": "builtin.unrealized_conversion_cast llvm.insertvalue llvm.ptrtoint",
    "a_tuple": "builtin.unrealized_conversion_cast builtin.unrealized_conversion_cast memref.load",
    "a_region_that_is_not_known": "arith.addi cf.br memref.extract_aligned_pointer_as_index scf.yield",
    "the_bound_of_a_loop": "arith.addi memref.extract_aligned_pointer_as_index scf.for",
}
KEPT = (
    *("an_address", "a_sum", "a_memref", "machine_code", "machine_code_of_a_GPU", "a_scatter"),
    *("a_second_output", "a_fill", "an_unknown_function"),
)
NOT_KEPT = ("as_an_index", "at_an_address", "printed")
SWAP = text_beside(__file__, "SWAP")
IN_A_BRANCH = f"scf.if %flag {{ %t = memref.alloc() : {OF_16} }}"


def of_first_allocation(body: str, more: str = "") -> tuple[set[str], list[str], bool]:
    """Returns the values that may hold the first gpu.alloc of @f, its users, and whether memory may."""
    text = text_beside(__file__, "MODULE").replace("MORE", more).replace("BODY", body)
    with parsed(text) as module:
        found = aliases.aliases_of(walk(module, "gpu.alloc")[0].results[0])
        names = {each.get_name() for each in found.values}
        return names, sorted(user.name for user in found.users), found.is_kept


def test_views_branches_and_loops_hand_memory_on() -> None:
    values, users, _ = of_first_allocation(text_beside(__file__, "CARRIED"))
    assert len(values) == 5  # %x, %s, %p, %c, %r
    assert users == ["arith.select", "memref.cast", "scf.for"]


@pytest.mark.parametrize("way", USERS)
def test_an_address_is_followed_through(way: str) -> None:
    _, users, is_kept = of_first_allocation(OF_X + text_beside(__file__, way))
    assert users == USERS[way].split()
    assert not is_kept


@pytest.mark.parametrize("way", [*KEPT, *NOT_KEPT])
def test_an_address_is_kept_only_where_it_is_stored(way: str) -> None:
    assert of_first_allocation(OF_X + text_beside(__file__, way))[2] is (way in KEPT)


@pytest.mark.parametrize("op", ["memref.store %n, %box[] : memref<index>", "%s = arith.addi %n, %n : index"])
def test_a_kernel_keeps_what_it_stores(op: str) -> None:
    launch, kernel = (text_beside(__file__, name) for name in ("KERNEL_LAUNCHED", "KERNEL"))
    assert of_first_allocation(OF_X + launch, more=kernel.replace("BODY", op))[2] is ("store" in op)


def test_work_uses_memory_until_its_token_is_waited_for() -> None:
    assert of_first_allocation(text_beside(__file__, "COPIED"))[1] == ["gpu.memcpy", "gpu.wait", "gpu.wait"]
    assert of_first_allocation(text_beside(__file__, "LAUNCHED"))[1] == ["gpu.wait", "memref.store"]


def test_memrefs_are_found_behind_what_was_made_of_them() -> None:
    with parsed(text_beside(__file__, "POINTERS")) as module:
        pointer, elsewhere = [op.results[0] for op in walk(module, "llvm.inttoptr")]
        behind = {each.get_name() for each in aliases.buffers_with_address_in(pointer)}
        assert behind == {"%arg0", "%arg1"}
        assert [aliases.may_be_unknown_pointer(each) for each in (pointer, elsewhere)] == [False, True]


def test_a_pointer_that_may_be_an_unknown_address_may_point_anywhere() -> None:
    """Of two memrefs, moved in a loop; then chosen between a memref and an unknown address."""
    with parsed(text_beside(__file__, "CHOSEN_POINTERS")) as module:
        pointers = [op.results[0] for op in walk(module, "llvm.inttoptr")]
        assert list(map(aliases.may_be_unknown_pointer, pointers)) == [False, False, True, True, True, True]


def test_both_directions_are_one_relation() -> None:
    """Whatever a memref is handed on to, forwards, has this memref behind it, backwards."""
    with parsed(text_beside(__file__, "HANDED_ON")) as module:
        memory = walk(module, "gpu.alloc")[0].results[0]
        held = aliases.aliases_of(memory).values - {memory}
        assert len(held) == 8  # %n, both %w, %r#1, %s, %i, %c, %t; neither %k nor %r#0
        assert all(aliases.buffers_with_address_in(each) == (memory,) for each in held)


@contextmanager
def with_sets(body: str) -> Iterator[tuple[Any, Any, list[Any]]]:
    with parsed(text_beside(__file__, "OF_SETS").replace("BODY", body)) as module:
        function = module.body.operations[0].operation
        yield function, aliases.AliasSets(function), list(function.regions[0].blocks[0].arguments)[:3]


def numbers(body: str) -> tuple[list[int], int]:
    with with_sets(body) as (function, found, arguments):
        return [found.of(argument) for argument in arguments], len(list(aliases.buffers_of(function)))


def test_buffers_are_alias_sets_of_one_until_a_loop_swaps_them_or_a_choice_mixes_them() -> None:
    assert numbers("") == ([0, 1, 2], 3)
    (a, b, c), known = numbers(SWAP)
    assert a == b != c
    assert known == 3 + 2 + 2
    (a, b, c), _ = numbers(f"{SWAP} %s = arith.select %flag, %r#0, %c : {OF_16}")
    assert a == b == c


def test_members_of_an_alias_set_of_several_are_no_singletons() -> None:
    with with_sets(SWAP) as (function, found, (a, _, c)):
        assert (found.is_singleton(a), found.is_singleton(c)) == (False, True)
        result = walk(function, "scf.for")[0].results[0]
        assert len(found.roots_of(result)) == 2
        assert found.knows(result)


def test_what_is_inside_of_other_operations_is_not_walked() -> None:
    inner = f"scf.parallel (%i) = (%c0) to (%n) step (%c1) {{ %t = memref.alloc() : {OF_16} }}"
    assert numbers(inner)[1] == 3
    assert numbers(IN_A_BRANCH)[1] == 4


def test_a_buffer_belongs_to_the_block_that_made_it() -> None:
    with with_sets(IN_A_BRANCH) as (function, _, (a, *_)):
        assert aliases.block_of(a) == function.regions[0].blocks[0]
        branch = walk(function, "scf.if")[0].regions[0].blocks[0]
        assert aliases.block_of(walk(function, "memref.alloc")[0].results[0]) == branch


@contextmanager
def root_values(body: str, kind: str = OF_16) -> Iterator[tuple[Any, Any]]:
    text = text_beside(__file__, "OF_ROOTS").replace("BODY", body).replace("VTYPE", kind)
    with parsed(text) as module:
        yield module, aliases.roots_of(walk(module, "func.call")[-1].operands[0])


def roots(body: str, kind: str = OF_16) -> list[str]:
    with root_values(body, kind) as (_, found):
        return [aliases.described(root) for root in found]


def test_views_belong_to_what_they_view_and_loops_and_branches_may_give_one_of_several() -> None:
    of_view = "memref<2x2xf32, strided<[2, 1], offset: 4>>"
    assert roots(text_beside(__file__, "VIEW_OF_A_VIEW"), of_view) == ["argument %arg0"]
    assert roots(f"%v = memref.alloc() : {OF_16}") == ["%alloc of memref.alloc"]
    for loop in ("CASTS_IN_A_LOOP", "WHILE"):
        assert roots(text_beside(__file__, loop)) == ["argument %arg0"]
    body = f"{SWAP} %v = memref.cast %r#0 : {OF_16} to {OF_16}"
    assert roots(body) == ["argument %arg0", "argument %arg1"]
    for other, found in (("%a", ["argument %arg0"]), ("%b", ["argument %arg0", "argument %arg1"])):
        branches = f"{{ scf.yield %a : {OF_16} }} else {{ scf.yield {other} : {OF_16} }}"
        assert roots(f"%v = scf.if %c -> {OF_16} {branches}") == found
        assert roots(f"%v = arith.select %c, %a, {other} : {OF_16}") == found


def test_a_global_is_one_buffer_however_often_it_is_named() -> None:
    body = f"%x = memref.get_global @g : {OF_16} %v = memref.get_global @g : {OF_16}"
    with root_values(body) as (module, found):
        assert found == (walk(module, "memref.get_global")[0].results[0],)


UNKNOWN = r"%0 of func\.call: found a buffer of unknown origin, allowed allocations and views"
OF_A_BLOCK = r"argument %0 in func\.func: found a buffer, allowed scf\.for, scf\.while, scf\.if"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"%v = func.call @other(%a) : ({OF_16}) -> {OF_16}", UNKNOWN),
        (f"cf.br ^next(%a : {OF_16}) ^next(%v: {OF_16}):", OF_A_BLOCK),
    ],
)
def test_what_a_call_returns_or_another_block_takes_is_refused(body: str, reason: str) -> None:
    with pytest.raises(CandidateError, match=f"^{reason}$"):
        roots(body)
