"""Ways to run a PyTorch model: as it is, by torch.compile, by other runtimes, and by tuner."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from benchmarks.model_zoo.models import Inputs, Model, build
from tuner.core import programs
from tuner.core.errors import TunerError
from tuner.core.programs import EAGER, ONNXRUNTIME, OPENVINO
from tuner.models.torch.baselines import RUNTIMES, Example, ModuleCall, NotRun, checked_call

Maker = Callable[[Model, "Setting"], ModuleCall]
TODAY, TUNER, TUNED = "tuner_whole", "tuner", "tuner_tuned"
COMPILE = {  # name -> of the baseline
    "compile": programs.COMPILE,
    "compile_freezing": programs.FREEZING,
    "compile_max_autotune": programs.MAX_AUTOTUNE,
}


WAYS = (EAGER, ONNXRUNTIME, OPENVINO, *COMPILE, TODAY, TUNER, TUNED)


@dataclass(frozen=True)
class Setting:
    """How models are run."""

    dtype: torch.dtype
    threads: int
    budget_s: float  # of tuning, for each model; 0: no tuning
    without: frozenset[str] = frozenset()  # names of ways


def ways(model: Model, setting: Setting) -> dict[str, ModuleCall | NotRun]:
    """Returns a call of the model without arguments for each way, or why the way does not run it."""
    makers = {name: _by_baseline(name) for name in (EAGER, ONNXRUNTIME, OPENVINO)}
    makers |= {name: _by_baseline(baseline) for name, baseline in COMPILE.items()}
    makers |= {TODAY: _as_a_whole, TUNER: _by_tuner}
    if setting.budget_s > 0:
        makers[TUNED] = _by_tuning
    chosen = {name: make for name, make in makers.items() if name not in setting.without}
    return {name: checked_call(partial(make, model, setting)) for name, make in chosen.items()}


def _by_baseline(name: str) -> Maker:
    def make(model: Model, setting: Setting) -> ModuleCall:
        module, inputs = build(model, setting.dtype)
        return RUNTIMES[name](Example(module, inputs, {}), setting.threads)

    return make


def _as_a_whole(model: Model, setting: Setting) -> ModuleCall:
    """The way of programs that cannot become fusions: default kernels of matmuls, all else loops."""
    from benchmarks.model_times.whole_program import whole_program
    from tuner.models.torch.export import export_module
    from tuner.models.torch.program import TensorProgram

    module, inputs = build(model, setting.dtype)
    exported = export_module(module, inputs)
    program = TensorProgram(whole_program(exported.text), exported.form)
    return lambda: program(*inputs)


def _by_tuner(model: Model, setting: Setting) -> ModuleCall:
    import tuner.torch

    module, inputs = build(model, setting.dtype)
    return _called(tuner.torch.compile(module, inputs, threads=setting.threads), inputs)


def _by_tuning(model: Model, setting: Setting) -> ModuleCall:
    import tuner.torch

    module, inputs = build(model, setting.dtype)
    tune: Any = getattr(tuner.torch, "tune", None)
    if tune is None:
        raise TunerError("tuner.torch.tune does not exist")
    tuned = tune(module, inputs, budget=setting.budget_s, threads=setting.threads, baseline="none")
    return _called(tuned, inputs)


def _called(program: Any, inputs: Inputs) -> ModuleCall:
    return lambda: program(*inputs)
