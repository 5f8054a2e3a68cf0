"""A tuning spec for IREE: contractions as IREE sees them, configurations to try, and the text."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tuner.core.problem import NUMPY_ALIGNMENT, WARM, Problem
from tuner.core.serialization import printable
from tuner.library.entries import LibraryEntry
from tuner.payload.cpu import MAPS, tensor_program

# Configurations of IREE's CPU pipeline for a problem: from an entry's knobs, and known good ones.
#
# Tiles do not carry over: a register tile of 12 x 32 that wins in tuner's code was 3 times slower than IREE's
# default, 8 x 32 was the fastest (docs/decisions/libraries.md). So an entry's knobs are one proposal of
# several, and times in IREE's runtime decide.

ROWS, COLUMNS = 8, 32  # of the register tile that was the fastest
BLOCKS = ((64, 64), (128, 128), (128, 256), (64, 512))  # rows, columns of C that a thread computes at a time
STEPS = (1, 4, 16)  # of k, in one iteration of the innermost loop
MOST = 12  # configurations of one problem: each is compiled in one to two seconds


@dataclass(frozen=True)
class IreeConfiguration:
    """Tile sizes of IREE's pipeline DoubleTilingExpert for one contraction."""

    distribution: tuple[int, int]  # rows and columns of C of one work group
    tile: tuple[int, int]  # rows and columns of C in registers
    step: int  # of k

    def attribute(self, problem: Problem) -> str:
        """Returns ``#iree_codegen.compilation_info<...>`` for a problem; a batch is done one by one."""
        lead = [1] * len(problem.lead)
        lists = (
            ("distribution", [*lead, *self.distribution, 0]),
            ("vector_common_parallel", [*lead, *self.tile, 0]),
            ("vector_reduction", [*(0 for _ in lead), 0, 0, self.step]),
        )
        sizes = ", ".join(f"{name} = {values}" for name, values in lists)
        pipeline = "#iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>>"
        lowering = f"#iree_cpu.lowering_config<{sizes}>"
        return f"#iree_codegen.compilation_info<lowering_config = {lowering}, translation_info = {pipeline}>"


def configurations_for(entry: LibraryEntry) -> tuple[IreeConfiguration, ...]:
    """Returns at most 12 configurations to time for an entry's problem, the entry's tile sizes first."""
    m, n, k = entry.problem.sizes
    usual = (
        IreeConfiguration(blocks, (ROWS, COLUMNS), step) for step, blocks in itertools.product(STEPS, BLOCKS)
    )
    fitting = (
        IreeConfiguration(
            (min(each.distribution[0], m), min(each.distribution[1], n)),
            (min(each.tile[0], m), min(each.tile[1], n)),
            min(each.step, k),
        )
        for each in (*_of_knobs(entry), *usual)
    )
    return tuple(itertools.islice(dict.fromkeys(fitting), MOST))


def _of_knobs(entry: LibraryEntry) -> Iterator[IreeConfiguration]:
    m, n, _ = entry.problem.sizes
    blocks = (entry.size("block_m") or m, entry.size("block_n") or n)
    rows, columns, step = entry.size("tile_m"), entry.size("tile_n"), entry.size("unroll_k") or 1
    if rows and columns:
        yield IreeConfiguration(blocks, (rows, columns), step)
    yield IreeConfiguration(blocks, (ROWS, COLUMNS), step)


NUMBERED = {"m": 0, "n": 1, "k": 2}  # dimensions as IREE numbers them, without a batch


def contraction_of(problem: Problem) -> Problem:
    """Returns the problem without what IREE's matchers do not see: epilogue, type of C, alignment, caches."""
    return replace(problem, epilogue="none", output="", align=NUMPY_ALIGNMENT, cache=WARM)


def indexing_maps(problem: Problem) -> str:
    """Returns the indexing maps of A, B and C as an MLIR attribute; dimensions are named d0, d1, ..."""
    shift = 1 if problem.lead else 0
    names = {name: f"d{number + shift}" for name, number in NUMBERED.items()}
    lead = ["d0"] * shift
    domain = ", ".join((*lead, *names.values()))
    operands = (*MAPS[problem.layout], "mn")
    results = (", ".join((*lead, *(names[each] for each in operand))) for operand in operands)
    return "[" + ", ".join(f"affine_map<({domain}) -> ({result})>" for result in results) + "]"


def program_of(problem: Problem) -> str:
    """Returns a program for IREE with one public function ``product``: tensors A and B to the tensor C."""
    maps = "" if problem.layout == "nn" else f"indexing_maps = {indexing_maps(problem)}"
    return tensor_program(problem, "product", problem.accumulator, maps)


# The text of a tuning spec: matchers of exact sizes, each with its configuration.
#
#   transform.named_sequence @match_0(%op) {
#     ... transform.iree.match.contraction %op, lhs_type = f32, ...
#     ... transform.iree.match.dims_equal %m, [128]
#     %config = transform.param.constant #iree_codegen.compilation_info<...>
#
# Format: https://iree.dev/reference/tuning. The attributes are those of one version of the compiler.

APPLIED = "__tuning_spec_applied__"  # on each operation that a spec configured
OP, PARAM = "!transform.any_op", "!transform.any_param"


@dataclass(frozen=True)
class SpecEntry:
    """A contraction, its configuration, and a line on where it comes from."""

    problem: Problem
    configuration: IreeConfiguration
    note: str


def spec_text(entries: tuple[SpecEntry, ...], header: tuple[str, ...] = ()) -> str:
    """Returns the text of an IREE tuning spec; of the entries that match an op, the first applies.

    ``header``: lines of text without "//", which become comments at the top.
    """
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
