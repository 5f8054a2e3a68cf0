"""Ways to run a PyTorch model: as it is, by torch.compile, by other runtimes, and by tuner."""

import importlib.util
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.model_zoo.models import Inputs, Model, build
from tuner.core.errors import TunerError

EAGER, TODAY, TUNER, TUNED = "eager", "tuner_whole", "tuner", "tuner_tuned"
COMPILE = {  # name -> options of inductor
    "compile": {},
    "compile_freezing": {"freezing": True},
    "compile_max_autotune": {"freezing": True, "max_autotune": True},
}
LINE_CHARACTERS = 200  # of a failure
Call = Callable[[], Any]


@dataclass(frozen=True)
class Setting:
    """How models are run."""

    dtype: torch.dtype
    threads: int
    budget_s: float  # of tuning, for each model; 0: no tuning


@dataclass(frozen=True)
class NotRun:
    """Why a way does not run a model, in one line."""

    reason: str


def ways(model: Model, setting: Setting) -> dict[str, Call | NotRun]:
    """Returns a call of the model without arguments for each way, or why the way does not run it."""
    makers: dict[str, Callable[[Model, Setting], Call]] = {EAGER: _eager}
    makers |= {name: _by_torch_compile(options) for name, options in COMPILE.items()}
    makers |= {"onnxruntime": _by_onnxruntime, "openvino": _by_openvino}
    makers |= {TODAY: _as_a_whole, TUNER: _by_tuner}
    if setting.budget_s > 0:
        makers[TUNED] = _by_tuning
    return {name: _made(make, model, setting) for name, make in makers.items()}


def _made(make: Callable[[Model, Setting], Call], model: Model, setting: Setting) -> Call | NotRun:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the runtimes about their own code
            call = make(model, setting)
            call()
    except Exception as error:  # noqa: BLE001 - a runtime that fails is a line of the results
        return NotRun(_line(error))
    return call


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    name = "" if isinstance(error, TunerError) else f"{type(error).__name__}: "
    return f"{name}{text}"[:LINE_CHARACTERS]


def _eager(model: Model, setting: Setting) -> Call:
    module, inputs = build(model, setting.dtype)
    return lambda: module(*inputs)


def _by_torch_compile(options: dict[str, Any]) -> Callable[[Model, Setting], Call]:
    def make(model: Model, setting: Setting) -> Call:
        torch._dynamo.reset()  # noqa: SLF001 - its documented name
        module, inputs = build(model, setting.dtype)
        function: Any = torch.compile(module, options=options or None)
        return lambda: function(*inputs)

    return make


def _by_onnxruntime(model: Model, setting: Setting) -> Call:
    require("onnxruntime", "onnx", "onnxscript")
    import onnxruntime

    module, inputs = build(model, setting.dtype)
    file = io.BytesIO()
    names = [f"x{number}" for number in range(len(inputs))]
    torch.onnx.export(module, inputs, file, input_names=names, dynamo=True, verbose=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = setting.threads, 1
    session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
    taken = {each.name for each in session.get_inputs()}
    feed = {name: each.numpy() for name, each in zip(names, inputs, strict=True) if name in taken}
    return lambda: session.run(None, feed)


def _by_openvino(model: Model, setting: Setting) -> Call:
    require("openvino")
    import openvino

    module, inputs = build(model, setting.dtype)
    converted = openvino.convert_model(module, example_input=inputs, input=[each.shape for each in inputs])
    limits = {
        "INFERENCE_NUM_THREADS": setting.threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "bf16" if setting.dtype == torch.bfloat16 else "f32",
    }
    request = openvino.compile_model(converted, "CPU", limits).create_infer_request()
    arrays = [each.numpy() for each in inputs]

    def call() -> list[Any]:
        found = request.infer(arrays, share_inputs=True, share_outputs=True)
        return [found[number] for number in range(len(found))]

    return call


def _as_a_whole(model: Model, setting: Setting) -> Call:
    """The way of programs that cannot become groups: default kernels of matmuls, all else loops."""
    from benchmarks.model_times.whole_program import whole_program
    from tuner.programs.torch_models.exported_module import export_module
    from tuner.programs.torch_models.tensor_program import TensorProgram

    module, inputs = build(model, setting.dtype)
    exported = export_module(module, inputs)
    program = TensorProgram(whole_program(exported.text), exported)
    return lambda: program(*inputs)


def _by_tuner(model: Model, setting: Setting) -> Call:
    import tuner.torch

    module, inputs = build(model, setting.dtype)
    return _called(tuner.torch.compile(module, inputs, threads=setting.threads), inputs)


def _by_tuning(model: Model, setting: Setting) -> Call:
    import tuner.torch

    module, inputs = build(model, setting.dtype)
    tune: Any = getattr(tuner.torch, "tune", None)
    if tune is None:
        raise TunerError("tuner.torch.tune does not exist")
    return _called(tune(module, inputs, budget=setting.budget_s, threads=setting.threads), inputs)


def _called(program: Any, inputs: Inputs) -> Call:
    return lambda: program(*inputs)


def require(*packages: str) -> None:
    """Raises TunerError that names the packages which are not installed."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise TunerError(f"not installed: {', '.join(missing)}")
