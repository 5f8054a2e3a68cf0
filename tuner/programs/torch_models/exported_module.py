"""Turns a PyTorch module into the text of a payload, by torch.export and torch-mlir.

Weights are constants of the text; each result of the function is a leaf of what the module returns.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree

from tuner.core.errors import UsageError
from tuner.mlir.bindings import torch_importer
from tuner.programs.torch_models.decompositions import decompositions

TENSOR = "TensorArgument"  # the class of a value in torch.export's signatures; others are constants
LINE_LIMIT = 300  # characters of an error of torch


@dataclass(frozen=True, eq=False)
class ExportedModule:
    """A module as payload text, and the trees of its arguments and of what it returns."""

    text: str
    in_spec: Any  # of (arguments, keyword arguments)
    out_spec: Any
    inputs: tuple[int, ...]  # which leaves of the arguments are the function's; others are constants
    outputs: tuple["Output", ...]


@dataclass(frozen=True, eq=False)
class Output:
    """A leaf of what a module returns: a result of the function, by its number, or a constant."""

    result: int | None
    constant: object = None


def export_module(
    module: torch.nn.Module | torch.export.ExportedProgram,
    arguments: tuple[Any, ...] = (),
    keywords: Mapping[str, Any] | None = None,
) -> ExportedModule:
    """Exports a module for example arguments; an exported program has its own.

    Raises UsageError where torch.export or torch-mlir refuses the module, for one that changes its buffers,
    and for sizes that are not static.
    """
    program = module
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of torch and of torch-mlir, about their own code
        if not isinstance(program, torch.export.ExportedProgram):
            program = _by_torch(program, arguments, keywords)
        program = _decomposed(program)
        _require_pure(program)
        outputs = _outputs(program)
        _drop_constants(program)
        text = _by_torch_mlir(program)
    signature, call = program.graph_signature, program.call_spec
    leaves = [each for each in signature.input_specs if each.kind.name == "USER_INPUT"]
    inputs = tuple(at for at, each in enumerate(leaves) if _is_tensor(each))
    return ExportedModule(text, call.in_spec, call.out_spec, inputs, outputs)


def _by_torch(
    module: torch.nn.Module, arguments: tuple[Any, ...], keywords: Mapping[str, Any] | None
) -> torch.export.ExportedProgram:
    try:
        return torch.export.export(module, arguments, dict(keywords or {}))
    except Exception as error:  # torch raises errors of many kinds for modules that it refuses
        raise UsageError(f"torch.export refuses the module: {first_line(error)}") from error


def _decomposed(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Returns a program of the operations that torch-mlir lowers; changes of buffers are then results."""
    try:
        decomposed: torch.export.ExportedProgram = program.run_decompositions(decompositions())
    except Exception as error:  # as above
        raise UsageError(f"torch.export refuses the module: {first_line(error)}") from error
    return decomposed


def _drop_constants(program: torch.export.ExportedProgram) -> None:
    """Drops results that are no tensors, in place: they would be results of a function on tensors."""
    kept = [_is_tensor(each) for each in program.graph_signature.output_specs]
    if all(kept):
        return
    specs = program.graph_signature.output_specs
    specs[:] = [each for each, is_kept in zip(specs, kept, strict=True) if is_kept]
    (end,) = (node for node in program.graph.nodes if node.op == "output")
    end.args = (tuple(each for each, is_kept in zip(end.args[0], kept, strict=True) if is_kept),)


def _by_torch_mlir(program: torch.export.ExportedProgram) -> str:
    importer = torch_importer()
    try:
        module = importer.export_and_import(
            program, output_type="linalg-on-tensors", func_name="main", decomposition_table={}
        )
        return str(module.operation.get_asm())
    except Exception as error:  # torch-mlir, too
        raise UsageError(f"torch-mlir refuses the module: {first_line(error)}") from error


def _require_pure(program: torch.export.ExportedProgram) -> None:
    for each in program.graph_signature.output_specs:
        if each.kind.name != "USER_OUTPUT":
            raise UsageError(
                f"the module changes {each.target or each.arg.name}: only results are supported",
                "call module.eval()",
            )
    if not all(isinstance(size, int) for node in program.graph.nodes for size in _sizes(node)):
        raise UsageError("the module has dynamic sizes: only static ones are supported")


def _sizes(node: torch.fx.Node) -> tuple[Any, ...]:
    """Returns the sizes of a tensor that a node gives; () of another value."""
    return tuple(getattr(node.meta.get("val"), "shape", ()))


def _is_tensor(spec: Any) -> bool:
    return type(spec.arg).__name__ == TENSOR


def _outputs(program: torch.export.ExportedProgram) -> tuple[Output, ...]:
    outputs: list[Output] = []
    number = 0
    for each in program.graph_signature.output_specs:
        if _is_tensor(each):
            outputs.append(Output(number))
            number += 1
        else:
            outputs.append(Output(None, getattr(each.arg, "value", None)))
    return tuple(outputs)


def leaves_of(arguments: tuple[Any, ...], keywords: Mapping[str, Any], spec: Any) -> list[Any]:
    """Returns the leaves of a call's arguments.

    Raises UsageError where their tree is not that of ``spec``.
    """
    leaves: list[Any]
    leaves, found = _pytree.tree_flatten((arguments, dict(keywords)))
    if found != spec:
        raise UsageError("arguments: found another structure than that of the example inputs")
    return leaves


def rebuilt(leaves: list[Any], spec: Any) -> Any:
    """Returns what a module returns, from its leaves."""
    return _pytree.tree_unflatten(leaves, spec)


def first_line(error: BaseException) -> str:
    """Returns the first line of an error that says something, cut to ``LINE_LIMIT`` characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "error:" in line] or lines
    return (telling[0] if telling else type(error).__name__)[:LINE_LIMIT]
