"""Converts a payload to fusions: normal forms, hoisting, places in memory, formation, outlining.

Facts that only the data of constants show, such as which keys a mask hides, are added to the fusions last.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import numpy.typing as npt

from tuner.core.errors import UsageError
from tuner.core.fusions import (
    ATTENTION,
    CONVOLUTION,
    ELEMENTWISE,
    LOOPS,
    QUANTIZED,
    WEIGHT,
    Buffer,
    FusedProgram,
    Fusion,
    View,
)
from tuner.core.problem_classes import MatmulProblem
from tuner.core.quantization import GROUP_MULTIPLE, WEIGHT_BITS, quantized_text
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.facts import fusion_problem, quantization_in
from tuner.mlir.fusions.hidden_keys import attention_mask, visible_band, with_visible_band
from tuner.mlir.fusions.operations import EMPTY, PAD, VIEWS, users
from tuner.mlir.ir.reading import name_of, ops_in
from tuner.mlir.ir.resources import Data, require_data_bytes, resource_sizes, split_payload
from tuner.mlir.reference.fusion_reference import evaluate_tensors
from tuner.mlir.transform import new_context
from tuner.models.fusions import convolution_forms, matmul_forms, normal_forms, widening
from tuner.models.fusions.contractions import contractions_as_matmuls
from tuner.models.fusions.formation import Members, form_fusions, join_attention
from tuner.models.fusions.generics import reshape_fills
from tuner.models.fusions.hoisting import InitPart, hoist, init_parts
from tuner.models.fusions.integer_ranges import range_of
from tuner.models.fusions.outlining import KnownTexts, outlined
from tuner.models.fusions.paddings import join_paddings
from tuner.models.fusions.payload import (
    Constants,
    NotFused,
    TensorPayload,
    Weight,
    read_payload,
    take_weights,
    tensor_type,
)
from tuner.models.fusions.placement import (
    BufferPlan,
    NeededCopy,
    UnorderedError,
    copying_fusion,
    placed,
    settle,
    temporary,
)
from tuner.models.fusions.producer_shapes import take_shapes_of_producers
from tuner.models.fusions.quantized_weights import keep_integers
from tuner.models.fusions.unused_results import drop_unused_results
from tuner.models.fusions.views import moved_loops

Array = npt.NDArray[np.generic]
NARROW_BITS = min(WEIGHT_BITS.values())
NOT_FINITE = "a weight is NaN or infinite, and zeros of padding times it are NaN"
MOST_ELEMENTS = 1 << 24  # of a mask that is computed here: 2 s


@dataclass(frozen=True)
class FormedProgram:
    """A payload as fusions, with the values of its constants.

    If ``program.init`` is not "", it is MLIR that computes the weight buffers from these constants.
    """

    program: FusedProgram
    weights: Constants
    entry: str  # name of the function


@dataclass(frozen=True, eq=False)
class FormedText:
    """A program divided into fusions, before the data of its ``dense_resource`` constants is attached.

    Constants that the text writes out keep their values; ``with_data`` adds the rest.
    """

    entry: str  # name of the function
    program: FusedProgram
    weights: tuple[Weight, ...]

    def with_facts_of_data(self, resources: Mapping[str, Data]) -> "FormedText":
        """Returns the program with facts that depend on constants, as far as ``resources`` has their data.

        The facts are: which keys the mask of an attention shows; whether quantized weights fit in 4 bits;
        whether all their zero points are 0; whether weights of a padded convolution are finite.
        ``resources`` has the data by name; only those that a fact depends on are read.
        """
        program = self.program
        if not any(fusion.kind in (ATTENTION, QUANTIZED) or PAD in fusion.ops for fusion in program.fusions):
            return self
        constants = Constants(self.weights, resources)
        with new_context(), ir.Location.unknown():
            parts = init_parts(program.init) if program.init else ()
            fusions = _marked_fusions(program.fusions, program.buffers, parts, constants)
        return replace(self, program=replace(program, fusions=fusions))

    def with_data(self, resources: Mapping[str, Data]) -> FormedProgram:
        """Returns the program with its constants' values. Raises CandidateError(BIND) for missing data."""
        sizes = resource_sizes(resources)  # no data are read here
        for weight in self.weights:
            weight.require_data(sizes)
            if weight.values is None:
                require_data_bytes(sizes[weight.name], weight.type.shape, weight.type.element)
        return FormedProgram(self.program, Constants(self.weights, resources), self.entry)


