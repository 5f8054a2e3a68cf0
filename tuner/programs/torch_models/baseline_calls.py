"""What runs a PyTorch module next to tuner: eager, torch.compile, other runtimes that are installed."""

import contextlib
import importlib.util
import io
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from tuner.core.errors import TunerError
from tuner.programs.torch_models.baseline_names import (
    COMPILE,
    EAGER,
    FREEZING,
    MAX_AUTOTUNE,
    ONNXRUNTIME,
    OPENVINO,
)

LINE_CHARACTERS = 200  # of a failure
Call = Callable[[], Any]


@dataclass(frozen=True, eq=False)
class Example:
    """A module in evaluation mode, and inputs to call it with."""

    module: torch.nn.Module
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]


def example_of(
    module: torch.nn.Module | torch.export.ExportedProgram,
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
) -> Example:
    """Returns a module with its inputs; an exported program has its own, and is run as a graph of eager."""
    if not isinstance(module, torch.export.ExportedProgram):
        return Example(module, arguments, keywords)
    own_arguments, own_keywords = module.example_inputs or ((), {})
    return Example(module.module(), own_arguments, own_keywords)


@dataclass(frozen=True)
class NotRun:
    """Why a baseline does not run a module, in one line."""

    reason: str


Runtime = Callable[[Example, int], Call]  # takes the number of threads, too


def made(make: Callable[[], Call]) -> Call | NotRun:
    """Makes a call and calls it once; returns it, or why that fails, in one line."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):  # inductor prints tables
            warnings.simplefilter("ignore")  # of the runtimes about their own code
            call = make()
            call()
    except Exception as error:  # noqa: BLE001 - a runtime that fails is a line of the results
        return NotRun(_line(error))
    return call


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    name = "" if isinstance(error, TunerError) else f"{type(error).__name__}: "
    return f"{name}{text}"[:LINE_CHARACTERS]


def _eager(example: Example, _threads: int) -> Call:
    return lambda: example.module(*example.arguments, **example.keywords)


def _by_torch_compile(options: dict[str, Any]) -> Runtime:
    def make(example: Example, _threads: int) -> Call:
        function: Any = torch.compile(function_of(example.module), dynamic=False)

        def call() -> Any:
            return function(*example.arguments, **example.keywords)

        with torch._inductor.config.patch(options):  # noqa: SLF001 - its documented name
            call()  # compiles
        return call

    return make


def function_of(module: torch.nn.Module) -> Callable[..., Any]:
    """Returns a function that calls a module, with a code object of its own.

    torch.compile gives up on a code object that was compiled too often, and then runs it as eager does.
    """

    def call(*arguments: Any, **keywords: Any) -> Any:
        return module(*arguments, **keywords)

    call.__code__ = call.__code__.replace()
    return call


def _by_onnxruntime(example: Example, threads: int) -> Call:
    require("onnxruntime", "onnx", "onnxscript")
    import onnxruntime

    inputs = _positional(example)
    file = io.BytesIO()
    names = [f"x{number}" for number in range(len(inputs))]
    torch.onnx.export(example.module, inputs, file, input_names=names, dynamo=True, verbose=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
    taken = {each.name for each in session.get_inputs()}
    feed = {name: each.numpy() for name, each in zip(names, inputs, strict=True) if name in taken}
    return lambda: session.run(None, feed)


def _by_openvino(example: Example, threads: int) -> Call:
    require("openvino")
    import openvino

    inputs = _positional(example)
    shapes = [each.shape for each in inputs]
    converted = openvino.convert_model(example.module, example_input=inputs, input=shapes)
    is_bf16 = any(each.dtype == torch.bfloat16 for each in inputs)
    limits = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "bf16" if is_bf16 else "f32",
    }
    request = openvino.compile_model(converted, "CPU", limits).create_infer_request()
    arrays = [each.numpy() for each in inputs]

    def call() -> list[Any]:
        found = request.infer(arrays, share_inputs=True, share_outputs=True)
        return [found[number] for number in range(len(found))]

    return call


def _positional(example: Example) -> tuple[torch.Tensor, ...]:
    """Returns the inputs of a module that takes tensors one after the other. Raises TunerError for others."""
    if example.keywords or not all(isinstance(each, torch.Tensor) for each in example.arguments):
        raise TunerError("needs inputs that are tensors, without keywords")
    return example.arguments


def require(*packages: str) -> None:
    """Raises TunerError that names the packages which are not installed."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise TunerError(f"not installed: {', '.join(missing)}")


RUNTIMES: Mapping[str, Runtime] = {
    EAGER: _eager,
    COMPILE: _by_torch_compile({}),
    FREEZING: _by_torch_compile({"freezing": True}),
    MAX_AUTOTUNE: _by_torch_compile({"freezing": True, "max_autotune": True}),
    ONNXRUNTIME: _by_onnxruntime,
    OPENVINO: _by_openvino,
}
