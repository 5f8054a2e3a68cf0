"""PyTorch: modules as tuned programs, a backend of torch.compile, operations of torch.library.

Needs PyTorch (the extra ``torch``), which nothing else of tuner imports.

    program = tuner.torch.compile(module, (x,))             # schedules of earlier tunings, or first ones
    program = tuner.torch.tune(module, (x,), budget="10m")  # tunes its fusions
    y = program(x)
    program.export("folder")
"""

from tuner.core.errors import UsageError

try:
    from tuner.models.torch.compilation import compile, load, tune  # noqa: A004 - as torch.compile
    from tuner.models.torch.dynamo_backend import GraphCounts, backend, graph_counts, register
    from tuner.models.torch.gguf_models import load_gguf
    from tuner.models.torch.operations import addmm, bmm, linear, mm
    from tuner.models.torch.program import TensorProgram
    from tuner.models.torch.traced_numbers import correct_arithmetic
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise UsageError("tuner.torch: PyTorch is not installed", "pip install 'torch>=2.6'") from error

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
    "load_gguf",
    "mm",
    "tune",
]

register()
correct_arithmetic()