def fuse_program(
    text: str,
    entry: str | None = None,
    *,
    keeps_forks: bool = False,
    multiplies_pairs: bool = False,
    multiplies_bytes: bool = False,
) -> FormedProgram | NotFused:
    """Returns a payload, MLIR text with the data of its constants, as fusions.

    Returns NotFused for a program that must be compiled as a whole. ``keeps_forks``, for a GPU: an operation
    that reads two independent products joins neither, so that both can run at once; attention is not joined;
    reductions over another dimension than the last become loops; quantized weights are not kept as integers.
    Convolutions of bf16 and f16 are widened to f32; with ``multiplies_pairs`` those over several channels
    keep bf16 operands, for dot products of pairs. With ``multiplies_bytes`` convolutions of i8 that is
    extended to i32 read i8. Raises CandidateError(BIND) for text that does not parse, for too many
    operations, and for an entry or data of constants that are missing.
    """
    split = split_payload(text)
    formed = form_text(
        split.text,
        entry,
        keeps_forks=keeps_forks,
        multiplies_pairs=multiplies_pairs,
        multiplies_bytes=multiplies_bytes,
    )
    if isinstance(formed, NotFused):
        return formed
    return formed.with_facts_of_data(split.resources).with_data(split.resources)


def form_text(
    text: str,
    entry: str | None,
    *,
    keeps_forks: bool = False,
    multiplies_pairs: bool = False,
    multiplies_bytes: bool = False,
) -> FormedText | NotFused:
    """Converts a payload to fusions; ``text`` is its MLIR without the data of its constants.

    ``entry`` None: ``main``, or the only public function. The flags have the meaning that they have in
    ``fuse_program``. Returns NotFused for a program that must be compiled as a
    whole. Raises CandidateError(BIND) as ``read_payload`` does.
    """
    with new_context(), ir.Location.unknown():
        payload = read_payload(text, entry)
        if isinstance(payload, NotFused):
            return payload
        if payload.new_values and keeps_forks:
            return NotFused("no kernels of a device write an argument in place")
        arguments = tuple(tensor_type(argument.type) for argument in payload.block.arguments)
        # forms: the passes below look for generics, ``linalg.fill`` and arguments, not constants
        normal_forms.prepare(payload.module)
        weights = take_weights(payload)
        normal_forms.generalize(payload.module)
        drop_unused_results(payload)
        # matmuls and types: extensions of operands and truncations of sums are generics by now; what is
        # transposed, moved or extended of weights alone is computed at compile time by ``hoist``
        contractions_as_matmuls(payload)
        matmul_forms.transpose_operands(payload)
        matmul_forms.narrow_operands(payload, of_convolutions=multiplies_bytes)
        matmul_forms.narrow_sums(payload)
        convolution_forms.read_pixels_as_slices(payload)
        convolution_forms.pointwise_as_matmuls(payload)
        convolution_forms.pointwise_as_rows(payload)
        widening.widen_convolutions(payload, keeps_pairs=multiplies_pairs)
        convolution_forms.single_pixels_as_matmuls(payload)
        # shapes: folding makes reshapes, also of fills, which ``begin_with_zeros`` must see as fills of 0;
        # ``merge_batches`` needs its zeros
        normal_forms.fold_unit_dimensions(payload.module)
        reshape_fills(payload)
        matmul_forms.begin_with_zeros(payload)
        matmul_forms.merge_batches(payload)
        take_shapes_of_producers(payload)
        normal_forms.clean_up(payload.module)
        # weights, last: ``hoist`` moves out what the passes before compute of weights alone
        if not keeps_forks:  # no strategy of a device is for integers with scales
            keep_integers(payload, len(arguments))
        widening.widen_parameters(payload, len(arguments))
        init, kept = hoist(payload, len(arguments))
        if not init:  # with init, weights are its inputs: all stay
            weights = tuple(weights[number] for number in kept)
        if not keeps_forks:  # kernels of a device take plain matmuls
            matmul_forms.take_transposes(payload, len(arguments))
        try:
            fusions, plan = _fusions(payload, len(arguments), keeps_forks=keeps_forks)
        except UnorderedError:
            return NotFused("new values of arguments are each other's old ones")
        changed = tuple(sorted(payload.new_values))
        program = FusedProgram(fusions, tuple(plan.buffers), arguments, payload.results, init, changed)
        return FormedText(name_of(payload.function), program, weights)


