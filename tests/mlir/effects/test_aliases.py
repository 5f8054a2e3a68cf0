"""What memory may be the same: aliases of an allocation, alias sets, and the roots of views."""

from typing import Any

import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.mlir.effects import aliases
from tuner.mlir.ir import reading
from tuner.mlir.ir.reading import walk

M = "memref<4xf32>"
BITS = "!llvm.struct<(i64, i64)>"
ADDRESS = f"%n = memref.extract_aligned_pointer_as_index %x : {M} -> index"
KERNEL = """gpu.module @m {{ gpu.func @k(%p: memref<4xf32>, %box: memref<index>) kernel {{
  %n = memref.extract_aligned_pointer_as_index %p : memref<4xf32> -> index
  {body}
  gpu.return
}} }}"""
MODULE = text_beside(__file__, "MODULE")
# What the body of @f does with the memory %x -> the ops that use its address or what was made of it.
USERS = {
    "a view's sizes are no address": (
        "%b, %o, %size, %stride = memref.extract_strided_metadata %x",
        f": {M} -> memref<f32>, index, index, index",
        "%l = memref.load %b[] : memref<f32> %s = arith.addi %size, %size : index",
        "memref.extract_strided_metadata memref.load",
    ),
    "what was loaded is no address": (
        "%i = memref.alloc() : memref<4xindex>",
        f"%l = memref.load %x[%a] : {M} %s = arith.addf %l, %l : f32",
        "memref.load",
    ),
    "arithmetic": (
        ADDRESS,
        "%s = arith.addi %n, %a : index",
        "arith.addi memref.extract_aligned_pointer_as_index",
    ),
    "a vector": (
        ADDRESS,
        "%v = vector.broadcast %n : index to vector<2xindex>",
        "%s = vector.extract %v[0] : index from vector<2xindex>",
        "memref.extract_aligned_pointer_as_index vector.broadcast vector.extract",
    ),
    "a number of 64 bits": (
        ADDRESS,
        "%w = arith.index_cast %n : index to i64 %d = arith.bitcast %w : i64 to f64",
        "%s = arith.select %flag, %d, %d : f64 %r = arith.bitcast %s : f64 to i64",
        "arith.bitcast arith.bitcast arith.index_cast arith.select memref.extract_aligned_pointer_as_index",
    ),
    "a struct": (
        f"%u = llvm.mlir.undef : {BITS} %st = builtin.unrealized_conversion_cast %x : {M} to !llvm.ptr",
        f"%w = llvm.ptrtoint %st : !llvm.ptr to i64 %in = llvm.insertvalue %w, %u[1] : {BITS}",
        "builtin.unrealized_conversion_cast llvm.insertvalue llvm.ptrtoint",
    ),
    "a tuple": (
        f"%tu = builtin.unrealized_conversion_cast %x : {M} to tuple<{M}>",
        f"%y = builtin.unrealized_conversion_cast %tu : tuple<{M}> to {M} %l = memref.load %y[%a] : {M}",
        "builtin.unrealized_conversion_cast builtin.unrealized_conversion_cast memref.load",
    ),
    "a region that is not known": (
        ADDRESS,
        "%r = scf.execute_region -> index { cf.br ^bb1(%n : index) ^bb1(%z: index): scf.yield %z : index }",
        "%s = arith.addi %r, %a : index",
        "arith.addi cf.br memref.extract_aligned_pointer_as_index scf.yield",
    ),
    "the bound of a loop": (
        ADDRESS,
        "scf.for %i = %n to %n step %a { %s = arith.addi %i, %a : index }",
        "arith.addi memref.extract_aligned_pointer_as_index scf.for",
    ),
}
KEPT = {
    "an address": f"{ADDRESS} memref.store %n, %box[] : memref<index>",
    "a sum": f"{ADDRESS} %s = arith.addi %n, %a : index memref.store %s, %box[] : memref<index>",
    "a memref": f"%b = memref.alloc() : memref<{M}> memref.store %x, %b[] : memref<{M}>",
    "machine code": f"%p = builtin.unrealized_conversion_cast %x : {M} to !llvm.ptr "
    'llvm.inline_asm has_side_effects "keep $0", "l" %p : (!llvm.ptr) -> ()',
    "machine code of a GPU": f"{ADDRESS} %w = arith.index_cast %n : index to i64 "
    'nvvm.inline_ptx "st.global.b64 [$0], $1;" ro (%w, %w : i64, i64)',
    "a scatter": f"{ADDRESS} %v = vector.broadcast %n : index to vector<2xindex> "
    "%w = arith.index_cast %v : vector<2xindex> to vector<2xi64> %p = llvm.inttoptr %w : vector<2xi64> to "
    "vector<2x!llvm.ptr> %m = vector.broadcast %flag : i1 to vector<2xi1> "
    "llvm.intr.masked.scatter %w, %p, %m {alignment = 8 : i32} : vector<2xi64>, vector<2xi1> into "
    "vector<2x!llvm.ptr>",
    "a second output": ADDRESS
    + " linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}"
    " outs(%box, %box : memref<index>, memref<index>)"
    " { ^bb0(%o: index, %q: index): linalg.yield %a, %n : index, index }",
    "a fill": f"{ADDRESS} linalg.fill ins(%n : index) outs(%box : memref<index>)",
    "an unknown function": f"call @other(%x) : ({M}) -> ()",
}
NOT_KEPT = {
    "as an index": f"{ADDRESS} %s = memref.load %many[%n] : memref<?xf32>",
    "at an address": f"{ADDRESS} memref.store %one, %many[%n] : memref<?xf32>",
    "printed": f"%u = memref.cast %x : {M} to memref<*xf32> call @printMemrefF32(%u) : (memref<*xf32>) -> ()",
}


