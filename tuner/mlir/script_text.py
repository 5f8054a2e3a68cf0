"""Transform scripts as text that MLIR reads back as the same script, which its printers do not always give.

``transform.apply_registered_pass`` prints its options sorted by name, and the types of their parameters in
another order: with two types, the text cannot be parsed.
"""

import re

from tuner.mlir.bindings import Attribute, Op, ir
from tuner.mlir.ir.reading import walk

APPLY_REGISTERED = "transform.apply_registered_pass"
OPTIONS = "options"
PARAMETER = re.compile(r"#transform\.param_operand<index\s*=\s*(\d+)\s*:\s*i64>")


def sort_pass_options(module: ir.Module) -> None:
    """Orders the parameters of each ``transform.apply_registered_pass`` as its options are printed, in place.

      %0 = ... with options = {"a" = %2, "b" = %1} to %f : (..., !transform.param<i64>, !transform.any_param)
    of the operands (%f, %1, %2) gets the operands (%f, %2, %1), and prints
      %0 = ... with options = {"a" = %2, "b" = %1} to %f : (..., !transform.any_param, !transform.param<i64>)
    """
    for op in walk(module, APPLY_REGISTERED):
        if OPTIONS in op.attributes:
            _sort(op)


def _sort(op: Op) -> None:
    target, *parameters = op.operands
    options = str(op.attributes[OPTIONS])
    order = list(dict.fromkeys(int(number) for number in PARAMETER.findall(options)))
    if order == sorted(order):
        return

    def renumbered(match: re.Match[str]) -> str:
        return f"#transform.param_operand<index={order.index(int(match[1]))}>"

    op.attributes[OPTIONS] = Attribute.parse(PARAMETER.sub(renumbered, options))
    for place, number in enumerate(order, 1):
        op.operands[place] = parameters[number]
    assert op.operands[0] == target


def text_of(script: Op) -> str:
    """Returns a script as text, in MLIR's generic form where its own form is not read back as the same."""
    text = str(script)
    generic = script.get_asm(print_generic_op_form=True)
    try:
        is_same = ir.Module.parse(text).operation.get_asm(print_generic_op_form=True) == generic
    except (ir.MLIRError, ValueError):
        is_same = False
    return text if is_same else generic
