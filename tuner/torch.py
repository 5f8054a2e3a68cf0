"""PyTorch: modules as tuned programs, a backend of torch.compile, operations of torch.library.

Needs PyTorch (the extra ``torch``), which nothing else of tuner imports.

    program = tuner.torch.compile(module, (x,))
    y = program(x)
    program.export("folder")
"""

from tuner.core.errors import UsageError

try:
    from tuner.programs.torch_models.compile_module import compile, load  # noqa: A004 - as torch.compile
    from tuner.programs.torch_models.dynamo_backend import GraphCounts, backend, graph_counts, register
    from tuner.programs.torch_models.operations import addmm, bmm, linear, mm
    from tuner.programs.torch_models.tensor_program import TensorProgram
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise UsageError("tuner.torch: PyTorch is not installed", "pip install 'mlir-tuner[torch]'") from error

__all__ = [
    "GraphCounts",
    "TensorProgram",
    "addmm",
    "backend",
    "bmm",
    "compile",
    "graph_counts",
    "linear",
    "load",
    "mm",
]

register()
