"""The transform op ``tuner.set_aside_epilogue``."""

from tuner.core.errors import Refusal
from tuner.gpu.ir.scalar_epilogues import ARGUMENT, DIMENSIONS, SUFFIX
from tuner.mlir.bindings import Block, Op, Value, ir
from tuner.mlir.dialect import InPlaceOp
from tuner.mlir.ir.building import create
from tuner.mlir.ir.memrefs import retype_argument, sync_function_type
from tuner.mlir.ir.reading import name_of, op_of, ops_in, private_function, walk

ELEMENTWISE = ("arith.", "math.", "linalg.yield")


class SetAsideEpilogueOp(InPlaceOp, name="set_aside_epilogue"):
    """``tuner.set_aside_epilogue``: sets the epilogue of a reduction aside until results are stored.

    Takes a function ``@f`` on tensors with a reduction and an elementwise ``linalg.generic`` on its result.
    Gives the reduction alone, which writes its sums to the output argument, and the epilogue as a private
    scalar function ``@f_epilogue``. The output has the sums' element type until ``tuner.finish_stores``. An
    epilogue that reads the output's element has it as its last argument.

        %sums = linalg.matmul ins(...) outs(%cleared : tensor<15x30xf32>) -> tensor<15x30xf32>
        %result = linalg.generic {...} ins(%sums, %bias : ...) outs(%out : tensor<15x30xf32>) {
          %shifted = arith.addf %sum, %shift : f32
        bufferization.materialize_in_destination %result in restrict writable %c : ...
      becomes
        %sums = linalg.matmul ins(...) outs(%cleared : tensor<15x30xf32>) -> tensor<15x30xf32>
        bufferization.materialize_in_destination %sums in restrict writable %c : ...
        func.func private @f_epilogue(%sum: f32, %shift: f32 {tuner.argument = 2 : i64, ...}) -> f32 {
          %shifted = arith.addf %sum, %shift : f32

    The handle (a func.func) stays valid; handles to the generic do not. Silenceable failure, with nothing
    changed: no such generic, a generic with an operand that is neither the sum nor a function argument, or a
    product that does not start from a linalg.fill.
    """

    def change(self, function: Op) -> Refusal | None:
        generic = next(filter(_is_epilogue, walk(function, "linalg.generic")), None)
        if generic is None:
            return Refusal("found no elementwise linalg.generic that consumes another linalg op")
        inputs = list(generic.operands)[1:]
        if any(_argument_of(input_) is None for input_ in inputs):
            return Refusal("an operand is computed before the epilogue; operands must be arguments")
        product = generic.operands[0]
        output = list(generic.operands)[-1]
        start = list(product.owner.operands)[-1].owner
        if isinstance(start, ir.Block) or start.name != "linalg.fill":
            return Refusal("the product does not start from a linalg.fill")
        _make_scalar_function(function, generic)
        # the output has the type of the sums until ``tuner.finish_stores`` applies the epilogue
        sums = ir.RankedTensorType(product.type)
        argument = _argument_of(output)
        assert argument is not None
        retype_argument(argument, sums.element_type)
        sync_function_type(function)
        output.set_type(ir.RankedTensorType.get(sums.shape, sums.element_type))
        empty = list(start.operands)[-1].owner
        start.operands[len(start.operands) - 1] = output
        generic.results[0].replace_all_uses_with(product)
        generic.erase()
        if empty.name == "tensor.empty" and not list(empty.results[0].uses):
            empty.operation.erase()
        return None


def _is_epilogue(generic: Op) -> bool:
    product = generic.operands[0]
    is_parallel = all(
        "parallel" in str(iterator) for iterator in ir.ArrayAttr(generic.attributes["iterator_types"])
    )
    body = [op.operation.name for op in generic.regions[0].blocks[0].operations]
    return (
        is_parallel
        and len(generic.results) == 1
        and not isinstance(product.owner, ir.Block)
        and product.owner.name.startswith("linalg.")
        and all(name.startswith(ELEMENTWISE) for name in body)
    )


def _argument_of(tensor: Value) -> Value | None:
    read = op_of(tensor, "bufferization.to_tensor")
    if read is None or not isinstance(read.operands[0].owner, ir.Block):
        return None
    return read.operands[0]


def _make_scalar_function(function: Op, generic: Op) -> None:
    body = generic.regions[0].blocks[0]
    inputs = list(generic.operands)[1:]
    reads_output = bool(list(body.arguments[len(inputs)].uses))
    if not reads_output:
        inputs.pop()
    maps = [attribute.value for attribute in ir.ArrayAttr(generic.attributes["indexing_maps"])]
    sums = ir.RankedTensorType(generic.operands[0].type).element_type
    result = body.operations[len(body.operations) - 1].operands[0].type
    types = [sums, *(ir.RankedTensorType(input_.type).element_type for input_ in inputs)]
    attributes = [ir.DictAttr.get({})]
    for operand, mapping in zip(inputs, maps[1 : len(inputs) + 1], strict=True):
        source = _argument_of(operand)
        assert source is not None
        # which dimensions of C index the argument
        positions = [ir.AffineDimExpr(index).position for index in mapping.results]
        i64 = ir.IntegerType.get_signless(64)
        number = ir.IntegerAttr.get(i64, ir.BlockArgument(source).arg_number)
        attributes.append(
            ir.DictAttr.get({ARGUMENT: number, DIMENSIONS: ir.DenseI64ArrayAttr.get(positions)})
        )
    with function.location, ir.InsertionPoint.after(function):
        type_ = ir.FunctionType.get(types, [result])
        name = name_of(function) + SUFFIX
        scalar = private_function(name, type_, arg_attrs=ir.ArrayAttr.get(attributes))
        block = scalar.regions[0].blocks.append(*types)
        with ir.InsertionPoint(block):
            _copy_body(body, list(block.arguments))


def _copy_body(body: Block, arguments: list[Value]) -> None:
    known = dict(zip(list(body.arguments)[: len(arguments)], arguments, strict=True))
    for op in ops_in(body):
        operands = []
        for operand in op.operands:
            if operand not in known:  # constants defined outside the body are cloned into the function
                known[operand] = operand.owner.clone().results[0]
            operands.append(known[operand])
        if op.name == "linalg.yield":
            create("func.return", [], operands)
            return
        copy = op.clone()
        for index, operand in enumerate(operands):
            copy.operands[index] = operand
        known.update(zip(op.results, copy.results, strict=True))
