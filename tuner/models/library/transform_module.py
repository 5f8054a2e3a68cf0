"""The transform module of a library: one entry sequence that gives each contraction its schedule.

Steps of the entry sequence, by upstream's ops alone:
  1. linalg.generic contractions of layout nn become named ops.
  2. Each named op of a known layout is given to the matchers; the first that matches names its entry.
  3. Each named op moves, with the fill that clears its result, to a new function. A batch moves as a whole,
     so that no matrix is copied at the function's boundary, and becomes a loop over matmuls there.
  4. To each function the half of its entry's schedule that works on tensors is applied.
  5. The whole module is bufferized, once; then the other half of each schedule is applied.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from tuner.payload.cpu import maps_attribute
from tuner.space.scripts.matchers import ANY, LINALG, MatchedContraction, matcher
from tuner.space.scripts.script_halves import (
    ALIASES,
    BUFFERS_FUNCTION,
    FUNCTION,
    MATMUL_OF,
    SIMPLIFY,
    ScriptHalves,
)

# types of ops of one handle
ONE = f"({ANY}) -> {ANY}"
PAIR = f"({ANY}) -> ({ANY}, {ANY})"
TWO = f"({ANY}, {ANY}) -> ({ANY}, {ANY})"
MARK_SEQUENCE = "tuner_mark"  # steps 1 and 2, which name and mark ops and change nothing else
PREFIX = "tuned."  # of the attributes that name an op's entry
_GENERIC = f"""  transform.named_sequence @is_contraction(%op: {ANY} {{transform.readonly}}) -> {ANY} {{
    transform.match.operation_name %op ["linalg.generic"] : {ANY}
    %matched = transform.match.structured failures(propagate) %op : {ONE} {{
    ^bb0(%s: {ANY}):
      transform.match.structured.body %s {{contraction = ["arith.mulf", "arith.addf"]}} : {ANY}
      transform.match.structured.yield %s : {ANY}
    }}
    transform.yield %op : {ANY}
  }}
"""
# Matmuls that begin with a fill are outlined with it; other matmuls add to their output.
_SPLIT_BY_INIT = f"""  transform.named_sequence @is_cleared(%op: {ANY} {{transform.readonly}}) -> {ANY} {{
    %before = transform.get_producer_of_operand %op[2] : {ONE}
    transform.match.operation_name %before ["linalg.fill"] : {ANY}
    transform.yield %op : {ANY}
  }}
  transform.named_sequence @is_any(%op: {ANY} {{transform.readonly}}) -> {ANY} {{
    transform.yield %op : {ANY}
  }}
  transform.named_sequence @mark_cleared(%op: {ANY} {{transform.readonly}}) {{
    transform.annotate %op "{PREFIX}cleared" : {ANY}
    transform.yield
  }}
  transform.named_sequence @mark_accumulating(%op: {ANY} {{transform.readonly}}) {{
    transform.annotate %op "{PREFIX}accumulating" : {ANY}
    transform.yield
  }}
"""
# Cleans up an outlined function and its caller. A batch becomes a loop over matmuls: of batches of one by
# ``fuse``, then generic, without the unit dimension, and named again, as the halves match named ops.
_WHOLE = f"""  transform.named_sequence @tuner_whole(
      %function: {ANY} {{transform.readonly}}, %call: {ANY} {{transform.readonly}}) {{
    %caller = transform.get_parent_op %call {{op_name = "func.func"}} : {ONE}
    transform.apply_patterns to %caller {{
      transform.apply_patterns.canonicalization
    }} : {ANY}
    transform.apply_patterns to %function {{
      transform.apply_patterns.canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
    }} : {ANY}
    %batches = transform.structured.match ops{{["linalg.batch_matmul"]}} in %function : {ONE}
    transform.foreach %batches : {ANY} {{
    ^bb0(%batch: {ANY}):
      %matrix, %matrices = transform.structured.fuse %batch tile_sizes [1, 0, 0, 0] : {PAIR}
      %named = transform.structured.match ops{{["linalg.batch_matmul", "linalg.fill"]}} in %function : {ONE}
      %generic = transform.structured.generalize %named : {ONE}
      transform.apply_patterns to %function {{
        transform.apply_patterns.linalg.fold_unit_extent_dims_via_slices
        transform.apply_patterns.canonicalization
      }} : {ANY}
      %flat = transform.structured.match ops{{["linalg.generic"]}} in %function : {ONE}
      %named_again = transform.structured.specialize %flat : {ONE}
      transform.apply_patterns to %function {{
        transform.apply_patterns.canonicalization
        transform.apply_patterns.scf.for_loop_canonicalization
      }} : {ANY}
    }}
    transform.yield
  }}
