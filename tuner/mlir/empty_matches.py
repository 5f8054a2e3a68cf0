"""Matches of a script that find nothing are errors, where MLIR would continue without effect.

MLIR applies an op to an empty handle by doing nothing. A misspelled op name thus leaves a matmul untiled, to
be vectorized as a whole, which takes a compiler minutes. While a script is applied, ops that check handles
are inserted:

    %product = transform.structured.match ops{["linalg.matmull"]} in %function
    "tuner.note_match"(%product, %function)      // fails here: MLIR has no such op
    "tuner.require_match"(%product)              // fails for any name where no match has found anything
    %tile, %loops:2 = transform.structured.fuse %product tile_sizes [8, 32, 0]

A script may match ops that only some payloads have. So a match for registered op names fails only until some
match has found an op other than a function or module, only before an op of ``NEEDING`` that uses its handle,
and never in ``transform.foreach`` or ``transform.alternatives``.
"""

import contextlib
import difflib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from tuner.mlir.bindings import Attribute, Op, ext, ir, transform
from tuner.mlir.dialect import InPlaceEffects, TunerDialect, silenceable_failure
from tuner.mlir.ir.reading import parents_of, users_of, walk, walk_where

MATCH = "transform.structured.match"
OTHER_MATCHES = ("transform.foreach_match", "transform.collect_matching")  # find ops by a matcher sequence
NEEDING = ("transform.structured.", "transform.get_")  # begin names of a schedule's main ops, not cleanups
LENIENT = ("transform.foreach", "transform.alternatives")  # in their regions a match may find nothing
CONTAINERS = ("builtin.module", "func.func", "func.return", "gpu.module", "gpu.func")  # compute nothing
NAMES_SHOWN = 6  # op names of the payload in a message, which is one line
ATTRIBUTE_SHOWN = 60  # characters of an attribute in a message: a mapping may be long
SEGMENTS = "operandSegmentSizes"  # of ops with several operand groups; never matched
SIMILAR = 0.8  # ratio of difflib from which a name is suggested ("did you mean")

FOUND_NOTHING = "tuner.found_nothing"  # attribute of a match while the script runs: why it found nothing
HAS_FOUND = "tuner.has_found"  # attribute of the script while it runs: a match found more than containers
_SUCCESS = transform.DiagnosedSilenceableFailure.Success


class NoteMatchOp(TunerDialect.Operation, name="note_match"):  # type: ignore[misc,name-defined,call-arg] # untyped
    """``tuner.note_match``, after each match op of a script, records whether it found payload ops.

    Silenceable failure: the match found nothing, and MLIR knows none of the op names that it looks for.
    """

    target: ext.Operand[Any]
    scope: ext.Operand[Any]  # operand of the match: where it searched


class RequireMatchOp(TunerDialect.Operation, name="require_match"):  # type: ignore[misc,name-defined,call-arg] # untyped
    """``tuner.require_match``, before an op that needs the payload ops of a match.

    Silenceable failure: the match found nothing, and no match so far has found an op other than modules,
    functions and their returns. It never fails in a script with ``transform.foreach_match`` or
    ``collect_matching``, which match ops in their own way.
    """

    target: ext.Operand[Any]


class NoteMatch(transform.TransformOpInterface):  # type: ignore[misc] # untyped bindings
    """The implementation of ``tuner.note_match`` for MLIR's transform interpreter."""

    @staticmethod
    def apply(
        op: NoteMatchOp,
        rewriter: transform.TransformRewriter,
        results: transform.TransformResults,
        state: transform.TransformState,
    ) -> transform.DiagnosedSilenceableFailure:
        match = op.target.owner
        matched_ops = [payload_op.operation for payload_op in state.get_payload_ops(op.target)]
        if not matched_ops:
            names = _names(match)
            payload: list[Op] = []
            for scope in state.get_payload_ops(op.scope):
                payload += walk_where(scope.operation, _is_not_in_linalg)
            named = [payload_op for payload_op in payload if payload_op.name in names]
            if named and "op_attrs" in match.attributes:
                wanted = [_text(pair.name, pair.attr) for pair in ir.DictAttr(match.attributes["op_attrs"])]
                pairs = ((name, op.attributes[name]) for op in named for name in op.attributes)
                there = [_text(name, attribute) for name, attribute in pairs if name != SEGMENTS]
                sought = f"{named[0].name} with {', '.join(wanted)}"
                whose = "which has it with"
            else:
                wanted = names
                there = [op.name for op in payload if op.name not in CONTAINERS]
                # by interface: no op name
                sought = " or ".join(names) or "such op"
                whose = "which has"
            reason = f"found no {sought} in the payload{_similar(wanted, there, whose)}"
            match.attributes[FOUND_NOTHING] = ir.StringAttr.get(reason)
            if _is_unknown(match):
                return silenceable_failure(op, reason)
            return _SUCCESS
        if any(matched.name not in CONTAINERS for matched in matched_ops):
            _root(match).attributes[HAS_FOUND] = ir.UnitAttr.get()
        return _SUCCESS

    @staticmethod
    def allow_repeated_handle_operands(op: NoteMatchOp) -> bool:
        return True


