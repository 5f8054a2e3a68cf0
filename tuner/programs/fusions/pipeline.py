"""Makes a list of fusions of a payload: normal forms, hoisting, places in memory, formation, outlining."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tuner.core.errors import UsageError
from tuner.core.fusions import ATTENTION, WEIGHT, Buffer, FusedProgram, Fusion, View
from tuner.mlir.bindings import Op, ir
from tuner.mlir.hidden_keys import attention_mask, visible_band, with_visible_band
from tuner.mlir.ir.reading import name_of
from tuner.mlir.reference.fusion_reference import evaluate_tensors
from tuner.mlir.transform import new_context
from tuner.programs.fusions import matmul_forms, normal_forms
from tuner.programs.fusions.formation import Members, copying_fusion, form_fusions, join_attention
from tuner.programs.fusions.generics import reshape_fills
from tuner.programs.fusions.hoisting import hoist, init_parts
from tuner.programs.fusions.memory_plan import BufferPlan, placed, settle
from tuner.programs.fusions.operations import users
from tuner.programs.fusions.outlining import outlined
from tuner.programs.fusions.payload import (
    NotFused,
    TensorPayload,
    Weight,
    read_payload,
    take_weights,
    tensor_type,
)
from tuner.programs.fusions.producer_shapes import take_shapes_of_producers
from tuner.programs.lowering.resources import split_payload


@dataclass(frozen=True)
class FormedProgram:
    """A payload as fusions, and its weights; ``program.init``, unless "", computes weight buffers of them."""

    program: FusedProgram
    weights: tuple[np.ndarray, ...]
    entry: str  # name of the function


@dataclass(frozen=True, eq=False)
class FormedText:
    """The fusions of a program's text alone, without the data of its constants."""

    entry: str  # name of the function
    program: FusedProgram
    weights: tuple[Weight, ...]

    def with_visible_keys(self, resources: Callable[[], Mapping[str, bytes]]) -> "FormedText":
        """Returns the program with the visible keys of each attention whose mask's data ``resources`` has.

        ``resources`` is called only for a program with attentions.
        """
        program = self.program
        if not any(each.kind == ATTENTION for each in program.fusions):
            return self
        data = resources()
        is_known = (each.values is not None or each.name in data for each in self.weights)
        pairs = zip(self.weights, is_known, strict=True)
        weights = [each.array(data) if known else None for each, known in pairs]
        with new_context(), ir.Location.unknown():
            fusions = _marked_fusions(program.fusions, program.buffers, program.init, weights)
        return replace(self, program=replace(program, fusions=fusions))

    def with_data(self, resources: Mapping[str, bytes]) -> FormedProgram:
        """Returns the program with its weights; raises CandidateError(BIND) where data are missing."""
        return FormedProgram(self.program, tuple(each.array(resources) for each in self.weights), self.entry)


def fuse_program(
    text: str, entry: str | None = None, *, keeps_forks: bool = False, multiplies_pairs: bool = False
) -> FormedProgram | NotFused:
    """Returns a payload as fusions; NotFused for one that must be compiled as a whole.

    ``keeps_forks``, for a GPU: an operation that reads two independent products joins neither, so that both
    can run at once; attention is not joined; reductions over another dimension than the last become loops.
    Convolutions of bf16 and f16 are widened to f32; with ``multiplies_pairs`` those over several channels
    keep bf16 operands, for dot products of pairs. Raises CandidateError(BIND) for text that does not parse,
    and for an entry that is not there.
    """
    split = split_payload(text)
    formed = form_text(split.text, entry, keeps_forks=keeps_forks, multiplies_pairs=multiplies_pairs)
    if isinstance(formed, NotFused):
        return formed
    return formed.with_visible_keys(lambda: split.resources).with_data(split.resources)


def form_text(
    text: str, entry: str | None, *, keeps_forks: bool = False, multiplies_pairs: bool = False
) -> FormedText | NotFused:
    """Returns the fusions of MLIR text that no data follow; arguments and errors as of ``fuse_program``."""
    with new_context(), ir.Location.unknown():
        payload = read_payload(text, entry)
        if isinstance(payload, NotFused):
            return payload
        arguments = tuple(tensor_type(each.type) for each in payload.block.arguments)
        # forms: the passes below look for generics, ``linalg.fill`` and arguments, not constants
        normal_forms.prepare(payload.module)
        weights = take_weights(payload)
        normal_forms.generalize(payload.module)
        normal_forms.drop_unused_results(payload)
        # matmuls and types: extensions of operands and truncations of sums are generics by now; what is
        # transposed, moved or extended of weights alone is computed at compile time by ``hoist``
        matmul_forms.transpose_operands(payload)
        matmul_forms.narrow_operands(payload)
        matmul_forms.narrow_sums(payload)
        normal_forms.pointwise_as_matmuls(payload)
        normal_forms.widen_convolutions(payload, keeps_pairs=multiplies_pairs)
        # shapes: folding makes reshapes, also of fills, which ``begin_with_zeros`` must see as fills of 0;
        # ``merge_batches`` needs its zeros
        normal_forms.fold_unit_dimensions(payload.module)
        reshape_fills(payload)
        matmul_forms.begin_with_zeros(payload)
        matmul_forms.merge_batches(payload)
        take_shapes_of_producers(payload)
        normal_forms.clean_up(payload.module)
        # weights, last: ``hoist`` moves out what the passes before compute of weights alone
        normal_forms.widen_parameters(payload, len(arguments))
        init, kept = hoist(payload, len(arguments))
        if not init:  # with init, weights are its inputs: all stay
            weights = tuple(weights[number] for number in kept)
        fusions, plan = _fusions(payload, len(arguments), keeps_forks=keeps_forks)
        program = FusedProgram(fusions, tuple(plan.buffers), arguments, payload.results, init)
        return FormedText(name_of(payload.function), program, weights)


