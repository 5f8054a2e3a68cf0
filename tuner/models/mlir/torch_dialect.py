"""Lowers a module from torch-mlir's dialect of PyTorch to linalg, without PyTorch.

What torch-mlir makes of integers is checked here, where each operation still has the location of the node
that it comes from. ``refused_operators`` finds the operators at fault in a module that is refused.
"""

import re
from collections.abc import Collection
from typing import Any

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import ir, passmanager, torch_dialect
from tuner.mlir.ir.reading import ARGUMENT_ATTRIBUTES, replace_results, types_of

# Begins the name in an operation's location; after it come the operator and its line of the module.
MARK = "operator "
INTEGERS = "integers "  # the same, where all its tensors have integers
MARKED = re.compile(rf'"(?:{MARK}|{INTEGERS})([^"]*)"')
TO_FLOATS = ("arith.sitofp", "arith.uitofp")
DIVISIONS = ("divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi")
EXACT_BITS = 16  # integers of so few bits are exact in f32, and so are their quotients' whole parts
FOREIGN = ("tm_tensor.", "complex.")  # dialects that nothing after torch-mlir lowers
FOLDING = "builtin.module(func.func(linalg-fuse-elementwise-ops, canonicalize))"  # of complex numbers
KEPT = ("torch.constant.", "torch.prim.", "torch.vtensor.literal", "func.return")  # never dropped
UNLOWERED = "torch-mlir does not lower it"
CONSTANT_LEFT = "failed to legalize operation 'torch.constant."  # when all other operations are lowered
MOST_ROUNDS = 12  # of lowering a module without the operators at fault
MOST_REFUSED = 12  # operators after which the search for refused ones ends
LINE_LIMIT = 300  # characters of an error of torch-mlir
REASON = re.compile(r"error:\s")  # in the line of an error that says why
PLACE = re.compile(r'(?<=error:) (callsite\(.*?\)|loc\(.*?\)|"[^"]*":\d+:\d+|unknown):')
LACKING = re.compile(
    r"failed to legalize operation 'torch\."
    r"(?:operator'.*?<\{name = \"torch\.(?P<unknown>[\w.]+)\"|(?P<known>aten[\w.]+)')"
)
PIPELINES = (
    (
        "builtin.module(func.func(torch-match-quantized-custom-ops), "
        "torchdynamo-export-to-torch-backend-pipeline{extra-library=})"
    ),
    "builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=True})",
)


def lower(text: str, *, has_locations: bool = False) -> str:
    """Returns the text of a module of torch-mlir's dialect, lowered to linalg on tensors.

    ``has_locations``: the returned text has the locations of the ops. Raises CandidateError(BIND) with the
    reason for a module that torch-mlir or tuner refuses; where tuner refuses, also with the operator and its
    source line, where the module has them.
    """
    with ir.Context() as context:
        torch_dialect().register_dialect(context)
        try:
            module = ir.Module.parse(text)
            _run_pipelines(module)
        except ir.MLIRError as error:
            raise CandidateError(Stage.BIND, first_line(error)) from error
        problems = _problems(module)
        if problems:
            operator, reason = problems[0]
            raise CandidateError(Stage.BIND, f"{operator}: {reason}" if operator else reason)
        return str(module.operation.get_asm(enable_debug_info=has_locations))


def refused_operators(
    text: str, known: Collection[str] = (), rounds: int = MOST_ROUNDS
) -> tuple[tuple[str, str], ...]:
    """Returns (operator with its place, reason) per operator that is refused, in the order they are found.

    () if none is, or ``text`` does not parse. For example ("aten.topk at m.py:7", "torch-mlir does not lower
    it"). Each time the module is refused, the results of the operators at fault become arguments of the
    function, and the rest is lowered. The search ends at a refusal that names no operator, after ``rounds``,
    or with 12 operators found. Operators in ``known``, which are refused for sure, are neither lowered nor
    returned.
    """
    refused: dict[str, str] = {}
    with ir.Context() as context:
        torch_dialect().register_dialect(context)
        try:
            module = ir.Module.parse(text)
        except ir.MLIRError:
            return ()
        if known and not _drop_operators(module, known):
            return ()
        for _ in range(rounds):
            lowered = ir.Module.parse(str(module.operation.get_asm(enable_debug_info=True)))
            reasons: dict[str, str] = {}
            for operator, reason in _why_refused(lowered):
                if operator and operator not in refused:
                    reasons.setdefault(operator, reason)
            refused |= reasons
            if not reasons or len(refused) >= MOST_REFUSED or not _drop_operators(module, reasons):
                break
    return tuple(refused.items())


