"""The text of a tuning spec: matchers of exact sizes, each with its configuration.

    transform.named_sequence @match_0(%op) {
      ... transform.iree.match.contraction %op, lhs_type = f32, ...
      ... transform.iree.match.dims_equal %m, [128]
      %config = transform.param.constant #iree_codegen.compilation_info<...>

Format: https://iree.dev/reference/tuning. The attributes are those of one version of the compiler.
"""

from dataclasses import dataclass

from tuner.core.printable import printable
from tuner.core.problem import Problem
from tuner.library.iree.configuration import IreeConfiguration
from tuner.library.iree.contraction import indexing_maps

APPLIED = "__tuning_spec_applied__"  # on each operation that a spec configured
OP, PARAM = "!transform.any_op", "!transform.any_param"


@dataclass(frozen=True)
class SpecEntry:
    """A contraction, its configuration, and a line on where it comes from."""

    problem: Problem
    configuration: IreeConfiguration
    note: str


def spec_text(entries: tuple[SpecEntry, ...], header: tuple[str, ...] = ()) -> str:
    """Returns the tuning spec of entries, the first match of which wins; ``header`` are lines of comments."""
    comments = "".join(f"// {printable(' '.join(line.split()))}\n" for line in header)
    matchers = "".join(_matcher(number, entry) for number, entry in enumerate(entries))
    pairs = ",\n".join(f"      @match_{number} -> @apply_config" for number in range(len(entries)))
    return f"""{comments}module @tuner_library
    attributes {{iree_codegen.tuning_spec_with_default_entrypoint, transform.with_named_sequence}} {{
  transform.named_sequence @apply_config(%op: {OP} {{transform.readonly}},
      %config: {PARAM} {{transform.readonly}}) {{
    transform.annotate %op "compilation_info" = %config : {OP}, {PARAM}
    transform.annotate %op "{APPLIED}" : {OP}
    transform.yield
  }}
{matchers}  transform.named_sequence @__kernel_config(%variant: {OP} {{transform.consumed}}) -> {OP}
      attributes {{iree_codegen.tuning_spec_entrypoint}} {{
    %res = transform.foreach_match in %variant
{pairs} : ({OP}) -> {OP}
    transform.yield %res : {OP}
  }}
}}
"""


def _matcher(number: int, entry: SpecEntry) -> str:
    problem = entry.problem
    source, sums = problem.stored_dtype, problem.accumulator
    extents = (("batch", list(problem.lead)), *zip("mnk", ([size] for size in problem.sizes), strict=True))
    sizes = "\n".join(
        f"    transform.iree.match.dims_equal %{name}, {size} : !transform.param<i64>"
        for name, size in extents
    )
    return f"""  // {printable(" ".join(entry.note.split()))}
  transform.named_sequence @match_{number}(%op: {OP} {{transform.readonly}}) -> ({OP}, {PARAM}) {{
    %batch, %m, %n, %k = transform.iree.match.contraction %op,
      lhs_type = {source}, rhs_type = {source}, output_type = {sums},
      indexing_maps = {indexing_maps(problem)}
      : {OP} -> !transform.param<i64>
{sizes}
    %config = transform.param.constant {entry.configuration.attribute(problem)} -> {PARAM}
    transform.yield %op, %config : {OP}, {PARAM}
  }}
"""
