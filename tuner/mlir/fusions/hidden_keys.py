"""Which keys the mask of an attention hides, so that schedules need not compute what is multiplied by 0.

A key is hidden where its score, after the mask, is so low that its weight is exactly 0. Scores are followed
through the fusion; this is done only for a softmax as PyTorch computes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.fusion_facts import GUARDED, VISIBLE
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.function import contractions, fusion_function, indexing_maps, parse_fusion
from tuner.mlir.ir.memrefs import argument_attributes, set_argument_attribute
from tuner.mlir.ir.reading import op_of, ops_in

# Scores of numbers up to MOST_GUARDED are below 1e27: what the mask makes lower than LEAST is hidden, and its
# exponential is 0 in a row with a key above SEEN, in f32 and in f64.
LEAST = -1e30
SEEN = -1e20
MOST_FACTOR = 1e6  # of the width that a score sums up times its scale
Array = npt.NDArray[Any]
_CASTS = ("arith.extf", "arith.truncf")
_EQUAL = 1  # arith's oeq


class _State(Enum):
    """What a value is for a hidden key, or for a row, whatever the hidden scores are."""

    SCORE = auto()
    MASK = auto()  # an argument
    HIDDEN = auto()  # lower than all that is seen
    DISTANCE = auto()  # of a hidden score from the largest of the row
    ZERO = auto()
    IS_LEAST = auto()  # whether a score is -inf: false of one that is seen
    MOST = auto()  # of a row: its largest score
    SUM = auto()
    NONE_SEEN = auto()  # false
    START = auto()  # of a reduction


_OF_ROW = (_State.MOST, _State.SUM, _State.NONE_SEEN)
# (operation, states of its operands) -> state of its result
_STEPS: dict[tuple[str | _State | None, ...], _State] = {
    ("arith.addf", _State.SCORE, _State.MASK): _State.HIDDEN,
    ("arith.addf", _State.MASK, _State.SCORE): _State.HIDDEN,
    ("arith.maximumf", _State.HIDDEN, _State.START): _State.MOST,
    ("arith.maximumf", _State.START, _State.HIDDEN): _State.MOST,
    ("arith.subf", _State.HIDDEN, _State.MOST): _State.DISTANCE,
    ("math.exp", _State.DISTANCE): _State.ZERO,
    ("arith.addf", _State.ZERO, _State.START): _State.SUM,
    ("arith.addf", _State.START, _State.ZERO): _State.SUM,
    ("arith.divf", _State.ZERO, _State.SUM): _State.ZERO,
    ("arith.andi", _State.IS_LEAST, _State.START): _State.NONE_SEEN,
    ("arith.andi", _State.START, _State.IS_LEAST): _State.NONE_SEEN,
}


@dataclass(frozen=True)
class AttentionMask:
    """Which arguments of an attention are its mask, its queries, its keys and its values."""

    argument: int
    hides: bool | None  # of an i1 mask: which truth hides a key; None: numbers up to LEAST do
    guarded: tuple[int, int, int]  # queries, keys, values


def attention_mask(text: str) -> AttentionMask | None:
    """Returns the mask that an attention adds to its scores or selects by; None if there is none.

    Also None if a hidden key might change the result in another way than by its weight, which is 0. Raises
    CandidateError(BIND) for text that is not a fusion.
    """
    with ir.Context(), ir.Location.unknown():
        module = parse_fusion(text)  # its operations live as long as it does
        return _Search(fusion_function(module)).mask()


def visible_band(mask: AttentionMask, numbers: Array) -> tuple[int, int] | None:
    """Returns (first, last) such that row i of the mask hides all keys outside of i + first to i + last.

    ``numbers``: the mask, (queries, keys) or one of these for each head. None if a row shows no key, or if
    all keys are within the band.
    """
    heads = numbers.reshape(-1, *numbers.shape[-2:])
    if mask.hides is None:
        hidden = heads <= LEAST
        seen = heads >= SEEN
    else:
        hidden = (heads != 0) == mask.hides
        seen = ~hidden
    if not seen.any(axis=-1).all():
        return None
    visible: Array = ~np.asarray(hidden.all(axis=0))
    queries, count = visible.shape
    rows = np.arange(queries)
    first = int((visible.argmax(axis=1) - rows).min())
    last = int((count - 1 - visible[:, ::-1].argmax(axis=1) - rows).max())
    if first > 1 - queries or last < count - 1:
        return (first, last)
    return None


def with_visible_band(text: str, mask: AttentionMask, band: tuple[int, int]) -> str:
    """Returns the attention's MLIR text with the visible band recorded on its mask argument.

    Row i sees keys i + band[0] to i + band[1]. Marks the arguments ``mask.guarded``, too. Raises
    CandidateError(BIND) for text that is not a fusion.
    """
    with ir.Context(), ir.Location.unknown():
        module = parse_fusion(text)
        function = fusion_function(module)
        set_argument_attribute(function, mask.argument, VISIBLE, ir.DenseI64ArrayAttr.get(list(band)))
        for number in mask.guarded:
            set_argument_attribute(function, number, GUARDED, ir.UnitAttr.get())
        return str(module)


def with_hidden_keys(text: str, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
    """Returns a fusion's inputs, with a mask that hides all keys outside of the visible band in ``text``.

    Returns ``inputs`` unchanged if the text records no visible band. Raises CandidateError(BIND) for text
    that records one and is not a fusion.
    """
    mask = attention_mask(text) if VISIBLE in text else None
    if mask is None:
        return inputs
    with ir.Context(), ir.Location.unknown():
        module = parse_fusion(text)
        marks = argument_attributes(fusion_function(module), mask.argument)
        first, last = ir.DenseI64ArrayAttr(marks[VISIBLE])
    numbers = inputs[mask.argument]
    rows, keys = np.ogrid[: numbers.shape[-2], : numbers.shape[-1]]
    seen = np.broadcast_to((keys - rows >= first) & (keys - rows <= last), numbers.shape)
    if mask.hides is None:
        shown = np.where(seen, numbers, numbers.dtype.type(-np.inf))
    else:
        shown = seen != mask.hides
    return (*inputs[: mask.argument], np.asarray(shown), *inputs[mask.argument + 1 :])


@dataclass(frozen=True)
class _Known:
    """What is known of a value: the state of its elements, or its number if it is one constant."""

    state: _State | None = None
    number: float | None = None
    argument: int | None = None  # of a MASK: number of the function's argument


class _Search:
    def __init__(self, function: Op) -> None:
        self.function = function
        self.tensors: dict[Value, _Known] = {}
        self.hides: dict[int, bool | None] = {}  # by argument, of masks that were applied

    def mask(self) -> AttentionMask | None:
        products = contractions(self.function)
        if len(products) != 2:
            return None
        scores, mixed = products  # Q K^T, and weights V
        read = list(map(_argument, (*list(scores.operands)[:2], mixed.operands[1])))
        guarded = tuple(number for number in read if number is not None)
        self.tensors[scores.results[0]] = _Known(_State.SCORE)
        self.factor = float(scores.operands[0].type.shape[-1])
        for op in self.function.regions[0].blocks[0].operations:
            if op.operation.name == "linalg.generic":
                self._follow(op.operation)
        weights = self.tensors.get(mixed.operands[0])
        if len(guarded) != 3 or weights != _Known(_State.ZERO) or len(self.hides) != 1:
            return None
        ((argument, hides),) = self.hides.items()
        if self.factor <= MOST_FACTOR:
            return AttentionMask(argument, hides, guarded)
        return None

    def _follow(self, op: Op) -> None:
        block = op.regions[0].blocks[0]
        maps = indexing_maps(op)
        is_reduced = "reduction" in str(op.attributes["iterator_types"])
        known: dict[Value, _Known] = {}
        inputs = len(op.operands) - len(op.results)
        for operand, argument, mapping in zip(op.operands, block.arguments, maps, strict=True):
            loops = [index.position for index in mapping.results if isinstance(index, ir.AffineDimExpr)]
            known_value = self.tensors.get(operand)
            if argument.arg_number >= inputs:
                known_value = _Known(_State.START) if is_reduced else None
            elif known_value is None:
                known_value = self._constant_or_mask(operand, loops, mapping.n_dims)
            # otherwise transposed or broadcast: no longer understood
            elif loops != list(range(mapping.n_dims - (known_value.state in _OF_ROW))):
                known_value = None
            if known_value is not None:
                known[argument] = known_value
        *ops, end = ops_in(block)
        for step in ops:
            known_value = self._step(step, known)
            if known_value is not None:
                known[step.results[0]] = known_value
        for result, yielded, mapping in zip(op.results, end.operands, maps[inputs:], strict=True):
            known_value = known.get(yielded)
            loops = [index.position for index in mapping.results if isinstance(index, ir.AffineDimExpr)]
            if known_value is not None and loops == list(range(mapping.n_dims - is_reduced)):
                self.tensors[result] = known_value

    def _constant_or_mask(self, operand: Value, loops: list[int], count: int) -> _Known | None:
        argument = _argument(operand)
        is_of_scores = len(loops) >= 2 and loops == list(range(count - len(loops), count))
        if argument is not None and is_of_scores:
            return _Known(_State.MASK, argument=argument)
        return _number(operand)

    def _step(self, op: Op, known: Mapping[Value, _Known]) -> _Known | None:
        maybe_known = [known.get(operand) or _number(operand) for operand in op.operands]
        if any(operand_state is None for operand_state in maybe_known) or len(op.results) != 1:
            return None
        operands = [operand_state for operand_state in maybe_known if operand_state is not None]
        states = [operand.state for operand in operands]
        if op.name in _CASTS:
            return operands[0]
        # a scaled score
        if op.name in ("arith.mulf", "arith.divf") and _State.SCORE in states and None in states:
            number = next(operand.number for operand in operands if operand.state is None) or 0.0
            if op.name == "arith.divf" and (states[1] is not None or not number):
                return None
            self.factor *= max(abs(number if op.name == "arith.mulf" else 1 / number), 1.0)
            return _Known(_State.SCORE)
        if op.name == "arith.cmpf" and states == [_State.HIDDEN, None]:
            is_equal = ir.IntegerAttr(op.attributes["predicate"]).value == _EQUAL
            if is_equal and _is_least(operands[1]):
                return _Known(_State.IS_LEAST)
            return None
        if op.name == "arith.select":
            return self._selected(operands)
        state = _STEPS.get((op.name, *states))
        if state is _State.HIDDEN:
            self._apply(next(operand for operand in operands if operand.state is _State.MASK), None)
        if state is None:
            return None
        return _Known(state)

    def _selected(self, operands: list[_Known]) -> _Known | None:
        condition, left, right = operands
        # no visible key ? 0 : weight: a row without keys becomes 0
        if condition.state is _State.NONE_SEEN and left.number == 0 and left.state is None:
            if right.state is _State.ZERO:
                return right
            return None
        # mask ? score : least, or mask ? least : score (then a true element hides)
        pair = (left, right) if left.state is _State.SCORE else (right, left)
        if condition.state is not _State.MASK or pair[0].state is not _State.SCORE or not _is_least(pair[1]):
            return None
        self._apply(condition, left.state is not _State.SCORE)
        return _Known(_State.HIDDEN)

    def _apply(self, mask: _Known, hides: bool | None) -> None:
        assert mask.argument is not None
        self.hides[mask.argument] = hides


def _is_least(known: _Known) -> bool:
    return known.state is None and known.number is not None and known.number <= LEAST


def _argument(value: Value) -> int | None:
    tensor = op_of(value, "bufferization.to_tensor")
    memory = None if tensor is None else tensor.operands[0]
    return memory.arg_number if isinstance(memory, ir.BlockArgument) else None


def _number(value: Value) -> _Known | None:
    op = op_of(value, "arith.constant", *_CASTS)
    if op is not None and op.name in _CASTS:
        return _number(op.operands[0])
    constant = None if op is None else op.attributes["value"]
    if isinstance(constant, ir.FloatAttr | ir.IntegerAttr | ir.BoolAttr):
        return _Known(number=float(constant.value))
    return None