def _fusions(
    payload: TensorPayload, first_weight: int, *, keeps_forks: bool
) -> tuple[tuple[Fusion, ...], BufferPlan]:
    _broadcast_for_each_user(payload)
    paddings: tuple[Op, ...] = ()
    if not keeps_forks:  # no strategy of a device is for padding that is not in memory
        paddings = join_paddings(payload, first_weight)
    plan = placed(payload, first_weight, paddings)
    formed = form_fusions(payload.ops, plan.computed, paddings, keeps_forks=keeps_forks)
    if not keeps_forks:  # no strategy of a device is for an attention
        formed = join_attention(formed, payload.ops)
    outputs: set[Value] = set()
    for members in formed:
        outputs.update(members.root.results)
    settle(plan, payload, outputs)
    by_root: dict[Op, Members] = {members.root: members for members in formed}
    weights = frozenset(at for at, buffer in enumerate(plan.buffers) if buffer.owner == WEIGHT)
    known: KnownTexts = {}
    fusions = []
    for op in (*payload.ops, payload.end):
        # before the operation: a write of rows begins with a copy
        fusions += [copying_fusion(copy, plan.views, weights) for copy in plan.copies.get(op, ())]
        if op in by_root and by_root[op].kind == QUANTIZED:
            fusions += _quantized(by_root[op], plan, weights)
        elif op in by_root:
            fusions += _outlined(by_root[op], plan, weights, known)
    return tuple(fusions), plan


def _outlined(members: Members, plan: BufferPlan, weights: frozenset[int], known: KnownTexts) -> list[Fusion]:
    """Returns the fusion of ``members``; before it the transposes of operands that its schedules need."""
    fusion = outlined(members, plan.views, weights, known)
    products = list(filter(matmul_forms.has_transposed_operand, members.ops))
    if not products or _is_matmul(fusion):
        return [fusion]
    fusions = []
    for transpose in chain.from_iterable(map(matmul_forms.make_plain, products)):
        plan.views[transpose.results[0]] = temporary(plan, tensor_type(transpose.results[0].type))
        fusions.append(outlined(Members(ELEMENTWISE, (transpose,)), plan.views, weights, known))
    return [*fusions, outlined(members, plan.views, weights, known)]


def _is_matmul(fusion: Fusion) -> bool:
    """Returns whether the strategies of matmuls are for a fusion."""
    try:
        return isinstance(fusion_problem(fusion).scheduled_as, MatmulProblem)
    except UsageError:  # no strategy is for its types
        return False


