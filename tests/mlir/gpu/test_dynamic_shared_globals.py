import pytest

from tests.mlir.documented_ir import missing
from tests.mlir.kernels import parsed

pytestmark = pytest.mark.mlir

dynamic_shared_globals = pytest.importorskip("tuner.mlir.gpu.dynamic_shared_globals")

SPACE = "#gpu.address_space<workgroup>"
TEXT = f"""
gpu.module @kernels {{
  memref.global "private" @all : memref<0xf16, {SPACE}>
  memref.global "private" @tile : memref<4xf16, {SPACE}>
  gpu.func @k(%i: index) kernel {{
    %all = memref.get_global @all : memref<0xf16, {SPACE}>
    %tile = memref.get_global @tile : memref<4xf16, {SPACE}>
    %rows = memref.reinterpret_cast %all to offset: [0], sizes: [8, 8], strides: [8, 1]
      : memref<0xf16, {SPACE}> to memref<8x8xf16, {SPACE}>
    %x = memref.load %rows[%i, %i] : memref<8x8xf16, {SPACE}>
    memref.store %x, %tile[%i] : memref<4xf16, {SPACE}>
    gpu.return
  }}
}}"""


def test_a_global_of_no_elements_is_the_start_of_dynamic_shared_memory() -> None:
    with parsed(TEXT) as module:
        dynamic_shared_globals.use_dynamic_shared_globals(module)
        assert module.operation.verify()
        text = str(module)
    assert "@all" not in text
    assert text.count("@tile") == 2
    assert text.count("gpu.dynamic_shared_memory") == 1


def test_the_ir_in_its_documentation_is_what_happens() -> None:
    with parsed(TEXT) as module:
        before = str(module)
        dynamic_shared_globals.use_dynamic_shared_globals(module)
        assert missing(dynamic_shared_globals.__doc__ or "", before, str(module)) == []


def test_how_much_of_it_a_kernel_uses_is_not_known() -> None:
    from tuner.mlir.gpu.own_shared_views import own_shared_views
    from tuner.mlir.rewrite.walking import walk

    with parsed(TEXT) as module:
        dynamic_shared_globals.use_dynamic_shared_globals(module)
        views = own_shared_views(walk(module, "gpu.func")[0])
    assert views.bytes == 0
    assert "memref.view" in views.unbounded
