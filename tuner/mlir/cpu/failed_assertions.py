"""Makes a function return the text of the first assertion that fails, in place of ending the process.

Upstream lowers ``cf.assert`` to calls of ``puts`` and of ``abort``. In a program that somebody's process has
loaded, a wrong index of a gather would end that process.

    llvm.func @fusion(%a: !llvm.ptr) {
      llvm.cond_br %is_inside, ^fine, ^failed
    ^failed:
      llvm.call @puts(%text) : (!llvm.ptr) -> ()
      llvm.call @abort() : () -> ()
      llvm.unreachable
    ^fine:
      llvm.return
  becomes
    llvm.func @fusion(%a: !llvm.ptr) -> !llvm.ptr {
      llvm.cond_br %is_inside, ^fine, ^failed
    ^failed:
      llvm.return %text : !llvm.ptr
    ^fine:
      %none = llvm.mlir.zero : !llvm.ptr
      llvm.return %none : !llvm.ptr

Memory that the function allocates is freed at each return.

A program that is compiled as a whole returns values already, and its caller can free what it allocated. There
``leave_at_failed_assertions`` keeps the call of ``puts``, by which the caller gets the text.
"""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.building import create, value
from tuner.mlir.ir.reading import ops_in, walk

CALL = "llvm.call"
RETURN = "llvm.return"
PUTS = "puts"
ABORT = "abort"
ALLOCATE = "malloc"
FREE = "free"


def return_failed_assertions(module: ir.Module, entry: str) -> bool:
    """Makes ``entry`` return its first failed assertion's text (else null) instead of aborting, in place.

    Takes a module in LLVM dialect. Returns whether ``entry`` has assertions. Raises CandidateError(COMPILE)
    for an assertion in another function, and for an ``entry`` with assertions that allocates memory outside
    of its first block.
    """
    ends = [call for call in walk(module, CALL) if _callee(call) == ABORT]
    if not ends:
        return False
    function = next(op.operation for op in module.body.operations if _symbol(op) == entry)
    calls = walk(function, CALL)
    if len([call for call in calls if _callee(call) == ABORT]) != len(ends):
        raise CandidateError(Stage.COMPILE, "an assertion in a function that a fusion calls")
    allocated = [call.results[0] for call in calls if _callee(call) == ALLOCATE]
    first = function.regions[0].blocks[0]
    if any(allocation.owner.operation.block != first for allocation in allocated):
        raise CandidateError(Stage.COMPILE, "an assertion next to memory that is allocated in a loop")
    for call in calls:
        if _callee(call) == FREE:
            call.erase()
    for return_op in walk(function, RETURN):
        with return_op.location, ir.InsertionPoint(return_op):
            _return(allocated, value("llvm.mlir.zero", ir.Type.parse("!llvm.ptr")))
        return_op.erase()
    for end in ends:
        ops = ops_in(end.block)
        printing = next(op for op in ops if op.name == CALL and _callee(op) == PUTS)
        with end.location, ir.InsertionPoint(end):
            _return(allocated, printing.operands[0])
        for op in (ops[-1], end, printing):
            op.erase()
    arguments = str(function.attributes["function_type"].value).partition("(")[2].rpartition(")")[0]
    type_ = ir.Type.parse(f"!llvm.func<ptr ({arguments})>")
    function.attributes["function_type"] = ir.TypeAttr.get(type_)
    for declaration in [op.operation for op in module.body.operations if _symbol(op) in (PUTS, ABORT)]:
        declaration.erase()
    return True


def leave_at_failed_assertions(module: ir.Module, entry: str) -> None:
    """Makes ``entry`` of a module in LLVM dialect return zeros after a failed assertion, in place.

    The text of the assertion is printed by ``puts`` before. An assertion in another function, or in a
    function that never returns, still calls ``abort``.
    """
    function = next(op.operation for op in module.body.operations if _symbol(op) == entry)
    returns = walk(function, RETURN)
    for end in [call for call in walk(function, CALL) if returns and _callee(call) == ABORT]:
        unreachable = list(end.block.operations)[-1].operation
        with end.location, ir.InsertionPoint(end):
            zeros = [value("llvm.mlir.zero", operand.type) for operand in returns[0].operands]
            create(RETURN, (), zeros)
        for op in (unreachable, end):
            op.erase()
    if not any(_callee(call) == ABORT for call in walk(module, CALL)):
        for declaration in [op.operation for op in module.body.operations if _symbol(op) == ABORT]:
            declaration.erase()


def _return(allocated: list[Value], text: Value) -> None:
    for allocation in allocated:
        create(
            CALL,
            (),
            [allocation],
            callee=ir.FlatSymbolRefAttr.get(FREE),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 0]),
            op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
        )
    create(RETURN, (), [text])


def _callee(call: Op) -> str:
    if "callee" in call.attributes:
        return str(call.attributes["callee"].value)
    return ""


def _symbol(op: Op) -> str:
    if "sym_name" in op.attributes:
        return str(op.attributes["sym_name"].value)
    return ""