def _quantized(members: Members, plan: BufferPlan, weights: frozenset[int]) -> list[Fusion]:
    """Returns the fusion of a quantized matmul; before and after it copies of what is not contiguous."""
    a = members.ops[0].operands[0]
    result = members.root.results[0]
    places = dict(plan.views)
    before = []
    after = []
    if not places[a].is_contiguous:
        target = temporary(plan, tensor_type(a.type))
        before = [copying_fusion(NeededCopy(a, target), plan.views, weights)]
        places[a] = target
    home = places[result]
    if not home.is_contiguous:
        places[result] = temporary(plan, tensor_type(result.type))
        after = [copying_fusion(NeededCopy(result, home), places, weights)]
    return [*before, outlined(members, places, weights, {}), *after]


def _broadcast_for_each_user(payload: TensorPayload) -> None:
    """Clones broadcasts that several operations read, so that each can join its reader's fusion."""
    for op in payload.ops:
        if matmul_forms.is_broadcast(op):
            for user in users(op.results[0])[1:]:
                with ir.InsertionPoint(user), op.location:
                    copy = op.clone()
                for index, operand in enumerate(user.operands):
                    if operand == op.results[0]:
                        user.operands[index] = copy.results[0]


# A mask that hides the same keys at each call, as a causal one, is computed at compile time; its numbers say
# which keys no row sees: ``tuner.mlir.fusions.hidden_keys``.


def _marked_fusions(
    fusions: Sequence[Fusion], buffers: Sequence[Buffer], parts: Sequence[InitPart], weights: Constants
) -> tuple[Fusion, ...]:
    """Returns fusions with facts that depend on the weights' numbers.

    Of masks, padding and quantized matmuls. ``parts``: of the MLIR that computes the weight buffers from
    ``weights``; () where ``weights`` are the buffers. Some weights may have no data here: nothing is marked
    by these.
    """
    known: dict[int, Array | None] = {}

    def mask_of(view: View) -> Array | None:
        buffer = buffers[view.buffer]
        if buffer.owner != WEIGHT or np.prod(buffer.type.shape) > MOST_ELEMENTS:
            return None
        if buffer.number not in known:
            known[buffer.number] = _computed(parts, weights, buffer.number)
        flat = known[buffer.number]
        if flat is None:
            return None
        steps = [stride * flat.itemsize for stride in view.strides]
        return np.lib.stride_tricks.as_strided(flat[view.offset :], view.type.shape, steps, writeable=False)

    def integers_of(view: View) -> tuple[int, int] | None:
        return _range(parts, weights, buffers[view.buffer].number)

    def is_finite(view: View) -> bool:
        buffer = buffers[view.buffer]
        return buffer.owner != WEIGHT or _is_finite(parts, weights, buffer.number)

    marks: dict[str, Callable[[Fusion], Fusion]] = {
        ATTENTION: lambda fusion: _marked(fusion, mask_of),
        CONVOLUTION: lambda fusion: _with_finite_weights(fusion, is_finite),
        QUANTIZED: lambda fusion: _narrowed(fusion, integers_of),
    }
    return tuple(marks[fusion.kind](fusion) if fusion.kind in marks else fusion for fusion in fusions)


def _marked(fusion: Fusion, mask_of: Callable[[View], Array | None]) -> Fusion:
    mask = attention_mask(fusion.text)
    numbers = None if mask is None else mask_of(fusion.inputs[mask.argument])
    band = None if mask is None or numbers is None else visible_band(mask, numbers)
    if mask is None or band is None:
        return fusion
    return replace(fusion, text=with_visible_band(fusion.text, mask, band))


def _with_finite_weights(fusion: Fusion, is_finite: Callable[[View], bool]) -> Fusion:
    """Returns a convolution that padding has joined as loops if a weight is NaN or infinite.

    Zeros of padding times such a weight are NaN, and schedules do not multiply all of the padding.
    """
    if PAD not in fusion.ops or all(map(is_finite, fusion.inputs)):
        return fusion
    return replace(fusion, kind=LOOPS, reason=NOT_FINITE)