def of_first_allocation(*lines: str, more: str = "") -> tuple[set[str], list[str], bool]:
    """Returns the values that may hold the first gpu.alloc of @f, its users, and whether memory may."""
    body = "\n".join(lines)
    with parsed(MODULE.replace("MORE", more).replace("BODY", body)) as module:
        found = aliases.aliases_of(reading.walk(module, "gpu.alloc")[0].results[0])
        names = {each.get_name() for each in found.values}
        return names, sorted(user.name for user in found.users), found.is_kept


def test_views_branches_and_loops_hand_memory_on() -> None:
    values, users, _ = of_first_allocation(
        f"%x = gpu.alloc () : {M}",
        f"%s = arith.select %flag, %x, %g : {M}",
        f"%r = scf.for %i = %a to %a step %a iter_args(%p = %s) -> ({M}) {{",
        f"  %c = memref.cast %p : {M} to memref<?xf32>",
        f"  scf.yield %g : {M}",
        "}",
    )
    assert len(values) == 5  # %x, %s, %p, %c, %r
    assert users == ["arith.select", "memref.cast", "scf.for"]


@pytest.mark.parametrize("way", USERS)
def test_an_address_is_followed_through(way: str) -> None:
    *lines, expected = USERS[way]
    _, users, is_kept = of_first_allocation(f"%x = gpu.alloc () : {M}", *lines)
    assert users == expected.split()
    assert not is_kept


@pytest.mark.parametrize("way", [*KEPT, *NOT_KEPT])
def test_an_address_is_kept_only_where_it_is_stored(way: str) -> None:
    assert of_first_allocation(f"%x = gpu.alloc () : {M}", (KEPT | NOT_KEPT)[way])[2] is (way in KEPT)


@pytest.mark.parametrize(
    "body", ["memref.store %n, %box[] : memref<index>", "%s = arith.addi %n, %n : index"]
)
def test_a_kernel_keeps_what_it_stores(body: str) -> None:
    launch = f"""gpu.launch_func @m::@k blocks in (%a, %a, %a) threads in (%a, %a, %a)
      args(%x : {M}, %box : memref<index>)"""
    kernel = KERNEL.format(body=body)
    assert of_first_allocation(f"%x = gpu.alloc () : {M}", launch, more=kernel)[2] is ("store" in body)