class RequireMatch(transform.TransformOpInterface):  # type: ignore[misc] # untyped bindings
    """The implementation of ``tuner.require_match`` for MLIR's transform interpreter."""

    @staticmethod
    def apply(
        op: RequireMatchOp,
        rewriter: transform.TransformRewriter,
        results: transform.TransformResults,
        state: transform.TransformState,
    ) -> transform.DiagnosedSilenceableFailure:
        match = op.target.owner
        if FOUND_NOTHING not in match.attributes or HAS_FOUND in _root(match).attributes:
            return _SUCCESS
        reason = ir.StringAttr(match.attributes[FOUND_NOTHING]).value
        return silenceable_failure(op, f"for {_next(op.operation).location}, {reason}")

    @staticmethod
    def allow_repeated_handle_operands(op: RequireMatchOp) -> bool:
        return True


def attach_to_context() -> None:
    """Registers the ops ``tuner.note_match`` and ``tuner.require_match`` in the current MLIR context."""
    TunerDialect.add_ops(NoteMatchOp, RequireMatchOp)
    for op, interface in ((NoteMatchOp, NoteMatch), (RequireMatchOp, RequireMatch)):
        interface.attach(op.OPERATION_NAME)
        InPlaceEffects.attach(op.OPERATION_NAME)


@contextlib.contextmanager
def empty_matches_refused(script: ir.Module) -> Iterator[None]:
    """Context manager: some matches of ``script`` that find nothing fail while the script is applied.

    ``NoteMatchOp`` and ``RequireMatchOp`` say which. Inserts these ops, and removes them at its end.
    """
    matches = walk(script, MATCH)
    inserted = list(chain.from_iterable(map(_inserted, matches)))
    if walk(script, *OTHER_MATCHES):
        script.operation.attributes[HAS_FOUND] = ir.UnitAttr.get()
    try:
        yield
    finally:
        for op in inserted:
            op.erase()
        for op, name in [(script.operation, HAS_FOUND), *((match, FOUND_NOTHING) for match in matches)]:
            if name in op.attributes:
                del op.attributes[name]


def _inserted(match: Op) -> Iterator[Op]:
    target = match.results[0]
    users = users_of(target)
    with match.location:
        note = ir.Operation.create(
            NoteMatchOp.OPERATION_NAME, [], [target, match.operands[0]], ip=ir.InsertionPoint(match)
        )
        note.move_after(match)
        yield note
        for user in users:
            around = (*parents_of(match.operation), *parents_of(user.operation))
            if user.name.startswith(NEEDING) and not any(parent.name in LENIENT for parent in around):
                name = RequireMatchOp.OPERATION_NAME
                yield ir.Operation.create(name, [], [target], ip=ir.InsertionPoint(user))


def _root(op: Op) -> Op:
    return [op, *parents_of(op.operation)][-1]


def _next(op: Op) -> Op:
    ops = list(op.block.operations)
    return ops[[other.operation for other in ops].index(op) + 1].operation


def _names(match: Op) -> list[str]:
    """Returns the op names of a match; [] for a match by interface or attributes."""
    if "ops" not in match.attributes:
        return []
    return [ir.StringAttr(name).value for name in ir.ArrayAttr(match.attributes["ops"])]


def _is_not_in_linalg(op: Op) -> bool:
    return op.parent is None or not op.parent.name.startswith("linalg.")


def _is_unknown(match: Op) -> bool:
    names = _names(match)
    return bool(names) and not any(map(match.context.is_registered_operation, names))


def _text(name: str, attribute: Attribute) -> str:
    text = str(attribute)
    if text == "unit":
        return name
    return f"{name} = {text}"[:ATTRIBUTE_SHOWN]


def _similar(wanted: list[str], there: Iterable[str], whose: str) -> str:
    def likeness(name: str) -> float:
        return max((difflib.SequenceMatcher(None, name, other).ratio() for other in wanted), default=0.0)

    ranked = sorted(sorted(set(there) - set(wanted)), key=likeness, reverse=True)
    if not ranked:
        return ""
    more = ", ..." if len(ranked) > NAMES_SHOWN else ""
    meant = f"; did you mean {ranked[0]}?" if likeness(ranked[0]) >= SIMILAR else ""
    return f", {whose} {', '.join(ranked[:NAMES_SHOWN])}{more}{meant}"
