"""Constants and globals of a program that is compiled as a whole: arguments, or data of its module."""

from collections.abc import Iterator, Mapping, Sequence

from tuner.core.device_programs import BufferType, ResidentBuffer
from tuner.core.fusions import TensorType
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.ir.memrefs import argument_attributes
from tuner.mlir.ir.reading import function_type, name_of, types_of, walk
from tuner.mlir.ir.resources import RESOURCE, Data
from tuner.mlir.programs.entry import RESOURCE_ATTRIBUTES
from tuner.models.fusions.payload import ELEMENTS, Weight

ALIGNMENT_BYTES = 8  # of data in a module, at least that of an element


def take_constants(module: ir.Module, function: Op, attribute: str = "") -> tuple[Weight, ...]:
    """Turns globals whose data follow the module into last arguments of ``function``, in place.

    Returns the globals: constants, and those that the program may write. Code then has no data of them: it is
    compiled, kept and sent without. ``attribute``: name of a unit attribute of the new arguments; "": none.

        memref.global "private" constant @w : memref<8xf32> = dense_resource<weight>
        func.func @main(%x: memref<8xf32>) -> memref<8xf32> {
          %w = memref.get_global @w : memref<8xf32>
      becomes
        func.func @main(%x: memref<8xf32>, %w: memref<8xf32>) -> memref<8xf32> {
    """
    weights: dict[str, Weight] = {}
    for op, name in _with_resources(module, "memref.global", "initial_value"):
        type_ = ir.MemRefType(ir.TypeAttr(op.attributes["type"]).value)
        if op.parent == module.operation and str(type_.element_type) in ELEMENTS:
            weights[name_of(op)] = Weight(TensorType(tuple(type_.shape), str(type_.element_type)), name)
            op.erase()
    if not weights:
        return ()
    arguments: dict[str, Value] = {}
    for use in walk(function, "memref.get_global"):
        name = ir.FlatSymbolRefAttr(use.attributes["name"]).value
        if name not in weights:
            continue
        if name not in arguments:
            arguments[name] = _add_argument(function, use.results[0].type, attribute)
        use.results[0].replace_all_uses_with(arguments[name])
        use.erase()
    return tuple(weights[name] for name in arguments)


def resident_buffers(constants: Sequence[Weight], written: Sequence[bool]) -> tuple[ResidentBuffer, ...]:
    """Returns the memory of the arguments that ``take_constants`` added; ``written``: which are written."""
    return tuple(
        ResidentBuffer(
            BufferType(constant.type.element, constant.type.shape), None, is_written=is_written, weight=number
        )
        for number, (constant, is_written) in enumerate(zip(constants, written, strict=True))
    )


def attach_data(module: ir.Module, resources: Mapping[str, Data]) -> None:
    """Gives the constants and globals of a module their data, in place; the data are not copied.

    A constant without data in ``resources`` stays as it is.
    """
    for op_name, attribute in RESOURCE_ATTRIBUTES:
        for op, name in _with_resources(module, op_name, attribute):
            if name in resources:
                type_ = op.attributes[attribute].type
                op.attributes[attribute] = ir.DenseResourceElementsAttr.get_from_buffer(
                    resources[name], name, type_, ALIGNMENT_BYTES
                )


def _with_resources(module: ir.Module, op_name: str, attribute: str) -> Iterator[tuple[Op, str]]:
    """Yields the operations whose data follow the module, each with the name of its data."""
    for op in walk(module, op_name):
        constant = op.attributes.get(attribute)
        if constant is None or isinstance(constant, ir.DenseElementsAttr):
            continue
        named = RESOURCE.match(str(constant))
        if named is not None:
            yield op, named[1]


def _add_argument(function: Op, type_: Type, attribute: str) -> Value:
    block = function.regions[0].blocks[0]
    known = [ir.DictAttr.get(argument_attributes(function, number)) for number in range(len(block.arguments))]
    argument = block.add_argument(type_, ir.Location.unknown())
    types = ir.FunctionType.get(types_of(block.arguments), function_type(function).results)
    function.attributes["function_type"] = ir.TypeAttr.get(types)
    marks = {attribute: ir.UnitAttr.get()} if attribute else {}
    if marks or "arg_attrs" in function.attributes:
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([*known, ir.DictAttr.get(marks)])
    return argument
