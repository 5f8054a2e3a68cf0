"""``gpu.printf``: prints one text per active lane, in the order of lanes."""

import re

import numpy as np

from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.located_error import unsupported
from tuner.programs.interpret.element_types import signed, unsigned
from tuner.programs.interpret.frame import LaneFrame, Step
from tuner.programs.interpret.scope import Decode, FunctionScope

PLACE = re.compile(r"%(?P<flags>[-+ #0]*[0-9]*(?:\.[0-9]+)?)(?:hh|h|ll|l|z|j|t|L)?(?P<kind>[a-zA-Z%])")
INTEGERS, UNSIGNED, FLOATS = "dic", "uoxX", "fFeEgG"


def printf(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.printf``: passes one text per active lane to the frame's ``write``.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots. Raises CandidateError(COMPILE) if there is not one conversion specifier per
    argument, and for a specifier other than d, i, c, u, o, x, X, f, F, e, E, g and G.
    """
    text = ir.StringAttr(op.attributes["format"]).value
    kinds = [match["kind"] for match in PLACE.finditer(text) if match["kind"] != "%"]
    sources = scope.slots(op.operands)
    known = INTEGERS + UNSIGNED + FLOATS
    if len(kinds) != len(sources) or not set(kinds) <= set(known):
        raise unsupported(
            op, f"format {text!r} with {len(sources)} arguments", f"one of %{', %'.join(known)} for each"
        )
    template = PLACE.sub(lambda match: "%" + match["flags"] + match["kind"].replace("u", "d"), text)

    def step(frame: LaneFrame) -> None:
        columns = []
        for kind, slot in zip(kinds, sources, strict=True):
            values = np.broadcast_to(frame.values[slot], frame.grid.shape)
            if kind not in FLOATS:
                values = unsigned(values) if kind in UNSIGNED else signed(values)
            columns.append(values)
        for block, thread in np.argwhere(np.broadcast_to(frame.mask, frame.grid.shape)):
            frame.write(template % tuple(column[block, thread].item() for column in columns))

    return step


DECODERS: dict[str, Decode] = {"gpu.printf": printf}