"""


@dataclass(frozen=True)
class EntrySchedule:
    """An entry of a library's module: its name, the contractions that it matches, and its script's halves."""

    name: str  # an identifier: "matmul_64x96x33_f32_nn"
    contractions: tuple[MatchedContraction, ...]
    halves: ScriptHalves


def transform_module(schedules: tuple[EntrySchedule, ...]) -> str:
    """Returns the MLIR text of a library's module; its first op is the entry sequence for all schedules."""
    names = [schedule.name for schedule in schedules]
    entry = f"""  transform.named_sequence @__transform_main(%root: {ANY} {{transform.consumed}}) {{
    transform.include @{MARK_SEQUENCE} failures(propagate) (%root) : ({ANY}) -> ()
{"".join(map(_outline_marked, names))}\
{"".join(_include_half("tensors", "%root", name) for name in names)}\
    transform.structured.eliminate_empty_tensors %root : {ANY}
    %buffers = transform.bufferization.one_shot_bufferize layout{{IdentityLayoutMap}} %root
      {{bufferize_function_boundaries = true, memcpy_op = "linalg.copy"}} : {ONE}
{"".join(_include_half("buffers", "%buffers", name) for name in names)}\
    %whole = transform.apply_registered_pass "drop-equivalent-buffer-results" to %buffers : {ONE}
    transform.yield
  }}
"""
    shared = [_SPLIT_BY_INIT, _WHOLE, SIMPLIFY]
    body = "".join([entry, _mark_sequence(schedules), *shared, *map(_entry_sequences, schedules)])
    return f"{ALIASES}\nmodule attributes {{transform.with_named_sequence}} {{\n{body}}}\n"


def _mark_sequence(schedules: tuple[EntrySchedule, ...]) -> str:
    """Returns the sequence that marks each op with its entry, and the matchers that it calls."""
    pairs = []
    for schedule in schedules:
        pairs += [(contraction, schedule.name) for contraction in schedule.contractions]
    # Exact batches come first: the first matcher that matches an op wins.
    pairs.sort(key=lambda pair: (pair[0].operation, pair[0].layout, pair[0].batch is None))
    includes = ""
    sequences = ""
    grouped = groupby(pairs, key=lambda pair: (pair[0].operation, pair[0].layout))
    for index, (operation_and_layout, group) in enumerate(grouped):
        includes += _include_dispatch(index, *operation_and_layout)
        sequences += _dispatch_sequence(index, tuple(group))
    matchers = ""
    for contraction, name in pairs:
        matchers += matcher(_matcher_name(name, contraction), contraction)
    return f"""  transform.named_sequence @{MARK_SEQUENCE}(%root: {ANY} {{transform.readonly}}) {{
{"".join(map(_specialize_generics, LINALG))}\
{includes}\
    transform.yield
  }}
{sequences}\
{_GENERIC}\
{matchers}"""


def _specialize_generics(operation: str) -> str:
    """Returns transform ops that turn generic contractions of layout nn into named ops.

    Only of layout nn: of others, MLIR 22 loses the indexing maps, and results would be wrong.
    """
    generics = f"%generics_{operation}"
    maps = maps_attribute(operation, "nn")
    # not by collect_matching: MLIR's assertions refuse its empty handle
    return f"""    {generics} = transform.structured.match ops{{["linalg.generic"]}}
      attributes{{{maps}}} in %root : {ONE}
    transform.foreach {generics} : {ANY} {{
    ^bb0(%generic: {ANY}):
      transform.sequence %generic : {ANY} failures(suppress) {{
      ^bb1(%one: {ANY}):
        %contraction = transform.include @is_contraction failures(propagate) (%one) : {ONE}
        %named = transform.structured.specialize %contraction : {ONE}
        transform.yield
      }}
    }}
"""


def _include_dispatch(number: int, operation: str, layout: str) -> str:
    ops = f"%ops{number}"
    return f"""    {ops} = transform.structured.match ops{{["{LINALG[operation]}"]}}
      attributes{{{maps_attribute(operation, layout)}}} in %root : {ONE}
    transform.foreach {ops} : {ANY} {{
    ^bb0(%op: {ANY}):
      transform.sequence %op : {ANY} failures(suppress) {{
      ^bb1(%one: {ANY}):
        transform.include @tuner_dispatch{number} failures(propagate) (%one) : ({ANY}) -> ()
        transform.yield
      }}
    }}
"""


