"""PyTorch: modules as tuned programs, a backend of torch.compile, operations of torch.library.

Needs PyTorch (the extra ``torch``), which nothing else of tuner imports.

    program = tuner.torch.compile(module, (x,))             # schedules of earlier tunings, or first ones
    program = tuner.torch.tune(module, (x,), budget="10m")  # tunes its fusions
    y = program(x)
    program.export("folder")
"""

from tuner.models.torch import (
    GraphCounts,
    TensorProgram,
    addmm,
    backend,
    bmm,
    compile,  # noqa: A004 - as torch.compile
    graph_counts,
    linear,
    load,
    load_gguf,
    mm,
    tune,
)

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
