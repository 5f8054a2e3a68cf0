"""What each transform op and each pass shows in its docstring is what it does."""

import functools
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from tests.mlir.documented_ir import missing, parts
from tests.mlir.kernels import changed
from tests.mlir.ops.one_op import apply_line
from tests.mlir.ops.test_every_op import SHOWN
from tests.texts import text_beside
from tuner.gpu.mlir.kernel_passes import call_intrinsics_directly
from tuner.mlir.cpu.amx_emulation import tiles_as_vectors
from tuner.mlir.cpu.batch_loops import with_batch_loops
from tuner.mlir.dialect import all_ops
from tuner.mlir.ir.dot_products import lower_dot_products
from tuner.mlir.math.lowering import lower_math

# Pass -> the module that it changes, or that it returns as a text, and its further arguments.
FILES = ("device_ops", "kernel_memory", "lowering", "modules", "shared_memory")
MODULES = (
    "mlir.cpu.test_lowering",
    "mlir.cpu.test_masks",
    "mlir.cpu.test_stack_memory",
    "mlir.ir.test_memrefs",
    *(f"gpu.mlir.test_{name}" for name in FILES),
)
OF_PASSES: dict[Callable[..., Any], tuple[Any, ...]] = {
    **{change: of for name in MODULES for change, of in import_module(f"tests.{name}").SHOWN.items()},
    call_intrinsics_directly: (text_beside(__file__, "SQRT"),),
    lower_math: (text_beside(__file__, "RSQRT"),),
    tiles_as_vectors: (text_beside(__file__, "TILE"),),
    lower_dot_products: (text_beside(__file__, "DOT"),),
}


def shown_but_not_there(documented: Any, change: Callable[[Any], object], text: str) -> list[str]:
    """Returns the lines of the docstring of a function's or class's module that are not what it does."""
    before, after, result = changed(change, text)
    docstring = documented.__doc__ or ""
    if not parts(docstring):
        docstring = sys.modules[documented.__module__].__doc__ or ""
    return missing(docstring, before, result if isinstance(result, str) else after)


@pytest.mark.parametrize("op", all_ops(), ids=lambda op: op.OPERATION_NAME)
def test_the_ir_of_an_op_is_real(op: Any) -> None:
    line, payload = SHOWN[op.OPERATION_NAME.partition(".")[2]]
    assert shown_but_not_there(op, functools.partial(apply_line, line), payload) == []


@pytest.mark.parametrize("change", OF_PASSES, ids=lambda change: change.__name__)
def test_the_ir_of_a_pass_is_real(change: Callable[..., Any]) -> None:
    text, *arguments = OF_PASSES[change]

    options = {"emulates": False} if change is lower_dot_products else {}

    def apply(module: Any) -> object:
        takes_text = change is with_batch_loops
        return change(str(module) if takes_text else module, *arguments, **options)

    assert shown_but_not_there(change, apply, text) == []


def test_ir_that_no_module_has_is_found() -> None:
    shown = "Adds.\n\nTakes i32.\n\n    %y = f.old %x : i32\n  becomes\n    %y = f.new %x : ...\n    f.same\n"
    assert missing(shown, "%0 = f.old %arg0 : i32", "%0 = f.new %arg0 : i32\nf.same") == []
    found = missing(shown, "%0 = f.older %arg0 : i32", "%0 = f.new %arg0 : i32")
    assert found == ["    %y = f.old %x : i32", "    f.same"]
