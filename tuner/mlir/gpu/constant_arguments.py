"""Propagates constants that every launch passes into the kernel: its views of shared memory need constants.

Takes outlined kernels; in kernels that address dynamic shared memory themselves, uses of an argument that is
the same constant in all launches become that constant. The argument stays, without uses.

    gpu.launch_func @m::@k blocks in (...) threads in (...) args(%c1024 : index)
    gpu.func @k(%shift: index) kernel {
      %tile = memref.view %block[%shift][] : ... to memref<256xf32, #gpu.address_space<workgroup>>
  becomes
    gpu.func @k(%shift: index) kernel {
      %c1024 = arith.constant 1024 : index
      %tile = memref.view %block[%c1024][] : ... to memref<256xf32, #gpu.address_space<workgroup>>
"""

from tuner.mlir.bindings import Attribute, Op, Value, ir
from tuner.mlir.gpu.custom_shared_views import DYNAMIC
from tuner.mlir.rewrite.building import value
from tuner.mlir.rewrite.definitions import op_of
from tuner.mlir.rewrite.launch_operands import ARGUMENTS, launches_of, operands
from tuner.mlir.rewrite.symbols import name_of
from tuner.mlir.rewrite.walking import walk


def propagate_constant_arguments(module: ir.Module) -> int:
    """Replaces kernel arguments that are the same constant in all launches; returns how many there were.

    Changes in place the kernels that use ``gpu.dynamic_shared_memory``, and no other kernel. The arguments
    stay, without uses.
    """
    found = 0
    for function in walk(module, "gpu.func"):
        if walk(function, DYNAMIC):
            constants = _constants(module, function)
            found += len(constants)
            for argument, number in constants:
                _bring(function, argument, number)
    return found


def _constants(module: ir.Module, function: Op) -> list[tuple[Value, Attribute]]:
    """Returns (argument, constant) of each argument that is the same constant in all launches."""
    launches = launches_of(module, name_of(function))
    passed = zip(*(map(_constant, operands(launch, ARGUMENTS)) for launch in launches), strict=True)
    arguments = function.regions[0].blocks[0].arguments
    return [
        (argument, numbers[0])
        for argument, numbers in zip(arguments, passed, strict=False)  # attributions follow the arguments
        if numbers[0] is not None and len(set(numbers)) == 1
    ]


def _bring(function: Op, argument: Value, number: Attribute) -> None:
    with function.location, ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
        argument.replace_all_uses_with(value("arith.constant", argument.type, value=number))


def _constant(passed: Value) -> Attribute | None:
    constant = op_of(passed, "arith.constant")
    return None if constant is None else constant.attributes["value"]
