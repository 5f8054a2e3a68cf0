"""The guard of a bound script: sequences that find the matmul that the script is for, and refuse all else.

Upstream has no op for a message: a comparison fails, and its location says what was wanted. ``mlir-opt``
prints both in one line, of which this is an example::

    error: loc("this schedule is for one linalg.matmul, tensor<24x32xf32> * tensor<32x64xf32> to
    tensor<24x64xf32>; such matmuls"): expected parameter to be equal to 1, got 0
"""

from dataclasses import replace

from tuner.core.interfaces import Partition
from tuner.core.problem import MATMUL, SCALES, Problem
from tuner.payload.cpu import has_epilogue, maps_attribute, tensor_type
from tuner.payload.scaled_product import SCALED_MAPS, factor_types


def guard_name(partition: Partition) -> str:
    """Returns the name of a partition's guard sequence.

    ``the_matmul`` for the whole of C, ``the_matmul_64x32`` for a part of 64 rows and 32 columns.
    """
    return f"the_{partition.entry}"


def guard(problem: Problem, partition: Partition, has_second_kernel: bool = False) -> str:
    """Returns the text of the sequence ``@the_<entry>``, such as ``@the_matmul``, for a partition's function.

    The sequence yields the only linalg.matmul of the partition's sizes, layout and types, on tensors; of a
    matmul with scales, the only linalg.generic. It fails for a payload with none or several, and if their
    function has another linalg.matmul or, with an epilogue, does not have one linalg.generic.
    ``has_second_kernel``: the epilogue is in another function, which adds up parts of K.
    """
    part = replace(problem, sizes=(partition.m, partition.n, problem.sizes[2]))
    a, b = (tensor_type(shape[-2:], part.stored_dtype) for shape in (part.a_shape, part.b_shape))
    c = tensor_type(part.c_shape[-2:], part.accumulator)
    if problem.groups:  # the rows of a group
        a, c = (f"tensor<?{text[text.index('x') :]}" for text in (a, c))
    operands = {"nn": f"{a} * {b}", "nt": f"{a} * transposed {b}", "tn": f"transposed {a} * {b}"}
    wanted = f"this schedule is for one linalg.matmul, {operands[problem.layout]} to {c}"
    if problem.scales:
        return _scaled_guard(part, guard_name(partition), wanted)
    ops = '["linalg.matmul"]'
    expected = ""
    number = "%one"
    alone = "this schedule is for a function with one linalg.matmul"
    if has_epilogue(problem) and not has_second_kernel:
        alone += f" and one linalg.generic ({problem.epilogue} to {problem.result_dtype})"
        ops = '["linalg.matmul", "linalg.generic"]'
        number = "%two"
        expected = "    %two = transform.param.constant 2 : i64 -> !size\n"
    return f"""  // Finds the matmul that the steps are for; where a payload has none, its line says so.
  transform.named_sequence @{guard_name(partition)}(%root: !op {{transform.readonly}}) -> !op {{
    %matmul = transform.structured.match ops{{["linalg.matmul"]}}
      attributes{{{maps_attribute(MATMUL, problem.layout)}}}
      filter_operand_types = [{a}, {b}, {c}] in %root : (!op) -> !op
    %found = transform.num_associations %matmul : (!op) -> !size
    %one = transform.param.constant 1 : i64 -> !size
    transform.match.param.cmpi eq %found, %one : !size
      loc("{wanted}; such matmuls")
    %function = transform.get_parent_op %matmul {{op_name = "func.func"}} : (!op) -> !op
    %ops = transform.structured.match ops{{{ops}}} in %function : (!op) -> !op
    %there = transform.num_associations %ops : (!op) -> !size
{expected}    transform.match.param.cmpi eq %there, {number} : !size loc("{alone}; such ops")
    transform.yield %matmul : !op
  }}
"""


def _scaled_guard(problem: Problem, name: str, wanted: str) -> str:
    """Returns the text of the sequence that yields the only linalg.generic with scales of blocks."""
    a, b, *scales = factor_types(problem)
    c = tensor_type(problem.c_shape, problem.accumulator)
    return f"""  // Finds the matmul that the steps are for; where a payload has none, its line says so.
  transform.named_sequence @{name}(%root: !op {{transform.readonly}}) -> !op {{
    %matmul = transform.structured.match ops{{["linalg.generic"]}}
      attributes{{{SCALED_MAPS}}}
      filter_operand_types = [{a}, {b},
        {", ".join(scales)}, {c}] in %root : (!op) -> !op
    %found = transform.num_associations %matmul : (!op) -> !size
    %one = transform.param.constant 1 : i64 -> !size
    transform.match.param.cmpi eq %found, %one : !size
      loc("{wanted} with scales {SCALES}; such matmuls")
    transform.yield %matmul : !op
  }}
"""
