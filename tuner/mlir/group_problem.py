"""A group of operations as a problem: canonical text, sizes and element type."""

from math import prod

from tuner.core.element_types import NUMBER_TYPES
from tuner.core.errors import CandidateError, UsageError
from tuner.core.group_facts import facts_of
from tuner.core.grouped_program import ATTENTION, CONTRACTION, CONVOLUTION, ELEMENTWISE, LOOPS, ROWS, OpGroup
from tuner.core.problem import Problem
from tuner.mlir.bindings import Op, ir
from tuner.mlir.group_form import annotate_facts, contractions, group_function, loop_extents, parse_group
from tuner.mlir.rewrite.convolution_forms import LAYOUTS, convolution_form
from tuner.mlir.rewrite.integer_products import is_unsigned

KINDS = (CONTRACTION, CONVOLUTION, ATTENTION, ROWS, ELEMENTWISE)  # of groups that a shipped strategy is for
INTEGER_PRODUCT = ("i8", "i8", "i32")  # element types of A, B and C


def group_problem(group: OpGroup) -> Problem:
    """Returns the problem that a group is: what is tuned, and the key of what was tuned.

    Sizes: of a contraction (m, n, k) and its batch; of an attention those of its scores, which are queries,
    keys and the width that is summed up; of a convolution (filters of a group, pixels of an image
    of the output, elements that are summed up for each), and images times groups; of rows (all rows, columns,
    1); of an elementwise operation (elements but for the last dimension, last dimension, 1).

    Raises:
        UsageError: a group of a kind that no schedule is for, of dynamic sizes, or whose text is not a group.
    """
    if group.kind not in KINDS:
        why = f": {group.reason}" if group.kind == LOOPS and group.reason else ""
        raise UsageError(f"group: found kind {group.kind}, allowed {', '.join(KINDS)}{why}")
    with ir.Context(), ir.Location.unknown():  # no script runs: tuner's transform ops are not needed
        try:
            module = parse_group(group.text)
            annotate_facts(module)
        except CandidateError as error:
            raise UsageError(str(error)) from None
        found = contractions(group_function(module))
        has_product = group.kind in (ATTENTION, CONTRACTION) and bool(found)
        sizes = loop_extents(found[0]) if has_product else ()
        convolution = _convolution_sizes(found[0]) if group.kind == CONVOLUTION and found else (1, (1, 1, 1))
        if has_product:
            _require_known_product(found[0])
        dtype = _element_type(found[0] if found else None, module)
        text = str(module)
    if group.kind in (ATTENTION, CONTRACTION):
        batch, (m, n, k) = prod(sizes[:-3]), sizes[-3:]
        return Problem(group.kind, (m, n, k), dtype, batch=batch, group=text)
    if group.kind == CONVOLUTION:
        batch, (m, n, k) = convolution
        return Problem(CONVOLUTION, (m, n, k), dtype, batch=batch, group=text)
    loops = facts_of(text).loops or (1,)
    return Problem(group.kind, (prod(loops[:-1]), loops[-1], 1), dtype, group=text)


def _require_known_product(op: Op) -> None:
    """Raises UsageError for a product of integers other than of signed i8 into i32."""
    a, b, c = (each.type.element_type for each in op.operands)
    if not any(isinstance(each, ir.IntegerType) for each in (a, b, c)):
        return
    if (str(a), str(b), str(c)) != INTEGER_PRODUCT:
        raise UsageError(f"group: found a product of {a} and {b} into {c}, allowed i8 and i8 into i32")
    if is_unsigned(op):
        raise UsageError("group: found a product of unsigned i8, allowed signed i8")


def _convolution_sizes(op: Op) -> tuple[int, tuple[int, int, int]]:
    """Returns the batch and (m, n, k) of a named convolution; a depthwise one has its channels as filters."""
    if op.name not in LAYOUTS:
        raise UsageError(f"group: found {op.name}, allowed {', '.join(LAYOUTS)}")
    form = convolution_form(op)
    sizes = dict(zip(form.weights, op.operands[1].type.shape, strict=True))
    sizes |= dict(zip(form.output, op.results[0].type.shape, strict=True))
    batch, pixels, summed = (
        prod(sizes[each] for each in letters)
        for letters in (*(_only(form.output, some) for some in ("ng", "HW")), form.reduced)
    )
    return batch, (sizes[form.filters], pixels, summed)


def _only(letters: str, some: str) -> str:
    return "".join(each for each in letters if each in some)


def _element_type(contraction: Op | None, module: ir.Module) -> str:
    """Returns the element type of what is multiplied; without a contraction, that of the last output."""
    output = group_function(module).regions[0].blocks[0].arguments[-1]
    read = output.type if contraction is None else contraction.operands[0].type
    element = str(ir.ShapedType(read).element_type)
    if element not in NUMBER_TYPES:
        raise UsageError(f"group: found elements of {element}, allowed {', '.join(NUMBER_TYPES)}")
    return element
