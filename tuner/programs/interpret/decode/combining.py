"""The binary functions of reductions: over threads, subgroups and vectors."""

from collections.abc import Callable
from typing import TypeAlias

from tuner.mlir.bindings import Op
from tuner.mlir.rewrite.located_error import unsupported
from tuner.programs.interpret.decode import floats, integers
from tuner.programs.interpret.element_types import Array
from tuner.programs.interpret.scope import FunctionScope

Combine: TypeAlias = Callable[[Array, Array], Array]
INTEGERS: dict[str, Combine] = {
    **{name: integers.BINARY[name] for name in ("minui", "minsi", "maxui", "maxsi")},
    **{name: integers.BINARY[f"{name}i"] for name in ("add", "mul", "and", "or", "xor")},
}
FLOATS: dict[str, Combine] = {
    **{name: floats.BINARY[name] for name in ("minnumf", "maxnumf", "minimumf", "maximumf")},
    **{name: floats.BINARY[f"{name}f"] for name in ("add", "mul")},
}


def combination(op: Op, scope: FunctionScope, kind: str) -> Combine:
    """Returns the function that combines two arrays elementwise in a reduction, such as addition or maximum.

    Args:
        op: the reduction, whose result type decides between integers and floats.
        scope: the function being decoded.
        kind: the printed attribute, such as ``#gpu<all_reduce_op add>`` or ``#vector.kind<add>``.

    Raises CandidateError(COMPILE) for an unsupported kind.
    """
    name = kind.removesuffix(">").replace("<", " ").split()[-1]  # #gpu<all_reduce_op add>, #vector.kind<add>
    known = INTEGERS if scope.element(op, op.results[0].type).dtype.kind in "ib" else FLOATS
    if name not in known:
        raise unsupported(op, name, ", ".join(known))
    return known[name]
