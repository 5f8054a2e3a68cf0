"""The only import of the MLIR bindings: transforms and lowering from one wheel, the host JIT from another.

docs/decisions/packages.md gives the reasons for two wheels; the eudsl wheel, which has both parts, would
replace them.
"""

import contextlib
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias

WHEEL = "numba_cuda_mlir"
FRONT_END = f"{WHEEL}.numba_cuda.np.numpy_support"  # imports the whole compiler of Python kernels
__all__ = [
    "Attribute",
    "Block",
    "Op",
    "Type",
    "Value",
    "WalkResult",
    "ext",
    "gpu",
    "indexing_maps_of",
    "interpreter",
    "ir",
    "irdl",
    "jit_bindings",
    "op_names",
    "passmanager",
    "pattern_rewrites",
    "torch_decompositions",
    "torch_importer",
    "torch_importer_bindings",
    "torch_pass_bindings",
    "transform",
]


@contextlib.contextmanager
def _without_front_end() -> Iterator[None]:
    """Leaves out 400 modules of the wheel, until an attribute of its compiler of Python kernels is read."""
    if WHEEL in sys.modules:
        yield
        return
    absent = object()
    stand_in = ModuleType(FRONT_END)
    vars(stand_in)["__getattr__"] = lambda _: absent  # for each name that the package imports from there
    sys.modules[FRONT_END] = stand_in
    try:
        yield
    finally:
        del sys.modules[FRONT_END]
    package = vars(sys.modules[WHEEL])
    names = {name for name, value in package.items() if value is absent}
    for name in names:  # so that `__getattr__` below is asked for the name, and loads the front end
        del package[name]
    package["__getattr__"] = lambda name: _of_front_end(name, names)


def _of_front_end(name: str, names: set[str]) -> object:
    if name not in names:
        raise AttributeError(f"module {WHEEL!r} has no attribute {name!r}")
    return getattr(importlib.import_module(FRONT_END), name)


with _without_front_end():
    from numba_cuda_mlir._mlir import ir, passmanager
    from numba_cuda_mlir._mlir import rewrite as pattern_rewrites
    from numba_cuda_mlir._mlir.dialects import ext, gpu, irdl, transform
    from numba_cuda_mlir._mlir.dialects.transform import interpreter

# The wheel has no stubs for `ir`: mypy reads each alias as Any. The aliases show what a function takes.
Op: TypeAlias = ir.Operation | ir.OpView  # a walk gives Operation, a builder gives OpView
Value: TypeAlias = ir.Value
Block: TypeAlias = ir.Block
Type: TypeAlias = ir.Type
Attribute: TypeAlias = ir.Attribute
WalkResult: TypeAlias = ir.WalkResult


def indexing_maps_of(op: Op) -> list[Any] | None:
    """Returns the indexing maps of a linalg op, one for each operand; None if MLIR has none for the op."""
    from numba_cuda_mlir._mlir._mlir_libs import _mlirDialectsLinalg

    maps = _mlirDialectsLinalg.get_indexing_maps(op)
    if maps is None:
        return None
    return [ir.AffineMapAttr(mapping).value for mapping in maps]


def op_names(dialect: str) -> set[str]:
    """Returns the names, without the dialect's prefix, of a dialect's ops for which the wheel has classes.

    The classes are read as text: their import would change what MLIR's own functions return.
    """
    folder = Path(ext.__file__).parent
    texts = [file.read_text() for file in folder.glob("_*_ops_gen.py") if dialect in file.stem.split("_")]
    return {name for text in texts for name in re.findall(rf'OPERATION_NAME = "{dialect}\.([\w.]+)"', text)}


def jit_bindings() -> tuple[Any, Any]:
    """Returns torch_mlir's ``(ir, execution_engine)``, with an x86 back end; imported at the call."""
    from torch_mlir import execution_engine
    from torch_mlir import ir as jit_ir

    return jit_ir, execution_engine


def torch_importer() -> Any:
    """Returns the Python module ``torch_mlir.fx``; imports it, and PyTorch, at the call."""
    from torch_mlir import fx

    return fx


def torch_importer_bindings() -> tuple[Any, Any]:
    """Returns torch_mlir's module ``ir`` and its module ``extras.fx_importer``.

    Imports PyTorch, at the call.
    """
    from torch_mlir import ir as torch_ir
    from torch_mlir.extras import fx_importer

    return torch_ir, fx_importer


def torch_pass_bindings() -> Any:
    """Returns torch_mlir's ``ir``, ``PassManager`` and dialect ``torch`` as attributes of one object.

    They are imported at the call; PyTorch is not.
    """
    from torch_mlir import ir as torch_ir
    from torch_mlir.dialects import torch as dialect
    from torch_mlir.passmanager import PassManager

    return SimpleNamespace(ir=torch_ir, PassManager=PassManager, torch=dialect)


def torch_decompositions() -> dict[Any, Any]:
    """Returns torch_mlir's default table of decompositions, from operator to function; imports PyTorch."""
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table

    return dict(get_decomposition_table())
