import pytest

from tests.mlir.kernels import parsed
from tuner.core.errors import CandidateError

pytestmark = pytest.mark.mlir

launch_memory = pytest.importorskip("tuner.mlir.gpu.kernel_memory")

SHARED = "memref<16xf32, #gpu.address_space<workgroup>>"
OWN = "memref<16xf32, #gpu.address_space<private>>"
STORE = "memref.store %f, %t[%i] : {0}"


def program(launches: tuple[str, ...], outside: str = "", attributions: str = "") -> str:
    threads = (
        "blocks(%a, %b, %c) in (%u = %i, %v = %i, %w = %i) threads(%d, %e, %h) in (%x = %i, %y = %i, %z = %i)"
    )
    made = "\n".join(f"gpu.launch {threads} {attributions} {{ {body} gpu.terminator }}" for body in launches)
    return f"func.func @main(%i: index, %f: f32) {{ {outside} {made} return }}"


def declared(text: str) -> str:
    with parsed(text) as module:
        launch_memory.declare_launch_memory(module)
        assert module.operation.verify()
        return str(module)


@pytest.mark.parametrize("kind", ["alloc", "alloca"])
def test_shared_memory_of_a_launch_becomes_an_attribution(kind: str) -> None:
    body = f"%t = memref.{kind}() : {SHARED} {STORE.format(SHARED)}"
    text = declared(program((body,)))
    assert f"workgroup(%arg14 : {SHARED})" in text
    assert f"memref.{kind}" not in text


def test_private_attributions_make_package_for_shared_ones() -> None:
    body = f"%t = memref.alloc() : {SHARED} {STORE.format(SHARED)} {STORE.format(OWN).replace('%t', '%p')}"
    text = declared(program((body,), attributions=f"workgroup(%s : {SHARED}) private(%p : {OWN})"))
    assert f"workgroup(%arg14 : {SHARED}, %arg15 : {SHARED})" in text
    assert f"memref.alloca() : {OWN}" in text
    assert "private(" not in text


def test_memory_that_the_host_allocates_moves_into_each_launch_that_uses_it() -> None:
    half = "memref<8xf32, strided<[1]>, #gpu.address_space<workgroup>>"
    view = f"memref.subview %t[0] [8] [1] : {SHARED} to {half}"
    outside = f"%t = memref.alloc() : {SHARED} %part = {view} %o = memref.alloc() : {OWN}"
    part = f"memref.store %f, %part[%i] : {half}"
    bodies = (STORE.format(SHARED), part, STORE.format(OWN).replace("%t", "%o"))
    text = declared(program(bodies, outside))
    before, first, second, third = text.split("gpu.launch")
    assert "memref." not in before
    assert "workgroup(" in first
    assert "workgroup(" in second
    assert "memref.subview" in second
    assert "memref.alloca()" in third


def test_deallocations_go_with_the_memory() -> None:
    outside = f"%t = memref.alloc() : {SHARED}"
    text = program((STORE.format(SHARED),), outside).replace("return", f"memref.dealloc %t : {SHARED} return")
    assert "memref.dealloc" not in declared(text)


def test_memory_of_kernels_that_the_host_uses_is_refused() -> None:
    outside = f"%t = memref.alloc() : {SHARED} {STORE.format(SHARED)}"
    found = "found a use by memref.store outside of kernels, allowed uses in kernels"
    with pytest.raises(CandidateError, match=f"^memref.alloc at .*: {found}$"):
        declared(program((), outside))


def test_an_alignment_that_an_attribution_cannot_keep_stays_with_the_allocation() -> None:
    body = f"%t = memref.alloc() {{alignment = 1024 : i64}} : {SHARED} {STORE.format(SHARED)}"
    assert "memref.alloc() {alignment = 1024 : i64}" in declared(program((body,)))