def _is_finite(parts: Sequence[InitPart], weights: Constants, number: int) -> bool:
    """Returns whether the constants that a weight buffer is computed of have no NaN and no infinity.

    True for constants without data. What is computed of them is not looked at: it takes 30 ms a buffer.
    """
    for source in _part_of(parts, number).inputs:
        numbers = weights.known(source)
        if numbers is not None and not np.isfinite(numbers).all():
            return False
    return True


def _part_of(parts: Sequence[InitPart], number: int) -> InitPart:
    """Returns the part of ``init`` that computes weight buffer ``number``.

    If no part does, one with the text "", which returns its input: the buffer is a constant itself.
    """
    for part in parts:
        if number in part.results:
            return part
    return InitPart("", (number,), (number,))


def _computed(parts: Sequence[InitPart], weights: Constants, number: int) -> Array | None:
    """Returns the elements of a weight buffer, flat.

    None where data are missing or the reference cannot compute it.
    """
    part = _part_of(parts, number)
    inputs = tuple(weight for input_ in part.inputs if (weight := weights.known(input_)) is not None)
    if len(inputs) < len(part.inputs):
        return None
    if not part.text:
        return np.ascontiguousarray(part.moved(inputs[0])).reshape(-1)
    try:
        tensors = evaluate_tensors(part.text, inputs)
    except UsageError:
        return None
    return np.ascontiguousarray(tensors[part.results.index(number)]).reshape(-1)


# Weights of 4 bits come as i8 from -8 to 7, and symmetric ones with zero points that are all 0: only their
# numbers say so.


def _narrowed(fusion: Fusion, integers_of: Callable[[View], tuple[int, int] | None]) -> Fusion:
    """Returns a quantized matmul with as few bits as its integers need, and no zero points of 0."""
    form = quantization_in(fusion.text)
    inputs = fusion.inputs
    if form.has_zero_points and integers_of(inputs[3]) == (0, 0):
        form = replace(form, has_zero_points=False)
        inputs = inputs[:3]
    least = -(1 << NARROW_BITS - 1)
    greatest = (1 << NARROW_BITS - 1) - 1
    ranges = list(map(integers_of, (inputs[1], *inputs[3:])))
    has_format = form.group % GROUP_MULTIPLE == 0
    if has_format and all(
        range_ is not None and least <= range_[0] and range_[1] <= greatest for range_ in ranges
    ):
        form = replace(form, bits=NARROW_BITS)
    (m, _), (n, k), output = inputs[0].type.shape, inputs[1].type.shape, fusion.outputs[0].type.element
    text = quantized_text((m, n, k), inputs[0].type.element, form, output)
    return replace(fusion, text=text, inputs=inputs)


def _range(parts: Sequence[InitPart], weights: Constants, number: int) -> tuple[int, int] | None:
    """Returns the least and the greatest integer of a weight buffer; None where they are not known.

    A buffer whose part computes other numbers than those of one weight is not evaluated here: its operations
    alone say which numbers these can be.
    """
    part = _part_of(parts, number)
    source = part.inputs[0] if len(part.inputs) == 1 else None
    if part.text and (source is None or not _only_moves(part.text)):
        module = ir.Module.parse(part.text)
        *_, end = _ops_of(module)
        return range_of(end.operands[part.results.index(number)])
    weight = None if source is None else weights.known(source)
    if weight is None:
        return None
    return (int(weight.min()), int(weight.max()))


def _only_moves(text: str) -> bool:
    """Returns whether a part of ``init`` reshapes, transposes and repeats what it takes, and nothing else."""
    module = ir.Module.parse(text)
    *ops, _ = _ops_of(module)
    return all(op.name in (*VIEWS, EMPTY) or moved_loops(op) is not None for op in ops)


def _ops_of(module: ir.Module) -> list[Op]:
    """Returns the operations of the one function of a module, which must be kept as long as these."""
    return list(ops_in(module.body.operations[0].operation.regions[0].blocks[0]))
