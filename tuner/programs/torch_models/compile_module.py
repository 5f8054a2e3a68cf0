"""``tuner.torch.compile``: a PyTorch module becomes a program on this processor."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from tuner.core.grouped_program import TensorType
from tuner.core.typed_arguments import typed_arguments
from tuner.programs.compile import compile_program
from tuner.programs.run.grouped_function import GroupedFunction
from tuner.programs.run.loaded_artefact import load as load_arrays
from tuner.programs.torch_models.exported_module import ExportedModule, Output, export_module
from tuner.programs.torch_models.tensor_program import TensorProgram, torch_type
from tuner.programs.torch_models.weight_contents import ModuleWeights


@typed_arguments
def compile(  # noqa: A001 - as torch.compile
    module: torch.nn.Module | torch.export.ExportedProgram,
    arguments: tuple[Any, ...] = (),
    keywords: Mapping[str, Any] | None = None,
    *,
    db: str | Path | None = None,
    threads: int = 1,
) -> TensorProgram:
    """Compiles a module for the shapes and types of example inputs; nothing is tuned.

    The module is traced without gradients, by torch.export. Its weights are copied, packed as the schedules
    read them: the module and its ``state_dict`` stay as they are, and ``stale()`` says whether they have
    changed.

    Args:
        module: a module, in ``eval`` mode where that matters, or a program of ``torch.export.export``.
        arguments: example inputs, a tuple; () of an exported program.
        keywords: example keyword inputs.
        db: path or URL of a results database, whose best trials schedule the groups of operations; None:
            that of ``TUNER_DB``, else the user's own, if there is one.
        threads: that the program runs on, 1 to 256, whatever ``torch.set_num_threads`` was given.

    Returns:
        The program, which is called like the module.

    Raises:
        UsageError: torch.export or torch-mlir refuses the module, or an argument is wrong.
        CandidateError: the program cannot be compiled.

    Example:
        >>> import torch
        >>> import tuner.torch
        >>> module = torch.nn.Linear(4, 2).eval()
        >>> program = tuner.torch.compile(module, (torch.ones(3, 4),))
        >>> torch.allclose(program(torch.ones(3, 4)), module(torch.ones(3, 4)), atol=1e-6)
        True
    """
    exported = export_module(module, arguments, keywords)
    weights = ModuleWeights(module)
    function: Any = compile_program(exported.text, target="cpu", db=db, threads=threads)
    return TensorProgram(function, exported, weights)


@typed_arguments
def load(folder: str | Path) -> TensorProgram:
    """Loads an exported program, for tensors.

    Args:
        folder: path of the folder that ``program.export(folder)`` wrote.

    Returns:
        The program; it takes the tensors that the module takes, one after the other, and returns a tensor, or
        a tuple of several.

    Raises:
        UsageError: the folder has no program, a file was changed, or this processor lacks instructions.

    Example:
        >>> import tempfile
        >>> import torch
        >>> import tuner.torch
        >>> x = torch.ones(3, 4)
        >>> program = tuner.torch.compile(torch.nn.Linear(4, 2).eval(), (x,))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     program.export(f"{folder}/linear")
        ...     loaded = tuner.torch.load(f"{folder}/linear")
        >>> torch.equal(loaded(x), program(x))
        True
    """
    function = load_arrays(folder)
    return TensorProgram(function, _flat(function))


def _flat(function: GroupedFunction) -> ExportedModule:
    """Returns the trees of a program whose arguments and results are tensors one after the other."""
    results = tuple(_empty(each) for each in function.code.results)
    flatten = torch.utils._pytree.tree_flatten  # noqa: SLF001 - torch's only API
    in_spec = flatten((tuple(_empty(each) for each in function.code.arguments), {}))[1]
    out_spec = flatten(results[0] if len(results) == 1 else results)[1]
    inputs = tuple(range(len(function.code.arguments)))
    outputs = tuple(Output(at) for at in range(len(results)))
    types, result_types = (
        tuple(torch_type(each.element) for each in kinds)
        for kinds in (function.code.arguments, function.code.results)
    )
    return ExportedModule("", in_spec, out_spec, inputs, outputs, types, result_types)


def _empty(kind: TensorType) -> torch.Tensor:
    return torch.empty(kind.shape, dtype=torch_type(kind.element), device="meta")