def test_work_uses_memory_until_its_token_is_waited_for() -> None:
    copy = (
        *("%t0 = gpu.wait async", f"%x, %t1 = gpu.alloc async [%t0] () : {M}"),
        *(f"%t2 = gpu.memcpy async [%t1] %x, %g : {M}, {M}", "%t3 = gpu.wait async [%t2]", "gpu.wait [%t3]"),
    )
    assert of_first_allocation(*copy)[1] == ["gpu.memcpy", "gpu.wait", "gpu.wait"]
    launch = (
        f"%x = gpu.alloc () : {M}",
        "%t = gpu.launch async blocks(%b0, %b1, %b2) in (%g0 = %a, %g1 = %a, %g2 = %a)",
        "  threads(%t0, %t1, %t2) in (%s0 = %a, %s1 = %a, %s2 = %a) {",
        *(f"  memref.store %one, %x[%t0] : {M}", "  gpu.terminator", "}", "gpu.wait [%t]"),
    )
    assert of_first_allocation(*launch)[1] == ["gpu.wait", "memref.store"]


def test_memrefs_are_found_behind_what_was_made_of_them() -> None:
    with parsed(text_beside(__file__, "POINTERS")) as module:
        pointer, elsewhere = [op.results[0] for op in reading.walk(module, "llvm.inttoptr")]
        behind = {each.get_name() for each in aliases.buffers_behind(pointer)}
        assert behind == {"%arg0", "%arg1"}
        assert [aliases.is_from_elsewhere(each) for each in (pointer, elsewhere)] == [False, True]


def test_both_directions_are_one_relation() -> None:
    """Whatever a memref is handed on to, forwards, has this memref behind it, backwards."""
    with parsed(text_beside(__file__, "HANDED_ON")) as module:
        memory = reading.walk(module, "gpu.alloc")[0].results[0]
        held = aliases.aliases_of(memory).values - {memory}
        assert len(held) == 8  # %n, both %w, %r#1, %s, %i, %c, %t; neither %k nor %r#0
        assert all(aliases.buffers_behind(each) == (memory,) for each in held)


OF_16 = "memref<16xf32>"
OF_SETS = text_beside(__file__, "OF_SETS")
SWAP = f"""%r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %b) -> ({OF_16}, {OF_16}) {{
      scf.yield %y, %x : {OF_16}, {OF_16}
    }}"""


def numbers(body: str) -> tuple[list[int], int]:
    """Returns the alias sets of the three arguments, and how many memrefs are known."""
    with parsed(OF_SETS.replace("BODY", body)) as module:
        function = module.body.operations[0].operation
        found = aliases.AliasSets(function)
        arguments = list(function.regions[0].blocks[0].arguments)[:3]
        return [found.of(argument) for argument in arguments], len(list(aliases.buffers_of(function)))


def test_buffers_are_alias_sets_of_one_until_a_loop_swaps_them_or_a_choice_mixes_them() -> None:
    assert numbers("") == ([0, 1, 2], 3)
    (a, b, c), known = numbers(SWAP)
    assert a == b != c
    assert known == 3 + 2 + 2
    (a, b, c), _ = numbers(f"{SWAP} %s = arith.select %flag, %r#0, %c : {OF_16}")
    assert a == b == c


def test_members_of_an_alias_set_of_several_are_no_singletons() -> None:
    with parsed(OF_SETS.replace("BODY", SWAP)) as module:
        function = module.body.operations[0].operation
        found = aliases.AliasSets(function)
        a, _, c = list(function.regions[0].blocks[0].arguments)[:3]
        assert (found.is_singleton(a), found.is_singleton(c)) == (False, True)
        result = walk(module, "scf.for")[0].results[0]
        assert len(found.roots_of(result)) == 2
        assert found.knows(result)


def test_what_is_inside_of_other_operations_is_not_walked() -> None:
    inner = f"scf.parallel (%i) = (%c0) to (%n) step (%c1) {{ %t = memref.alloc() : {OF_16} }}"
    assert numbers(inner)[1] == 3
    assert numbers(f"scf.if %flag {{ %t = memref.alloc() : {OF_16} }}")[1] == 4


