"""Imports an exported program into torch-mlir's dialect: text that names weights, and their bytes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree

from tuner.core.errors import UsageError
from tuner.core.fusions import NEW_VALUE
from tuner.mlir.bindings import ir, torch_importer, torch_importer_tables
from tuner.mlir.ir.reading import ARGUMENT_ATTRIBUTES
from tuner.models.mlir.torch_dialect import first_line
from tuner.models.torch.lowering import RESOURCES
from tuner.models.torch.refusals import mark_nodes


@dataclass(frozen=True)
class ImportedProgram:
    """A program as text in torch-mlir's dialect, and the data of its constants by their names in the text."""

    text: str
    weights: dict[str, "ImportedWeight"]


@dataclass(frozen=True)
class ImportedWeight:
    """The bytes of a constant, and the ``name`` of the weight whose memory they are.

    "" if it is no weight's.
    """

    data: memoryview  # of the constant's own memory
    name: str


def import_program(
    program: torch.export.ExportedProgram, new_values: Iterable[tuple[int, int]] = ()
) -> ImportedProgram:
    """Imports a program into torch-mlir's dialect; each operation has its operator and line as location.

    ``program``: changed in place, in the stack traces of its nodes. ``new_values``: (number of an argument,
    number of its new value among the results), for ``tuner.new_value``. Raises UsageError if torch-mlir's
    importer fails.
    """
    importer = torch_importer()
    literals = _Literals({**program.constants, **program.state_dict})
    mark_nodes(program.graph, filter(_is_of_integers, program.graph.nodes))
    try:
        module = importer.export_and_import(
            program,
            output_type="raw",
            func_name="main",
            decomposition_table={},
            hooks=literals,
            experimental_support_mutation=True,
        )
        _mark_new_values(module.body.operations[0], dict(new_values))
        text = module.operation.get_asm(enable_debug_info=True, large_resource_limit=0)
    except Exception as error:  # torch-mlir, too
        raise UsageError(f"torch-mlir refuses the module: {first_line(error)}") from error
    return ImportedProgram(str(text).partition(RESOURCES)[0], literals.weights)


def _mark_new_values(function: Any, new_values: Mapping[int, int]) -> None:
    if not new_values:
        return
    with function.context:
        attributes = [ir.DictAttr.get({})] * len(function.regions[0].blocks[0].arguments)
        for argument, result in new_values.items():
            number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), result)
            attributes[argument] = ir.DictAttr.get({NEW_VALUE: number})
        function.attributes[ARGUMENT_ATTRIBUTES] = ir.ArrayAttr.get(attributes)


class _Literals:
    """Makes constants of weights; torch-mlir would make lists of Python numbers, 12 s for 11 million."""

    def __init__(self, weights: Mapping[str, Any]) -> None:
        tensors = {name: weight for name, weight in weights.items() if isinstance(weight, torch.Tensor)}
        self._names = {memory_of(tensor): name for name, tensor in reversed(tensors.items())}
        self.weights: dict[str, ImportedWeight] = {}
        # by memory, shape, strides and type; a tensor that is kept keeps its memory
        self._known: dict[tuple[Any, ...], tuple[torch.Tensor, Any]] = {}

    def prepare_module(self, _module: Any) -> None:
        """Does nothing: part of torch-mlir's interface of hooks."""

    def resolve_input(self, _importer: Any, _value: Any, _info: Any) -> None:
        """Returns None, for torch-mlir's way, which asks ``resolve_literal``."""

    def resolve_literal(self, importer: Any, literal: Any, _info: Any) -> Any:
        """Returns the constant of a tensor; None, so that torch-mlir makes it, for a single element.

        None as well for what is not a tensor, and for a type that numpy does not have.
        """
        tables = torch_importer_tables()
        is_array = isinstance(literal, torch.Tensor) and literal.numel() != 1
        if not is_array or tables.TORCH_DTYPE_TO_NPY_TYPE.get(literal.dtype) is None:
            return None
        key = memory_of(literal)
        if key not in self._known:
            content = bytes_of(literal)
            name = f"torch_tensor_{'_'.join(map(str, literal.shape))}_{literal.dtype}"
            of_type = tables.create_mlir_tensor_type(literal)
            attribute = ir.DenseResourceElementsAttr.get_from_buffer(content, name, of_type)
            # MLIR has added a number to a name that it knew
            self.weights[str(attribute).partition("<")[2].rpartition("> : ")[0]] = ImportedWeight(
                content, self._names.get(key, "")
            )
            self._known[key] = literal, attribute
        type_ = importer._cc.tensor_to_vtensor_type(literal)  # noqa: SLF001 - as torch-mlir's own converter
        operation = ir.Operation.create(
            "torch.vtensor.literal", results=[type_], attributes={"value": self._known[key][1]}
        )
        return operation.result


def memory_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Returns (address, shape, strides, dtype): equal for tensors that view the same elements."""
    return tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype


class _Memory:
    """The memory of a contiguous tensor for numpy, which keeps this object, and so the tensor."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        address = (tensor.data_ptr(), True)  # read-only
        size = tensor.numel() * tensor.element_size()
        self.__array_interface__ = {"data": address, "shape": (size,), "typestr": "|u1", "version": 3}


def bytes_of(tensor: torch.Tensor) -> memoryview:
    """Returns the bytes of a tensor in row-major order: a view of its memory if that is in this order."""
    ordered = tensor.contiguous()  # has no ``numpy()`` here: torch-mlir imports under fake tensors
    if not ordered.numel():  # may have no memory
        return memoryview(b"")
    return np.asarray(_Memory(ordered)).data


def _is_of_integers(node: torch.fx.Node) -> bool:
    values = [known.meta.get("val") for known in (*node.all_input_nodes, node)]
    tensors = [value for value in _pytree.tree_leaves(values) if isinstance(value, torch.Tensor)]
    is_whole = not any(tensor.is_floating_point() or tensor.is_complex() for tensor in tensors)
    return node.op == "call_function" and is_whole and bool(tensors)