def _why_refused(module: Any) -> list[tuple[str, str]]:
    try:
        _run_pipelines(module)
    except ir.MLIRError as error:
        operator_at_fault = _place(error.error_diagnostics[0].location) if error.error_diagnostics else ""
        reason = first_line(error)
        if LACKING.search(str(error)):
            reason = UNLOWERED
        if CONSTANT_LEFT in str(error):  # by an operator that no pattern matched
            return [(operator, UNLOWERED) for operator in _left_over(module)]
        return [(operator_at_fault, reason)]
    return _problems(module)


def _left_over(module: Any) -> list[str]:
    operators: list[str] = []

    def collect(op: Any) -> Any:
        if op.name.startswith(("torch.aten.", "torch.prims.", "torch.operator")):
            operators.append(_place(op.location))
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    return operators


def _run_pipelines(module: Any) -> None:
    for pipeline in PIPELINES:
        passmanager.PassManager.parse(pipeline).run(module.operation)
    _replace_scans(module)
    _replace_row_writes(module)


def _place(location: Any) -> str:
    """Returns the operator and the line in the mark of a location; "" where it has none."""
    marked = MARKED.search(str(location))
    if marked:
        return marked[1]
    return ""


def _drop_operators(module: Any, operators: Collection[str]) -> bool:
    """Makes the results of operators arguments, and erases the operators; returns whether it found any."""
    function = module.body.operations[0]
    block = function.regions[0].blocks[0]
    own = [op for op in block.operations if _place(op.location) in operators and not _is_kept(op)]
    dropped = [
        op for op in own if all(str(output.type).startswith("!torch.vtensor") for output in op.results)
    ]
    inputs = types_of(block.arguments)
    for op in dropped:
        for result in op.results:
            result.replace_all_uses_with(block.add_argument(result.type, op.location))
            inputs.append(result.type)
    for op in reversed(dropped):
        op.operation.erase()
    results = types_of(block.operations[len(block.operations) - 1].operands)
    type_ = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
    function.attributes["function_type"] = type_
    if ARGUMENT_ATTRIBUTES in function.attributes:  # one for each argument
        del function.attributes[ARGUMENT_ATTRIBUTES]
    return bool(dropped)


def _is_kept(op: Any) -> bool:
    return str(op.operation.name).startswith(KEPT)


def _replace_scans(module: Any) -> None:
    """Replaces scans of torch-mlir's own dialect, in place, by reductions that keep each step, in order.

      %r:2 = tm_tensor.scan dimension(1) inclusive(true)
        ins(%x : tensor<4x9xf64>) outs(%out, %start : tensor<4x9xf64>, tensor<4xf64>) {
      ^bb0(%a: f64, %b: f64):  // an element of %x, and what was computed before
    becomes
      %r:2 = linalg.generic ins(%x) outs(%out, %start) {  // iterators: parallel, reduction
      ^bb0(%a: f64, %_: f64, %b: f64):
    """
    scans: list[Any] = []

    def collect(op: Any) -> Any:
        if op.name == "tm_tensor.scan":
            scans.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    for scan in scans:
        x, out, start = scan.operands
        rank = x.type.rank
        dim = ir.IntegerAttr(scan.attributes["dimension"]).value
        whole = ir.AffineMap.get_identity(rank)
        others = [ir.AffineDimExpr.get(number) for number in range(rank) if number != dim]
        maps = (whole, whole, ir.AffineMap.get(rank, 0, others))
        iterator_types = ("reduction" if number == dim else "parallel" for number in range(rank))
        iterators = ", ".join(f"#linalg.iterator_type<{iterator_type}>" for iterator_type in iterator_types)
        attributes = {
            "indexing_maps": ir.ArrayAttr.get(list(map(ir.AffineMapAttr.get, maps))),
            "iterator_types": ir.Attribute.parse(f"[{iterators}]"),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 2]),
        }
        with ir.InsertionPoint(scan), scan.location:
            new = ir.Operation.create(
                "linalg.generic", [out.type, start.type], [x, out, start], attributes, regions=1
            )
        block = scan.regions[0].blocks[0]
        block.append_to(new.regions[0])
        before = block.add_argument(out.type.element_type, scan.location)
        block.arguments[1].replace_all_uses_with(before)
        end = block.operations[len(block.operations) - 1]
        with ir.InsertionPoint(end), end.location:
            ir.Operation.create("linalg.yield", [], [end.operands[0]] * 2)
        end.erase()
        replace_results(scan, new.results)
        scan.erase()


