"""Each op of a script that the transform interpreter runs is a step: a crash or a timeout names the step.

The interpreter does not report which op it runs. While a script is applied, an op is inserted before each
op of a sequence, except its terminator:

    transform.structured.vectorize %tile : !transform.any_op
  becomes
    "tuner.note_step"() {step = "transform.structured.vectorize at script:6:5"} : () -> ()
    transform.structured.vectorize %tile : !transform.any_op

None is inserted in matchers: MLIR allows only matching ops in these.
"""

import contextlib
from collections.abc import Callable, Iterator

from tuner.core.errors import SCRIPT
from tuner.core.progress import enter_step, step
from tuner.mlir.bindings import Op, ir, transform
from tuner.mlir.dialect import TunerDialect
from tuner.mlir.ir.reading import attributes_of, walk

SEQUENCE = "transform.named_sequence"
RUN_IN_ORDER = (SEQUENCE, "transform.sequence", "transform.foreach", "transform.alternatives")
MATCHERS = {"transform.foreach_match": "matchers", "transform.collect_matching": "matcher"}  # op -> attribute
REGISTERED = "transform.apply_registered_pass"
STEP = "step"
SCALABLE = "scalable"  # part of the names of the attributes that mark tile sizes such as [4]
SCALABLE_WORDS = " with scalable sizes such as [4], which no processor of x86-64 has"

_followers: list[Callable[[str], object]] = []  # called with each step of a script before it is applied


class NoteStepOp(TunerDialect.Operation, name="note_step"):  # type: ignore[misc,name-defined,call-arg] # untyped
    """``tuner.note_step``: its attribute ``step`` is the name that a message of a crash or timeout gives."""


class NoteStep(transform.TransformOpInterface):  # type: ignore[misc] # untyped bindings
    """The implementation of the transform op ``tuner.note_step`` for MLIR's transform interpreter."""

    @staticmethod
    def apply(
        op: NoteStepOp,
        rewriter: transform.TransformRewriter,
        results: transform.TransformResults,
        state: transform.TransformState,
    ) -> transform.DiagnosedSilenceableFailure:
        name = ir.StringAttr(op.operation.attributes[STEP]).value
        enter_step(name)
        for follow in _followers:
            follow(name)
        return transform.DiagnosedSilenceableFailure.Success

    @staticmethod
    def allow_repeated_handle_operands(op: NoteStepOp) -> bool:
        return True


class NoEffects(ir.MemoryEffectsOpInterface):  # type: ignore[misc] # untyped bindings
    """Memory effects of an op that has neither operands nor payload ops."""

    @staticmethod
    def get_effects(op: Op, effects: ir.MemoryEffectInstancesList) -> None:
        """Adds no memory effects: the op takes no handles and does not change the payload."""


def attach_to_context() -> None:
    """Registers the op ``tuner.note_step`` in the current MLIR context."""
    TunerDialect.add_ops(NoteStepOp)
    NoteStep.attach(NoteStepOp.OPERATION_NAME)
    NoEffects.attach(NoteStepOp.OPERATION_NAME)


@contextlib.contextmanager
def ops_as_steps(script: ir.Module) -> Iterator[None]:
    """Context manager: messages of crashes and timeouts name the op of ``script`` that was being applied."""
    matchers = _matchers(script)
    inserted = []
    for sequence in walk(script, *RUN_IN_ORDER):
        if sequence.name == SEQUENCE and ir.StringAttr(sequence.attributes["sym_name"]).value in matchers:
            continue
        for region in sequence.regions:
            for block in region.blocks:
                inserted += [_inserted(op.operation) for op in list(block.operations)[:-1]]
    try:
        with step("the transform interpreter"):
            yield
    finally:
        for op in inserted:
            op.erase()


@contextlib.contextmanager
def following_steps(follow: Callable[[str], object]) -> Iterator[None]:
    """Context manager: ``follow`` is called with the name of each op of a script before the op is applied."""
    _followers.append(follow)
    try:
        yield
    finally:
        _followers.remove(follow)


def _inserted(op: Op) -> Op:
    with op.location:
        attributes = {STEP: ir.StringAttr.get(_named(op))}
        return ir.Operation.create(NoteStepOp.OPERATION_NAME, attributes=attributes, ip=ir.InsertionPoint(op))


def _matchers(script: ir.Module) -> set[str]:
    """Returns the names of the sequences by which ops of the script match."""
    texts = [str(op.attributes[MATCHERS[op.name]]) for op in walk(script, *MATCHERS)]
    return {name.strip(' @"') for text in texts for name in text.strip("[]").split(",")}


def _named(op: Op) -> str:
    """Returns "transform.structured.pad at script:6:5", and of a pass which pass it is."""
    name = op.name
    if name == REGISTERED:
        name = f"{name} {op.attributes['pass_name']}"
    at = op.location
    if isinstance(at, ir.FileLineColLoc):
        name = f"{name} at {SCRIPT}:{at.start_line}:{at.start_col}"
    return f"{name}{SCALABLE_WORDS}" if _is_scalable(op) else name


def _is_scalable(op: Op) -> bool:
    """Returns whether an op has tile or vector sizes such as [4], multiples of a number of the processor."""
    flags = [attribute for key, attribute in attributes_of(op).items() if SCALABLE in key]
    return any("true" in str(flag) for flag in flags)
