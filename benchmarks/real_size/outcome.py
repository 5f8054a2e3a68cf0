"""What becomes of one model of real size, stage by stage; each stage runs in a process of its own.

COLD compiles without compiled files, WARM with the files that COLD has written, INDUCTOR by torch.compile
without its own files. TIMES times calls, after it has compiled a second length of the same weights. LLAMA_CPP
runs a language model of the same shapes by llama.cpp.
"""

import gc
import importlib
import statistics
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from benchmarks.process_memory import watched_memory
from benchmarks.zoo.outcome import ATTEMPTS, TOLERANCE, TORCH, greatest_error, versions_of
from tuner.core.programs import COMPILE, EAGER, FREEZING, ONNXRUNTIME, OPENVINO

if TYPE_CHECKING:
    from benchmarks.real_size.models import RealModel

COLD, WARM, INDUCTOR, TIMES, LLAMA_CPP = STAGES = ("cold", "warm", "inductor", "times", "llama.cpp")
SECOND_LENGTH = "second length"
TUNER = "tuner"
RIGHT, WRONG, MISSING = "right", "wrong", "missing"
BASELINES = (EAGER, COMPILE, FREEZING, ONNXRUNTIME, OPENVINO)
LIMITS = {"torch.bfloat16": 4e-2}  # of the error where each way rounds at other places, as in bf16
CALLS = 7  # of the program alone, for its time
NEW_TOKENS = 32  # of llama.cpp
MIB = 1 << 20


@dataclass(frozen=True)
class RealSizeOutcome:
    """What became of a model.

    ``error``: relative to the greatest number of eager mode. ``compile_s``: by stage, and of SECOND_LENGTH.
    ``peak_mb``: the most that all processes held while they compiled, by stage, and ``after_mb``: what they
    hold once it is done, both above what they held before; ``children_mb``: the part of ``after_mb`` in child
    processes. ``call_ms``: medians, of tuner and of baselines. ``ratios``: how many times as fast as a
    baseline, with the bounds of the 95 % interval; ``untimed``: why a baseline has no ratio; ``stopped``: why
    a stage did not end. ``tokens_per_s``: of a language model by tuner, and by llama.cpp.
    """

    model: str
    outcome: str = RIGHT
    reason: str = ""
    weights_mb: float = 0.0
    error: float = 0.0
    compile_s: dict[str, float] = field(default_factory=dict)
    peak_mb: dict[str, float] = field(default_factory=dict)
    after_mb: float = 0.0
    children_mb: float = 0.0
    fusions: int = 0
    call_ms: dict[str, float] = field(default_factory=dict)
    tokens_per_s: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    untimed: dict[str, str] = field(default_factory=dict)
    stopped: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


@dataclass
class Compilation:
    """Seconds and memory of a compilation, above what was held before; filled in when it ends."""

    seconds: float = 0.0
    peak_bytes: int = 0
    after_bytes: int = 0
    children_bytes: int = 0


def stage_of(
    name: str, stage: str, start: RealSizeOutcome, seconds: float, gguf: str = ""
) -> RealSizeOutcome:
    """Runs a stage of a model in this process; returns the outcome ``start`` with what the stage found.

    ``seconds``: of timing; ``gguf``: the file of a model for llama.cpp, "" without. A model whose library is
    not installed, or refuses it, is MISSING.
    """
    import torch

    from benchmarks.real_size.models import BY_NAME

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    model = BY_NAME[name]
    if stage == LLAMA_CPP:
        return _by_llama_cpp(start, model, gguf)
    start = replace(start, versions=versions_of((TORCH, model.library)))
    try:
        module, inputs = model.build()
    except Exception as error:  # noqa: BLE001 - libraries raise errors of many kinds for what they lack
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return replace(start, outcome=MISSING, reason=reason)
    start = replace(start, weights_mb=_weights_mb(module))
    if stage == INDUCTOR:
        return _by_inductor(start, module, inputs)
    program, made = _compiled(module, inputs)
    if stage == TIMES:
        return _timed(start, model, program, module, seconds)
    return _compared(start, stage, made, program, module, inputs)


def _weights_mb(module: Any) -> float:
    tensors = {tensor.data_ptr(): tensor for tensor in (*module.parameters(), *module.buffers())}
    total_bytes: int = sum(tensor.nbytes for tensor in tensors.values())
    return round(total_bytes / MIB, 1)


@contextmanager
def _measured() -> Iterator[Compilation]:
    """Context manager: gives a Compilation, which is filled in when the body has ended."""
    made = Compilation()
    gc.collect()
    with watched_memory() as held:
        before_bytes = held().now_bytes
        began_s = time.perf_counter()
        yield made
        made.seconds = time.perf_counter() - began_s
        gc.collect()
        memory = held()
    made.peak_bytes = memory.peak_bytes - before_bytes
    made.after_bytes = memory.now_bytes - before_bytes
    made.children_bytes = memory.now_bytes - memory.own_bytes


