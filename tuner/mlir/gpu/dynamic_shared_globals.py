"""Replaces a shared-memory global of no elements, CUDA's idiom for dynamic shared memory, by a view of it.

Takes outlined kernels. Otherwise LLVM would print such a global as static memory of which the kernel owns no
byte, and the next symbol would overlap it.

    memref.global "private" @all : memref<0xf16, #gpu.address_space<workgroup>>
    %all = memref.get_global @all : memref<0xf16, #gpu.address_space<workgroup>>
  becomes
    %block = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %all = memref.view %block[%c0][] : ... to memref<0xf16, #gpu.address_space<workgroup>>
"""

from tuner.mlir.bindings import Op, Type, ir
from tuner.mlir.gpu.custom_shared_views import BLOCK_TYPE, DYNAMIC
from tuner.mlir.rewrite.building import index, value
from tuner.mlir.rewrite.type_sizes import is_workgroup
from tuner.mlir.rewrite.walking import walk


def use_dynamic_shared_globals(module: ir.Module) -> None:
    """Replaces shared-memory globals without elements by dynamic shared memory in all kernels, in place.

    Such a global (``memref<0xf16, #gpu.address_space<workgroup>>``) is CUDA's ``extern __shared__``. Its uses
    become views of ``gpu.dynamic_shared_memory`` at offset 0; the globals are erased.
    """
    for holder in walk(module, "gpu.module"):
        for get in walk(holder, "memref.get_global"):
            if _is_dynamic(get.results[0].type):
                _use_block(get)
        for each in walk(holder, "memref.global"):
            if _is_dynamic(ir.TypeAttr(each.attributes["type"]).value):
                each.erase()


def _use_block(get: Op) -> None:
    memory = get.results[0]
    with get.location, ir.InsertionPoint(get):
        block = value(DYNAMIC, ir.Type.parse(BLOCK_TYPE))
        memory.replace_all_uses_with(value("memref.view", memory.type, block, index(0)))
    get.erase()


def _is_dynamic(memref: Type) -> bool:
    return is_workgroup(memref) and 0 in memref.shape