def _fusions(
    payload: TensorPayload, first_weight: int, *, keeps_forks: bool
) -> tuple[tuple[Fusion, ...], BufferPlan]:
    _broadcast_for_each_user(payload)
    plan = placed(payload, first_weight)
    formed = form_fusions(payload.ops, plan.computed, keeps_forks=keeps_forks)
    if not keeps_forks:  # no strategy of a device is for an attention
        formed = join_attention(formed, payload.ops)
    outputs = {value for members in formed for value in members.root.results}
    settle(plan, payload, outputs)
    by_root: dict[Op, Members] = {members.root: members for members in formed}
    weights = [at for at, buffer in enumerate(plan.buffers) if buffer.owner == WEIGHT]
    fusions = []
    for op in (*payload.ops, payload.end):
        if op in by_root:
            fusions.append(outlined(by_root[op], plan.views, weights))
        fusions += [copying_fusion(copy, plan.views, weights) for copy in plan.copies.get(op, ())]
    return tuple(fusions), plan


def _broadcast_for_each_user(payload: TensorPayload) -> None:
    """Clones broadcasts that several operations read, so that each can join its reader's fusion."""
    for op in payload.ops:
        if matmul_forms.is_broadcast(op):
            for user in users(op.results[0])[1:]:
                with ir.InsertionPoint(user), op.location:
                    copy = op.clone()
                for number, operand in enumerate(user.operands):
                    if operand == op.results[0]:
                        user.operands[number] = copy.results[0]


# A mask that hides the same keys at each call, as a causal one, is computed at compile time; its numbers say
# which keys no row sees: ``tuner.mlir.hidden_keys``.

Array = npt.NDArray[np.generic]
MOST_ELEMENTS = 1 << 24  # of a mask that is computed here: 2 s


def _marked_fusions(
    fusions: Sequence[Fusion], buffers: Sequence[Buffer], init: str, weights: Sequence[Array | None]
) -> tuple[Fusion, ...]:
    """Returns fusions, attentions with the keys that their masks show, where these are known.

    ``init``: MLIR that computes the weight buffers from ``weights``; "" where ``weights`` are the buffers. A
    weight that is None has no data here.
    """
    known: dict[int, Array | None] = {}

    def mask_of(view: View) -> Array | None:
        buffer = buffers[view.buffer]
        if buffer.owner != WEIGHT or np.prod(buffer.type.shape) > MOST_ELEMENTS:
            return None
        if buffer.number not in known:
            known[buffer.number] = _computed(init, weights, buffer.number)
        flat = known[buffer.number]
        if flat is None:
            return None
        steps = [each * flat.itemsize for each in view.strides]
        return np.lib.stride_tricks.as_strided(flat[view.offset :], view.type.shape, steps, writeable=False)

    return tuple(_marked(each, mask_of) if each.kind == ATTENTION else each for each in fusions)


def _marked(fusion: Fusion, mask_of: Callable[[View], Array | None]) -> Fusion:
    mask = attention_mask(fusion.text)
    numbers = None if mask is None else mask_of(fusion.inputs[mask.argument])
    band = None if mask is None or numbers is None else visible_band(mask, numbers)
    if mask is None or band is None:
        return fusion
    return replace(fusion, text=with_visible_band(fusion.text, mask, band))


def _computed(init: str, weights: Sequence[Array | None], number: int) -> Array | None:
    """Returns the elements of a buffer of weights, in order; None where the reference cannot compute it."""
    if not init:
        weight = weights[number]
        return None if weight is None else np.ascontiguousarray(weight).reshape(-1)
    part = next(each for each in init_parts(init) if number in each.results)
    inputs = tuple(weight for each in part.inputs if (weight := weights[each]) is not None)
    if len(inputs) < len(part.inputs):
        return None
    if not part.text:
        return np.ascontiguousarray(inputs[0]).reshape(-1)
    try:
        tensors = evaluate_tensors(part.text, inputs)
    except UsageError:
        return None
    return np.ascontiguousarray(tensors[part.results.index(number)]).reshape(-1)