def _compiled(module: Any, inputs: tuple[Any, ...]) -> tuple[Any, Compilation]:
    import tuner.torch

    with _measured() as made:
        program = tuner.torch.compile(module, inputs)
    return program, made


def _compared(
    start: RealSizeOutcome, stage: str, made: Compilation, program: Any, module: Any, inputs: tuple[Any, ...]
) -> RealSizeOutcome:
    """Returns the outcome with the figures of a compilation, and whether its program is right."""
    error = greatest_error(program(*inputs), module(*inputs))
    is_wrong = error > _tolerance(module)
    return replace(
        _with_compilation(start, stage, made),
        outcome=WRONG if is_wrong else start.outcome,
        error=max(error, start.error),
        after_mb=round(made.after_bytes / MIB, 1),
        children_mb=round(made.children_bytes / MIB, 1),
        fusions=len(getattr(program.function.code, "fusions", ())),
    )


def _with_compilation(start: RealSizeOutcome, stage: str, made: Compilation) -> RealSizeOutcome:
    return replace(
        start,
        compile_s={**start.compile_s, stage: round(made.seconds, 2)},
        peak_mb={**start.peak_mb, stage: round(made.peak_bytes / MIB, 1)},
    )


def _tolerance(module: Any) -> float:
    """Returns the limit of the error: of a model with narrow weights a greater one."""
    return max(LIMITS.get(str(tensor.dtype), TOLERANCE) for tensor in module.parameters())


def _by_inductor(start: RealSizeOutcome, module: Any, inputs: tuple[Any, ...]) -> RealSizeOutcome:
    import torch

    from tuner.models.torch.baselines import function_of

    with _measured() as made:
        torch.compile(function_of(module), dynamic=False)(*inputs)
    return _with_compilation(start, INDUCTOR, made)


def _timed(
    start: RealSizeOutcome, model: "RealModel", program: Any, module: Any, seconds: float
) -> RealSizeOutcome:
    """Returns the outcome with times of calls next to the baselines, and of compiling a second length."""
    from tuner.models.torch.baselines import Example, timed_baselines

    if model.second_length:
        _, made = _compiled(module, model.inputs(model.second_length))
        start = _with_compilation(start, SECOND_LENGTH, made)
    inputs = model.inputs(model.length)
    milliseconds = {TUNER: round(_call_s(program, inputs) * 1e3, 3)}
    ratios = {}
    untimed = {}
    example = Example(module, inputs, {})
    for baseline in timed_baselines(program, example, BASELINES, seconds=seconds, attempts=ATTEMPTS):
        if baseline.call_s is not None:
            milliseconds[baseline.name] = round(baseline.call_s.median * 1e3, 3)
        if baseline.speed is None:
            untimed[baseline.name] = baseline.reason
        else:
            ratios[baseline.name] = (baseline.speed.median, baseline.speed.low, baseline.speed.high)
    tokens = {}
    if model.rows:
        tokens = {name: round(model.rows / call_ms * 1e3, 1) for name, call_ms in milliseconds.items()}
    return replace(start, ratios=ratios, untimed=untimed, call_ms=milliseconds, tokens_per_s=tokens)


def _call_s(program: Any, inputs: tuple[Any, ...]) -> float:
    """Returns the median of some calls, in seconds, after one."""
    program(*inputs)
    seconds = []
    for _ in range(CALLS):
        began_s = time.perf_counter()
        program(*inputs)
        seconds.append(time.perf_counter() - began_s)
    return statistics.median(seconds)


def _by_llama_cpp(start: RealSizeOutcome, model: "RealModel", gguf: str) -> RealSizeOutcome:
    """Returns the outcome with tokens per second of llama.cpp on one thread: of a prompt, and one by one."""
    if not gguf:
        return replace(start, untimed={**start.untimed, LLAMA_CPP: "no file: --gguf MODEL=FILE"})
    try:
        library = importlib.import_module("llama_cpp")
    except ImportError:
        return replace(start, untimed={**start.untimed, LLAMA_CPP: "not installed: llama_cpp"})
    llama = library.Llama(
        gguf, n_threads=1, n_threads_batch=1, n_ctx=model.length + NEW_TOKENS, verbose=False
    )
    prompt = list(range(3, 3 + model.length))
    llama.eval(prompt)  # loads the weights
    llama.reset()
    began_s = time.perf_counter()
    llama.eval(prompt)
    read_s = time.perf_counter() - began_s
    for token in range(NEW_TOKENS):
        llama.eval([token + 3])
    written_s = time.perf_counter() - began_s - read_s
    tokens = {
        f"{LLAMA_CPP} prompt": round(len(prompt) / read_s, 1),
        f"{LLAMA_CPP} token": round(NEW_TOKENS / written_s, 1),
    }
    return replace(start, tokens_per_s={**start.tokens_per_s, **tokens})
