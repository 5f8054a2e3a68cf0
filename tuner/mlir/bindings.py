"""The only import of the MLIR bindings: all IR lives in one wheel; another makes PTX, if GPUs are a target.

docs/decisions/packages.md gives the reasons for two wheels.
"""

import contextlib
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias

from torch_mlir import ir, passmanager
from torch_mlir import rewrite as pattern_rewrites
from torch_mlir.dialects import ext, gpu, irdl, transform
from torch_mlir.dialects.transform import interpreter

from tuner.mlir.fingerprint import PTX_WHEEL, require_ptx

FRONT_END = f"{PTX_WHEEL}.numba_cuda.np.numpy_support"  # imports the whole compiler of Python kernels
__all__ = [
    "Attribute",
    "Block",
    "Op",
    "Type",
    "Value",
    "WalkResult",
    "execution_engine",
    "ext",
    "gpu",
    "indexing_maps_of",
    "interpreter",
    "ir",
    "irdl",
    "op_names",
    "passmanager",
    "pattern_rewrites",
    "ptx_bindings",
    "register_op_class",
    "torch_decompositions",
    "torch_dialect",
    "torch_importer",
    "torch_importer_tables",
    "transform",
]


def _of_front_end(name: str, names: set[str]) -> object:
    if name not in names:
        raise AttributeError(f"module {PTX_WHEEL!r} has no attribute {name!r}")
    return getattr(importlib.import_module(FRONT_END), name)


# The wheel has no stubs for `ir`: mypy reads each alias as Any. The aliases show what a function takes.
Op: TypeAlias = ir.Operation | ir.OpView  # a walk gives Operation, a builder gives OpView
Value: TypeAlias = ir.Value
Block: TypeAlias = ir.Block
Type: TypeAlias = ir.Type
Attribute: TypeAlias = ir.Attribute
WalkResult: TypeAlias = ir.WalkResult


def indexing_maps_of(op: Op) -> list[Any] | None:
    """Returns the indexing maps of a linalg op, one for each operand; None if MLIR has none for the op."""
    from torch_mlir._mlir_libs import _mlirDialectsLinalg

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


def register_op_class(dialect: type, op: Any) -> None:
    """Makes the bindings return instances of a Python class for the ops that it defines, in all contexts."""
    from torch_mlir.dialects._ods_common import _cext

    _cext.register_operation(dialect, replace=True)(op)
    _cext.register_op_adaptor(op, replace=True)(op.Adaptor)


def execution_engine() -> Any:
    """Returns the module ``execution_engine``, the JIT of this processor's code; imported at the call."""
    from torch_mlir import execution_engine as engine

    return engine


def ptx_bindings() -> Any:
    """Returns an object with ``ir`` and ``PassManager`` of the second MLIR wheel, which has LLVM's NVPTX.

    They are imported at the call. IR passes between this wheel and the other one as text only. Raises
    UsageError if the wheel is not installed.
    """
    require_ptx()
    with _without_front_end():
        from numba_cuda_mlir._mlir import ir as ptx_ir
        from numba_cuda_mlir._mlir.passmanager import PassManager
    return SimpleNamespace(ir=ptx_ir, PassManager=PassManager)


@contextlib.contextmanager
def _without_front_end() -> Iterator[None]:
    """Context manager: imports leave out 400 modules of the wheel, its compiler of Python kernels.

    They are imported when an attribute of that compiler is read.
    """
    if PTX_WHEEL in sys.modules:
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
    package = vars(sys.modules[PTX_WHEEL])
    names = {name for name, value in package.items() if value is absent}
    for name in names:  # so that `__getattr__` below is asked for the name, and loads the front end
        del package[name]
    package["__getattr__"] = lambda name: _of_front_end(name, names)


def torch_importer() -> Any:
    """Returns the Python module ``torch_mlir.fx``; imports it, and PyTorch, at the call."""
    from torch_mlir import fx

    return fx


def torch_importer_tables() -> Any:
    """Returns the module ``torch_mlir.extras.fx_importer``; imports it, and PyTorch, at the call."""
    from torch_mlir.extras import fx_importer

    return fx_importer


def torch_dialect() -> Any:
    """Returns the module of torch-mlir's dialect ``torch``; it is imported at the call, PyTorch is not."""
    from torch_mlir.dialects import torch

    return torch


def torch_decompositions() -> dict[Any, Any]:
    """Returns torch_mlir's default table of decompositions, from operator to function; imports PyTorch."""
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table

    return dict(get_decomposition_table())
