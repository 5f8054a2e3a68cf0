"""Makes a list of fusions of a payload: normal forms, hoisting, places in memory, formation, outlining."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tuner.core.fusions import ATTENTION, WEIGHT, FusedProgram, Fusion
from tuner.mlir.bindings import Op, ir
from tuner.mlir.ir.reading import name_of
from tuner.mlir.transform import new_context
from tuner.programs.fusions.formation import Members, copying_fusion, form_fusions, join_attention
from tuner.programs.fusions.generics import reshape_fills
from tuner.programs.fusions.hoisting import hoist
from tuner.programs.fusions.matmul_forms import (
    begin_with_zeros,
    broadcast_for_each_user,
    merge_batches,
    narrow_operands,
    narrow_sums,
    transpose_operands,
)
from tuner.programs.fusions.memory_plan import BufferPlan, placed, settle
from tuner.programs.fusions.normal_forms import (
    clean_up,
    drop_unused_results,
    fold_unit_dimensions,
    generalize,
    pointwise_as_matmuls,
    prepare,
    widen_convolutions,
    widen_parameters,
)
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
from tuner.programs.fusions.visible_keys import mark_visible_keys
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

    def with_visible_keys(self, resources: Mapping[str, bytes]) -> "FormedText":
        """Returns the program with what masks show to its attentions, where ``resources`` has their data."""
        program = self.program
        if not any(each.kind == ATTENTION for each in program.fusions):
            return self
        is_known = [each.values is not None or each.name in resources for each in self.weights]
        weights = [
            each.array(resources) if known else None
            for each, known in zip(self.weights, is_known, strict=True)
        ]
        with new_context(), ir.Location.unknown():
            fusions = mark_visible_keys(program.fusions, program.buffers, program.init, weights)
        return replace(self, program=replace(program, fusions=fusions))

    def with_data(self, resources: Mapping[str, bytes]) -> FormedProgram:
        """Returns the program with its weights; raises CandidateError(BIND) where data are missing."""
        return FormedProgram(self.program, tuple(each.array(resources) for each in self.weights), self.entry)


def fuse_program(
    text: str, entry: str | None = None, *, keeps_forks: bool = False, multiplies_pairs: bool = False
) -> FormedProgram | NotFused:
    """Returns a payload as fusions; NotFused for one that must be compiled as a whole.

    ``keeps_forks``, for a GPU: an operation that reads two independent products joins neither, so that both
    can run at once, and attention is not joined. Convolutions of bf16 and f16 are widened to f32; with
    ``multiplies_pairs`` those over several channels keep bf16 operands, for dot products of pairs. Raises
    CandidateError(BIND) for text that does not parse, and for an entry that is not there.
    """
    split = split_payload(text)
    formed = form_text(split.text, entry, keeps_forks=keeps_forks, multiplies_pairs=multiplies_pairs)
    if isinstance(formed, NotFused):
        return formed
    return formed.with_visible_keys(split.resources).with_data(split.resources)


def form_text(
    text: str, entry: str | None, *, keeps_forks: bool = False, multiplies_pairs: bool = False
) -> FormedText | NotFused:
    """Returns the fusions of MLIR text that no data follow; arguments and errors as of ``fuse_program``."""
    with new_context(), ir.Location.unknown():
        payload = read_payload(text, entry)
        if isinstance(payload, NotFused):
            return payload
        arguments = tuple(tensor_type(each.type) for each in payload.block.arguments)
        prepare(payload.module)
        weights = take_weights(payload)
        generalize(payload.module)
        drop_unused_results(payload)
        transpose_operands(payload)
        narrow_operands(payload)
        narrow_sums(payload)
        pointwise_as_matmuls(payload)
        widen_convolutions(payload, keeps_pairs=multiplies_pairs)
        fold_unit_dimensions(payload.module)
        reshape_fills(payload)
        begin_with_zeros(payload)
        merge_batches(payload)
        take_shapes_of_producers(payload)
        clean_up(payload.module)
        widen_parameters(payload, len(arguments))
        init, kept = hoist(payload, len(arguments))
        if not init:
            weights = tuple(weights[number] for number in kept)
        fusions, plan = _fusions(payload, len(arguments), keeps_forks=keeps_forks)
        program = FusedProgram(fusions, tuple(plan.buffers), arguments, payload.results, init)
        return FormedText(name_of(payload.function), program, weights)


def _fusions(
    payload: TensorPayload, first_weight: int, *, keeps_forks: bool
) -> tuple[tuple[Fusion, ...], BufferPlan]:
    broadcast_for_each_user(payload)
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