def test_a_buffer_belongs_to_the_block_that_made_it() -> None:
    with parsed(OF_SETS.replace("BODY", f"scf.if %flag {{ %t = memref.alloc() : {OF_16} }}")) as module:
        function = module.body.operations[0].operation
        outer, branch = function.regions[0].blocks[0], walk(module, "scf.if")[0].regions[0].blocks[0]
        assert aliases.block_of(outer.arguments[0]) == outer
        assert aliases.block_of(walk(module, "memref.alloc")[0].results[0]) == branch


OF_ROOTS = text_beside(__file__, "OF_ROOTS")


def roots(body: str, kind: str = OF_16) -> list[str]:
    """Returns the names of the roots of %v, which the body defines."""
    with parsed(OF_ROOTS.replace("BODY", body).replace("VTYPE", kind)) as module:
        found = aliases.roots_of(_used(module))
        return [aliases.described(root) for root in found]


def _used(module: Any) -> Any:
    return walk(module, "func.call")[-1].operands[0]


LOOP = "%v{more} = scf.for %i = %c0 to %n step %c1 iter_args({carried}) -> ({types}) {{ {body} }}"


def test_views_belong_to_what_they_are_views_of_and_an_allocation_to_itself() -> None:
    row, kind = "memref<4xf32, strided<[1], offset: 4>>", "memref<2x2xf32, strided<[2, 1], offset: 4>>"
    body = f"""%s = memref.subview %a[4] [4] [1] : {OF_16} to {row}
    %v = memref.expand_shape %s [[0, 1]] output_shape [2, 2] : {row} into {kind}"""
    assert roots(body, kind) == ["argument %arg0"]
    assert roots(f"%v = memref.alloc() : {OF_16}") == ["%alloc of memref.alloc"]


def test_loops_are_followed_and_one_that_swaps_two_buffers_may_give_either() -> None:
    cast = f"memref.cast %x : {OF_16} to memref<?xf32> %t = memref.cast %s : memref<?xf32> to {OF_16}"
    inner = f"%s = {cast} scf.yield %t : {OF_16}"
    assert roots(LOOP.format(more="", carried="%x = %a", types=OF_16, body=inner)) == ["argument %arg0"]
    carried, types = "%x = %a, %y = %b", f"{OF_16}, {OF_16}"
    loop = LOOP.format(more=":2", carried=carried, types=types, body=f"scf.yield %y, %x : {types}")
    body = loop.replace("%v:2", "%w:2") + f" %v = memref.cast %w#0 : {OF_16} to {OF_16}"
    assert roots(body) == ["argument %arg0", "argument %arg1"]
    assert roots(text_beside(__file__, "WHILE")) == ["argument %arg0"]


def test_a_global_is_one_buffer_however_often_it_is_named() -> None:
    body = f"%x = memref.get_global @g : {OF_16} %v = memref.get_global @g : {OF_16}"
    with parsed(OF_ROOTS.replace("BODY", body).replace("VTYPE", OF_16)) as module:
        first = walk(module, "memref.get_global")[0]
        assert aliases.roots_of(_used(module)) == (first.results[0],)


@pytest.mark.parametrize(
    ("otherwise", "found"), [("%a", ["argument %arg0"]), ("%b", ["argument %arg0", "argument %arg1"])]
)
def test_branches_may_yield_different_buffers(otherwise: str, found: list[str]) -> None:
    body = (
        f"%v = scf.if %c -> {OF_16} {{ scf.yield %a : {OF_16} }} else {{ scf.yield {otherwise} : {OF_16} }}"
    )
    assert roots(body) == found
    assert roots(f"%v = arith.select %c, %a, {otherwise} : {OF_16}") == found


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            f"%v = func.call @other(%a) : ({OF_16}) -> {OF_16}",
            r"%0 of func\.call: found a buffer of unknown origin, allowed allocations and views",
        ),
        (
            f"cf.br ^next(%a : {OF_16}) ^next(%v: {OF_16}):",
            r"argument %0 in func\.func: found a buffer, allowed scf\.for, scf\.while, scf\.if",
        ),
    ],
)
def test_what_a_call_returns_or_another_block_takes_is_refused(body: str, reason: str) -> None:
    with pytest.raises(CandidateError, match=f"^{reason}$"):
        roots(body)