def _replace_row_writes(module: Any) -> None:
    """Replaces scatters of torch-mlir's own dialect that write rows at positions, in place.

      %r = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(true)
        ins(%rows, %at : tensor<3x1x8xf32>, tensor<3x1xi64>) outs(%x : tensor<9x8xf32>) {
      ^bb0(%new: f32, %old: f32):
        tm_tensor.yield %new : f32
      } -> tensor<9x8xf32>
    becomes
      %r = tensor.scatter %rows into %x[%at] scatter_dims([0]) unique
    """
    scatters: list[Any] = []

    def collect(op: Any) -> Any:
        if op.name == "tm_tensor.scatter" and _is_row_write(op):
            scatters.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    for scatter in scatters:
        rows, at, x = scatter.operands
        attributes = {"scatter_dims": ir.DenseI64ArrayAttr.get([0]), "unique": ir.UnitAttr.get()}
        with ir.InsertionPoint(scatter), scatter.location:
            new = ir.Operation.create("tensor.scatter", [x.type], [rows, x, at], attributes)
        replace_results(scatter, new.results)
        scatter.erase()


def _is_row_write(scatter: Any) -> bool:
    *others, end = scatter.regions[0].blocks[0].operations
    is_written = not others and end.operands[0] == scatter.regions[0].blocks[0].arguments[0]
    return is_written and list(ir.DenseI64ArrayAttr(scatter.attributes["dimension_map"])) == [0]


def _problems(module: Any) -> list[tuple[str, str]]:
    """Returns places and reasons: of what nothing lowers, and of integers that would be computed wrongly."""
    problems: list[tuple[str, str]] = []

    def check(op: Any) -> Any:
        reason = _problem(op)
        if reason:
            problems.append((_place(op.location), reason))
        return ir.WalkResult.ADVANCE

    module.operation.walk(check)
    if any(reason.startswith("it needs complex.") for _, reason in problems):
        folded = ir.Module.parse(str(module.operation.get_asm(enable_debug_info=True)))
        passmanager.PassManager.parse(FOLDING).run(folded.operation)
        problems.clear()
        folded.operation.walk(check)
    return problems


def _problem(op: Any) -> str:
    if op.name.startswith(FOREIGN) and not op.name.endswith(".yield"):
        return f"it needs {op.name}, which is not lowered"
    is_of_integers = op.name in TO_FLOATS and f'"{INTEGERS}' in str(op.location)
    if is_of_integers and ir.IntegerType(op.operands[0].type).width > EXACT_BITS:
        return "it would compute integers as floats"
    if op.name.removeprefix("arith.") in DIVISIONS and not _constant(op.operands[1]):
        return "integers are divided by what may be 0"
    return ""


def _constant(value: Any) -> int | None:
    if isinstance(value.owner, ir.Block):  # an argument of the body of a linalg.generic: an operand's element
        operands = value.owner.owner.operation.operands
        if value.arg_number >= len(operands) or isinstance(operands[value.arg_number].owner, ir.Block):
            return None
        value = operands[value.arg_number]
    operation = value.owner.operation
    if operation.name == "arith.trunci":
        wide = _constant(operation.operands[0])
        return None if wide is None else wide & ((1 << ir.IntegerType(value.type).width) - 1)
    if operation.name != "arith.constant":
        return None
    constant = operation.attributes["value"]
    if isinstance(constant, ir.DenseIntElementsAttr) and constant.is_splat:
        constant = constant.get_splat_value()
    return int(constant.value) if isinstance(constant, ir.IntegerAttr) else None


def first_line(error: BaseException) -> str:
    """Returns the reason in an error of torch-mlir, in one line of at most 300 characters.

    If that line names an operator that is not lowered, "torch-mlir does not lower <operator>".
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = list(filter(REASON.search, lines)) or lines
    line = PLACE.sub("", telling[0]) if telling else ""
    lacking = LACKING.search(line)
    if lacking:
        return f"torch-mlir does not lower {lacking['unknown'] or lacking['known']}"
    if " " in line:
        return line[:LINE_LIMIT]
    return f"{type(error).__name__} {line}".strip()
