"""Passes tensor maps to kernels by value: 128 bytes of parameter memory, which the TMA reads in place.

Takes outlined kernels whose tensor maps are parameters of type ``!llvm.ptr``, records which parameters these
are, and, once the kernel is an ``llvm.func``, gives them the attributes of by-value parameters
(``nvvm.grid_constant`` is not allowed on a ``gpu.func``). Kernels of programs, whose maps are in device
memory, are not recorded.

    llvm.func @k(%map: !llvm.ptr, %c: !llvm.ptr) attributes {tuner.tensor_maps = array<i64: 0>}
  becomes
    llvm.func @k(%map: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>,
      nvvm.grid_constant}, %c: !llvm.ptr)
"""

from tuner.mlir.bindings import ir
from tuner.mlir.rewrite.padded_views import argument_attributes
from tuner.mlir.rewrite.walking import walk

NOTE = "tuner.tensor_maps"  # attribute of a kernel: numbers of its parameters that are tensor maps
BY_VALUE = "{llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}"


def note_tensor_maps(module: ir.Module) -> None:
    """Records, in an attribute of each ``gpu.func``, which of its parameters are tensor maps.

    Tensor maps are the parameters of type ``!llvm.ptr``: at this stage, buffers are memrefs.
    """
    pointer = ir.Type.parse("!llvm.ptr")
    for function in walk(module, "gpu.func"):
        arguments = function.regions[0].blocks[0].arguments
        numbers = [number for number, each in enumerate(arguments) if each.type == pointer]
        if numbers:
            function.attributes[NOTE] = ir.DenseI64ArrayAttr.get(numbers)


def pass_tensor_maps_by_value(module: ir.Module) -> None:
    """Gives parameters that ``note_tensor_maps`` recorded the attributes of by-value parameters, in place.

    Takes kernels in LLVM dialect (``llvm.func``); removes the record.
    """
    by_value = {each.name: each.attr for each in ir.DictAttr(ir.Attribute.parse(BY_VALUE))}
    for function in walk(module, "llvm.func"):
        if NOTE not in function.attributes:
            continue
        count = len(function.regions[0].blocks[0].arguments)
        every = [argument_attributes(function, number) for number in range(count)]
        for number in ir.DenseI64ArrayAttr(function.attributes[NOTE]):
            every[number] |= by_value
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in every])
        del function.attributes[NOTE]
