import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.mlir.effects import aliases
from tuner.mlir.ir import reading

pytestmark = pytest.mark.mlir


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
    text = MODULE.replace("MORE", more).replace("BODY", body)
    with parsed(text) as module:
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
    lines = (KEPT | NOT_KEPT)[way]
    assert of_first_allocation(f"%x = gpu.alloc () : {M}", lines)[2] is (way in KEPT)


@pytest.mark.parametrize(
    "body", ["memref.store %n, %box[] : memref<index>", "%s = arith.addi %n, %n : index"]
)
def test_a_kernel_keeps_what_it_stores(body: str) -> None:
    launch = f"""gpu.launch_func @m::@k blocks in (%a, %a, %a) threads in (%a, %a, %a)
      args(%x : {M}, %box : memref<index>)"""
    kernel = KERNEL.format(body=body)
    assert of_first_allocation(f"%x = gpu.alloc () : {M}", launch, more=kernel)[2] is ("store" in body)


def test_work_uses_memory_until_its_token_is_waited_for() -> None:
    _, users, _ = of_first_allocation(
        "%t0 = gpu.wait async",
        f"%x, %t1 = gpu.alloc async [%t0] () : {M}",
        f"%t2 = gpu.memcpy async [%t1] %x, %g : {M}, {M}",
        "%t3 = gpu.wait async [%t2]",
        "gpu.wait [%t3]",
    )
    assert users == ["gpu.memcpy", "gpu.wait", "gpu.wait"]


def test_a_kernel_with_a_body_uses_memory_until_its_token_is_waited_for() -> None:
    _, users, _ = of_first_allocation(
        f"%x = gpu.alloc () : {M}",
        "%t = gpu.launch async blocks(%b0, %b1, %b2) in (%g0 = %a, %g1 = %a, %g2 = %a)",
        "  threads(%t0, %t1, %t2) in (%s0 = %a, %s1 = %a, %s2 = %a) {",
        f"  memref.store %one, %x[%t0] : {M}",
        "  gpu.terminator",
        "}",
        "gpu.wait [%t]",
    )
    assert users == ["gpu.wait", "memref.store"]


def test_memrefs_are_found_behind_what_was_made_of_them() -> None:
    text = text_beside(__file__, "POINTERS")
    with parsed(text) as module:
        pointer, elsewhere = [op.results[0] for op in reading.walk(module, "llvm.inttoptr")]
        behind = {each.get_name() for each in aliases.buffers_behind(pointer)}
        assert behind == {"%arg0", "%arg1"}
        assert [aliases.is_from_elsewhere(each) for each in (pointer, elsewhere)] == [False, True]


def test_both_directions_are_one_relation() -> None:
    """Whatever a memref is handed on to, forwards, has this memref behind it, backwards."""
    text = text_beside(__file__, "HANDED_ON")
    with parsed(text) as module:
        memory = reading.walk(module, "gpu.alloc")[0].results[0]
        held = aliases.aliases_of(memory).values - {memory}
        assert len(held) == 8  # %n, both %w, %r#1, %s, %i, %c, %t; neither %k nor %r#0
        assert all(aliases.buffers_behind(each) == (memory,) for each in held)
