"""Marks the attentions of a program whose mask hides the same keys at each call, as a causal mask does.

The mask is computed at compile time; its numbers say which keys no row sees: ``tuner.mlir.hidden_keys``.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tuner.core.errors import UsageError
from tuner.core.fusions import ATTENTION, WEIGHT, Buffer, Fusion, View
from tuner.mlir.hidden_keys import attention_mask, visible_band, with_visible_band
from tuner.mlir.reference.fusion_reference import evaluate_tensors
from tuner.programs.fusions.hoisting import init_parts

Array = npt.NDArray[np.generic]
MOST_ELEMENTS = 1 << 24  # of a mask that is computed here: 2 s


def mark_visible_keys(
    fusions: Sequence[Fusion], buffers: Sequence[Buffer], init: str, weights: Sequence[Array | None]
) -> tuple[Fusion, ...]:
    """Returns fusions, attentions with the keys that their masks show, where these are known.

    ``init`` computes the buffers of weights from ``weights``; "": they are the buffers. None: not known here.
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
        made = evaluate_tensors(part.text, inputs)
    except UsageError:
        return None
    return np.ascontiguousarray(made[part.results.index(number)]).reshape(-1)