def _dispatch_sequence(number: int, pairs: Iterable[tuple[MatchedContraction, str]]) -> str:
    actions = [f"@{_matcher_name(name, contraction)} -> @mark_{name}" for contraction, name in pairs]
    listed = ",\n      ".join(actions)
    return f"""  transform.named_sequence @tuner_dispatch{number}(%op: {ANY} {{transform.consumed}}) {{
    %result = transform.get_result %op[0] : ({ANY}) -> !transform.any_value
    %walked = transform.foreach_match restrict_root in %op
      {listed} : {ONE}
    transform.yield
  }}
"""


def _matcher_name(name: str, contraction: MatchedContraction) -> str:
    return f"match_{name}{'_batch' if contraction.has_batch else ''}"


def _outline_marked(name: str) -> str:
    """Returns transform ops that outline all ops of an entry at once.

    A second outlining by the same name fails an assertion of MLIR.
    """
    attribute = f"{PREFIX}{name}"
    ops = 'transform.structured.match ops{["linalg.matmul", "linalg.batch_matmul"]}'
    # a forall of one thread wraps op and fill in a region that loop.outline can move
    tiled = f"transform.structured.tile_using_forall %op num_threads [1] : {PAIR}"
    return f"""    %marked_{name} = {ops} attributes{{{attribute}}} in %root : {ONE}
    %split_{name} = transform.foreach_match restrict_root in %marked_{name}
      @is_cleared -> @mark_cleared, @is_any -> @mark_accumulating : {ONE}
    %cleared_{name} = {ops} attributes{{{attribute}, {PREFIX}cleared}} in %root : {ONE}
    %with_fill_{name} = transform.foreach %cleared_{name} : {ANY} -> {ANY} {{
    ^bb0(%op: {ANY}):
      %fill = transform.get_producer_of_operand %op[2] : {ONE}
      %part, %loop = {tiled}
      %inside, %whole = transform.structured.fuse_into_containing_op %fill into %loop : {TWO}
      transform.yield %whole : {ANY}
    }}
    %accumulating_{name} = {ops} attributes{{{attribute}, {PREFIX}accumulating}} in %root : {ONE}
    %without_fill_{name} = transform.foreach %accumulating_{name} : {ANY} -> {ANY} {{
    ^bb0(%op: {ANY}):
      %part, %whole = {tiled}
      transform.yield %whole : {ANY}
    }}
    %wholes_{name} = transform.merge_handles %with_fill_{name}, %without_fill_{name} : {ANY}
    %functions_{name}, %calls_{name} = transform.loop.outline %wholes_{name} {{func_name = "tuned_{name}"}} \
: {PAIR}
    transform.foreach %functions_{name}, %calls_{name} : {ANY}, {ANY} {{
    ^bb0(%function: {ANY}, %call: {ANY}):
      transform.annotate %function "{attribute}" : {ANY}
      %private = transform.param.constant "private" -> !transform.any_param
      transform.annotate %function "sym_visibility" = %private : {ANY}, !transform.any_param
      transform.include @tuner_whole failures(propagate) (%function, %call) : ({ANY}, {ANY}) -> ()
    }}
"""


def _include_half(half: str, root: str, name: str) -> str:
    handle = f"%{half}_{name}"
    functions = f'transform.structured.match ops{{["func.func"]}} attributes{{{PREFIX}{name}}}'
    return f"""    {handle} = {functions} in {root} : {ONE}
    transform.foreach {handle} : {ANY} {{
    ^bb0(%function: {ANY}):
      transform.include @{half}_{name} failures(propagate) (%function) : ({ANY}) -> ()
    }}
"""


def _entry_sequences(schedule: EntrySchedule) -> str:
    name = schedule.name
    halves = schedule.halves
    return f"""  transform.named_sequence @mark_{name}(%op: {ANY} {{transform.readonly}}) {{
    transform.annotate %op "{PREFIX}{name}" : {ANY}
    transform.yield
  }}
  transform.named_sequence @tensors_{name}({FUNCTION}: {ANY} {{transform.readonly}}) {{
{MATMUL_OF}{halves.tensors}    transform.yield
  }}
  transform.named_sequence @buffers_{name}({BUFFERS_FUNCTION}: {ANY} {{transform.readonly}}) {{
{halves.buffers}    transform.yield
  }}
"""
