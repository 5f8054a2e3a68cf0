"""What follows a matmul in its group, as the epilogue of a transform script: a payload's last generic."""

from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import value
from tuner.mlir.rewrite.type_sizes import is_row_major
from tuner.mlir.rewrite.walking import walk
from tuner.programs.device_groups.group_function import GroupFunction
from tuner.programs.op_groups.op_names import (
    GENERIC,
    dimensions,
    inputs_of,
    is_identity,
    is_parallel,
    maps_of,
)

ARITHMETIC = ("arith.", "math.", "linalg.yield")  # of the bodies that scripts finish stores with
RESULTS = ("f32", "f64", "f16", "bf16")  # elements that scripts store


@dataclass(frozen=True)
class MatmulEpilogue:
    """What follows the last matmul of a group: a generic, and what it reads next to the sums."""

    op: Op
    sums: int  # number of the operand that has the sums
    others: tuple[tuple[int, Value], ...]  # number of an operand, memref that has it
    output: Value  # memref


def epilogue_of(last: Op, function: GroupFunction) -> MatmulEpilogue | str:
    """Returns what follows a group's last matmul; else why it is a kernel of its own, "" for nothing."""
    tensor, output = function.outputs[0]
    sums = last.results[0]
    if tensor == sums and len(list(sums.uses)) == 1:
        return ""
    generics = function.generics
    if len(generics) != 1 or len(function.outputs) != 1 or tensor != generics[0].results[0]:
        return "the epilogue is several operations"
    op = generics[0]
    places = [number for number, each in enumerate(op.operands) if each == sums]
    if len(places) != 1 or not is_identity(maps_of(op)[places[0]]) or not all(is_parallel(op)):
        return "the epilogue reads other sums than those of its element"
    if not _is_arithmetic(op):
        return "the epilogue is more than arithmetic"
    if str(output.type.element_type) not in RESULTS or not is_plain(output):
        return f"the result is {output.type}, not rows of {', '.join(RESULTS)}"
    others = [(number, each) for number, each in enumerate(inputs_of(op)) if number != places[0]]
    for number, each in others:
        loops = dimensions(maps_of(op)[number])
        is_read = each in function.memory and is_plain(function.memory[each])
        if not is_read or not loops or list(loops) != sorted(loops):
            return "the epilogue reads what does not lie in rows"
    memory = tuple((number, function.memory[each]) for number, each in others)
    return MatmulEpilogue(op, places[0], memory, output)


def _is_arithmetic(op: Op) -> bool:
    """Returns whether a body has no other operations than arithmetic on its arguments and on constants."""
    block = op.regions[0].blocks[0]
    inner = [each.operation for each in block.operations]
    own = {result for each in inner for result in each.results} | set(block.arguments)
    outside = [each for op in inner for each in op.operands if each not in own]
    return (
        all(each.name.startswith(ARITHMETIC) and not len(each.regions) for each in inner)
        and all(_is_number(each) for each in outside)
        and not list(block.arguments[len(block.arguments) - 1].uses)
    )


def _is_number(found: Value) -> bool:
    return not isinstance(found.owner, ir.Block) and found.owner.operation.name == "arith.constant"


def is_plain(memory: Value) -> bool:
    """Returns whether a memref is row-major and begins where its buffer begins."""
    return is_row_major(memory.type)


def put_body(own: ir.Module, epilogue: MatmulEpilogue) -> None:
    """Copies the epilogue's operations to the payload's last generic, whose first argument is the sum."""
    generic = walk(own, GENERIC)[-1]
    block, source = generic.regions[0].blocks[0], epilogue.op.regions[0].blocks[0]
    given = list(source.arguments)
    order = [epilogue.sums, *(number for number, _ in epilogue.others)]
    known = {given[number]: block.arguments[at] for at, number in enumerate(order)}
    end = list(block.operations)[-1].operation
    sums = given[epilogue.sums]
    with ir.InsertionPoint(end), ir.Location.unknown():
        if sums.type != block.arguments[0].type:  # the program rounds sums before the epilogue
            known[sums] = value("arith.truncf", sums.type, block.arguments[0])
        for op in (each.operation for each in source.operations):
            operands = [_known(each, known) for each in op.operands]
            if op.name == "linalg.yield":
                end.operands[0] = operands[0]
                return
            copy = op.clone()
            for number, operand in enumerate(operands):
                copy.operands[number] = operand
            known.update(zip(op.results, copy.results, strict=True))


def _known(found: Value, known: dict[Value, Value]) -> Value:
    if found not in known:
        constant = found.owner.operation
        known[found] = value("arith.constant", found.type, value=constant.attributes["value"])
    return known[found]
