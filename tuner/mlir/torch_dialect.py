"""Lowers a module from torch-mlir's dialect of PyTorch to linalg, without PyTorch.

What torch-mlir makes of integers is checked here, where each operation still has the location of the node
that it comes from.
"""

import re
from typing import Any

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import torch_pass_bindings

INTEGERS = "integers "  # begins the location of a node whose tensors all have integers; its operation follows
TO_FLOATS = ("arith.sitofp", "arith.uitofp")
DIVISIONS = ("divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi")
EXACT_BITS = 16  # integers of so few bits are exact in f32, and so are their quotients' whole parts
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
    """Lowers torch-mlir's dialect to linalg, by default without locations; raises CandidateError(BIND)."""
    bindings = torch_pass_bindings()
    ir = bindings.ir
    with ir.Context() as context:
        bindings.torch.register_dialect(context)
        try:
            module = ir.Module.parse(text)
            for pipeline in PIPELINES:
                bindings.PassManager.parse(pipeline).run(module.operation)
            _replace_scans(ir, module)
        except ir.MLIRError as error:
            raise CandidateError(Stage.BIND, first_line(error)) from error
        _require_exact_integers(ir, module)
        return str(module.operation.get_asm(enable_debug_info=has_locations))


def _replace_scans(ir: Any, module: Any) -> None:
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
        rank, dim = x.type.rank, ir.IntegerAttr(scan.attributes["dimension"]).value
        whole = ir.AffineMap.get_identity(rank)
        others = [ir.AffineDimExpr.get(each) for each in range(rank) if each != dim]
        maps = (whole, whole, ir.AffineMap.get(rank, 0, others))
        kinds = ("reduction" if each == dim else "parallel" for each in range(rank))
        iterators = ", ".join(f"#linalg.iterator_type<{kind}>" for kind in kinds)
        attributes = {
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(each) for each in maps]),
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
        for result, made in zip(scan.results, new.results, strict=True):
            result.replace_all_uses_with(made)
        scan.erase()


def _require_exact_integers(ir: Any, module: Any) -> None:
    """Raises CandidateError(BIND) for integers computed as floats, and for divisors that may be 0."""
    problems: list[str] = []

    def check(op: Any) -> Any:
        place = str(op.location) if op.name in TO_FLOATS else ""
        if INTEGERS in place and ir.IntegerType(op.operands[0].type).width > EXACT_BITS:
            name = place.partition(INTEGERS)[2].partition('"')[0]
            problems.append(f"{name} would compute integers as floats")
        elif op.name.removeprefix("arith.") in DIVISIONS and not _constant(ir, op.operands[1]):
            problems.append("integers are divided by what may be 0")
        return ir.WalkResult.INTERRUPT if problems else ir.WalkResult.ADVANCE

    module.operation.walk(check)
    if problems:  # an exception of a walk's function is not passed on
        raise CandidateError(Stage.BIND, problems[0])


def _constant(ir: Any, value: Any) -> int | None:
    if isinstance(value.owner, ir.Block):  # an argument of the body of a linalg.generic: an operand's element
        operands = value.owner.owner.operation.operands
        if value.arg_number >= len(operands) or isinstance(operands[value.arg_number].owner, ir.Block):
            return None
        value = operands[value.arg_number]
    operation = value.owner.operation
    if operation.name == "arith.trunci":
        wide = _constant(ir, operation.operands[0])
        return None if wide is None else wide & ((1 << ir.IntegerType(value.type).width) - 1)
    if operation.name != "arith.constant":
        return None
    constant = operation.attributes["value"]
    if isinstance(constant, ir.DenseIntElementsAttr) and constant.is_splat:
        constant = constant.get_splat_value()
    return int(constant.value) if isinstance(constant, ir.IntegerAttr) else None


def first_line(error: BaseException) -> str:
    """Returns the first line of an error that says something, or the operation that is not lowered."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if REASON.search(line)] or lines
    line = PLACE.sub("", telling[0]) if telling else ""
    lacking = LACKING.search(line)
    if lacking:
        return f"it does not lower {lacking['unknown'] or lacking['known']}"
    return line[:LINE_LIMIT] if " " in line else f"{type(error).__name__} {line}".strip()
