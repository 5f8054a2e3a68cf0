"""Baselines of a PyTorch module (eager, torch.compile, other runtimes), timed interleaved with tuner."""

import contextlib
import importlib.util
import io
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from tuner.analysis.ratios import (
    Comparable,
    NotComparable,
    measurement_of,
    median_interval,
    paired_comparison,
)
from tuner.core.errors import TunerError
from tuner.core.instruction_sets import AVX2
from tuner.core.programs import (
    COMPILE,
    EAGER,
    FREEZING,
    MAX_AUTOTUNE,
    NO_TIME_LEFT,
    ONNXRUNTIME,
    OPENVINO,
    ProgramBaseline,
)
from tuner.core.records import MedianInterval
from tuner.core.round_quality import Evidence, reliability_in_round, round_quality
from tuner.runtime.cpu.host import own_limit
from tuner.runtime.timing import Call, before_slice_of, interleaved_times
from tuner.targets.cpu.baseline_libraries import imported_openvino
from tuner.tuning.remeasurement import noise_of

VECTOR_BITS = {AVX2: 256}  # of inductor's code for a processor that a process is limited to
LINE_CHARACTERS = 200  # of a failure
ModuleCall = Callable[[], Any]
# seconds until a small module is compiled, on a quiet processor; a module that is run as it is takes none
LEAST_COMPILE_S = {COMPILE: 5.0, FREEZING: 5.0, MAX_AUTOTUNE: 5.0, ONNXRUNTIME: 2.0, OPENVINO: 2.0}
SECONDS = 3.0  # of all rounds; in each round every call runs, once or more, for about 2 ms
OURS = "tuner"
AGAIN = "tuner again"
THEIRS = "theirs"
FAILURES = (TunerError, AssertionError, LookupError, RuntimeError, ValueError)  # of a call
DECISION_SECONDS = 0.3  # of rounds that decide which of two calls is taken
DECISION_ATTEMPTS = 3  # where no ratio is reliable, as while something else runs for a moment
LEAST_GAIN = 1.1  # of slices that nothing disturbed, where others were disturbed
ATTEMPTS_SECONDS = 3.0  # after which no further attempt begins


@dataclass(frozen=True, eq=False)
class Example:
    """A module, and example inputs to call it with."""

    module: torch.nn.Module
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]


def example_of(
    module: torch.nn.Module | torch.export.ExportedProgram,
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
) -> Example:
    """Returns ``module`` with the inputs to call it with.

    These are ``arguments`` and ``keywords``; for an exported program, the example inputs that it contains.
    """
    if not isinstance(module, torch.export.ExportedProgram):
        return Example(module, arguments, keywords)
    own_arguments, own_keywords = module.example_inputs or ((), {})
    return Example(module.module(), own_arguments, own_keywords)


@dataclass(frozen=True)
class NotRun:
    """Why a baseline does not run a module, in one line."""

    reason: str


Runtime = Callable[[Example, int], ModuleCall]  # takes the number of threads, too


def checked_call(make: Callable[[], ModuleCall]) -> ModuleCall | NotRun:
    """Calls ``make()``, then its result once; returns that result, or a NotRun with the error in one line."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):  # inductor prints tables
            warnings.simplefilter("ignore")  # of the runtimes about their own code
            call = make()
            call()
    except Exception as error:  # noqa: BLE001 - a runtime that fails is a line of the results
        return NotRun(_line(error))
    return call


def _line(error: Exception) -> str:
    text = " ".join(str(error).split())
    name = "" if isinstance(error, TunerError) else f"{type(error).__name__}: "
    return f"{name}{text}"[:LINE_CHARACTERS]


def _by_torch_compile(options: dict[str, Any]) -> Runtime:
    def make(example: Example, _threads: int) -> ModuleCall:
        function: Any = torch.compile(function_of(example.module), dynamic=False)
        call = partial(function, *example.arguments, **example.keywords)
        limit = own_limit()
        vectors = {"cpp.simdlen": None if limit is None else VECTOR_BITS.get(limit.isa)}
        with torch._inductor.config.patch(options | vectors):  # noqa: SLF001 - its documented name
            call()  # compiles
        return call

    return make


def function_of(module: torch.nn.Module) -> Callable[..., Any]:
    """Returns a function that calls ``module`` and has a code object of its own.

    torch.compile limits recompilations per code object, so each module to compile needs a new one.
    """

    def call(*arguments: Any, **keywords: Any) -> Any:
        return module(*arguments, **keywords)

    call.__code__ = call.__code__.replace()
    return call


def _by_onnxruntime(example: Example, threads: int) -> ModuleCall:
    require("onnxruntime", "onnx", "onnxscript")
    import onnxruntime

    inputs = _positional(example)
    file = io.BytesIO()
    names = [f"x{number}" for number in range(len(inputs))]
    torch.onnx.export(example.module, inputs, file, input_names=names, dynamo=True, verbose=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
    taken = {input_.name for input_ in session.get_inputs()}
    feed = {name: tensor.numpy() for name, tensor in zip(names, inputs, strict=True) if name in taken}
    return lambda: session.run(None, feed)


def _by_openvino(example: Example, threads: int) -> ModuleCall:
    require("openvino")
    openvino = imported_openvino()
    inputs = _positional(example)
    shapes = [input_.shape for input_ in inputs]
    converted = openvino.convert_model(example.module, example_input=inputs, input=shapes)
    is_bf16 = any(input_.dtype == torch.bfloat16 for input_ in inputs)
    limits = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "bf16" if is_bf16 else "f32",
    }
    request = openvino.compile_model(converted, "CPU", limits).create_infer_request()
    arrays = [input_.numpy() for input_ in inputs]

    def call() -> list[Any]:
        results = request.infer(arrays, share_inputs=True, share_outputs=True)
        return [results[number] for number in range(len(results))]

    return call


def _positional(example: Example) -> tuple[torch.Tensor, ...]:
    if example.keywords or not all(isinstance(argument, torch.Tensor) for argument in example.arguments):
        raise TunerError("needs inputs that are tensors, without keywords")
    return example.arguments


def require(*packages: str) -> None:
    """Raises TunerError, which names the missing packages, unless all these Python packages are installed."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise TunerError(f"not installed: {', '.join(missing)}", f"pip install {' '.join(missing)}")


RUNTIMES: Mapping[str, Runtime] = {
    EAGER: lambda example, _threads: partial(example.module, *example.arguments, **example.keywords),
    COMPILE: _by_torch_compile({}),
    FREEZING: _by_torch_compile({"freezing": True}),
    MAX_AUTOTUNE: _by_torch_compile({"freezing": True, "max_autotune": True}),
    ONNXRUNTIME: _by_onnxruntime,
    OPENVINO: _by_openvino,
}


def timed_baselines(
    program: Callable[..., Any],
    example: Example,
    names: tuple[str, ...],
    threads: int = 1,
    seconds: float = SECONDS,
    attempts: int = 1,
    left_s: float = math.inf,
    changed: Sequence[torch.Tensor] = (),
) -> tuple[ProgramBaseline, ...]:
    """Times baselines in rounds interleaved with the program; returns a ProgramBaseline per name.

    Args:
        program: called with the inputs of ``example``.
        example: a module and its inputs.
        names: keys of RUNTIMES. A baseline that cannot run gets the reason in place of times.
        threads: of PyTorch and of each runtime.
        seconds: the time of all rounds of an attempt.
        attempts: how often all are timed at most, until each ratio is reliable. A ratio is that of the
            first attempt in which it is reliable, else of the last.
        left_s: seconds of a budget; a baseline whose compilation is estimated to take longer is left out.
        changed: tensors that calls change. They get back what they contain before each slice of a round, so
            that positions of a cache stay inside, and at the end. If a call fails all the same, no baseline
            has times; without ``changed``, its error is raised.
    """
    if not names:
        return ()
    with on_threads(threads), torch.no_grad(), _restored(changed) as restore:
        calls = _calls(example, names, threads, left_s)
        restore()
        running = {name: call for name, call in calls.items() if not isinstance(call, NotRun)}
        ours = partial(program, *example.arguments, **example.keywords)
        # the program is timed twice: the difference is the noise floor
        timed: dict[str, Call] = {OURS: ours, **running, AGAIN: ours}
        awake = before_slice_of(threads)

        def prepare(call: Call) -> None:
            awake(call)
            restore()

        compared: dict[str, ProgramBaseline] = {}
        try:
            for _ in range(attempts):
                times_s = interleaved_times(timed, seconds, before_slice=prepare)
                compared |= _newly_compared(compared, running, times_s)
                if all(baseline.speed for baseline in compared.values()):
                    break
        except Exception as error:
            if not changed:
                raise
            calls |= dict.fromkeys(running, NotRun(f"calls one after the other: {_line(error)}"))
    baselines = []
    for name, call in calls.items():
        if isinstance(call, NotRun):
            baselines.append(ProgramBaseline(name, reason=call.reason))
        else:
            baselines.append(compared[name])
    return tuple(baselines)


def _newly_compared(
    compared: Mapping[str, ProgramBaseline],
    names: Iterable[str],
    times_s: Mapping[str, Sequence[float]],
) -> dict[str, ProgramBaseline]:
    """Returns the comparisons of those ``names``, by name, of which ``compared`` has no reliable ratio yet.

    ``times_s``: of this attempt, in seconds, by name.
    """
    return {
        name: compared_baseline(name, times_s[name], times_s[OURS], times_s[AGAIN])
        for name in names
        if name not in compared or compared[name].speed is None
    }


@contextlib.contextmanager
def _restored(tensors: Sequence[torch.Tensor]) -> Iterator[Callable[[], None]]:
    """Context manager: yields a function that gives ``tensors`` back what they contain now.

    The function is called at the end, too.
    """
    copies = list(map(torch.clone, tensors))

    def restore() -> None:
        with torch.no_grad():
            for tensor, copy in zip(tensors, copies, strict=True):
                tensor.copy_(copy)

    try:
        yield restore
    finally:
        restore()


def _calls(
    example: Example, names: tuple[str, ...], threads: int, left_s: float
) -> dict[str, ModuleCall | NotRun]:
    """Compiles baselines; returns {name: call, or NotRun}, NotRun where ``left_s`` seconds are not enough.

    A compilation is estimated to take as long as the longest so far, at least LEAST_COMPILE_S; max_autotune
    twice as long.
    """
    ends_s = time.perf_counter() + left_s
    longest_s = 0.0
    calls: dict[str, ModuleCall | NotRun] = {}
    for name in names:
        began_s = time.perf_counter()
        needed_s = max(LEAST_COMPILE_S.get(name, 0.0), longest_s)
        if name == MAX_AUTOTUNE:
            needed_s *= 2
        if began_s + needed_s > ends_s:
            calls[name] = NotRun(NO_TIME_LEFT)
            continue
        calls[name] = checked_call(partial(RUNTIMES[name], example, threads))
        longest_s = max(longest_s, time.perf_counter() - began_s)
    return calls


def compared_baseline(
    name: str, theirs_s: Sequence[float], ours_s: Sequence[float], again_s: Sequence[float]
) -> ProgramBaseline:
    """Returns a baseline's median time, and how many times as fast tuner is, or why no ratio is reliable.

    Times of calls in seconds, one per round: of the baseline (``theirs_s``), of tuner (``ours_s``), and of
    tuner a second time (``again_s``), whose difference from ``ours_s`` is the noise.
    """
    theirs, ours, again = map(measurement_of, (theirs_s, ours_s, again_s))
    quality = round_quality(noise_of(ours, again), theirs, None, quietest_reference_s=None, spare_cores=0)
    evidence = Evidence(is_interleaved=True, noise=quality.noise, reliability=quality.reliability)
    compared = paired_comparison(ours_s, theirs_s, evidence)
    speed = None
    reason = ""
    if isinstance(compared, Comparable):
        speed = MedianInterval(compared.speed, *compared.speed_interval)
    elif isinstance(compared, NotComparable):
        reason = compared.reason
    return ProgramBaseline(
        name, median_interval(theirs_s), speed, reason, reliability_in_round((theirs,), evidence)
    )


def is_faster(theirs: Callable[..., Any], ours: Callable[..., Any], tensors: tuple[Any, ...]) -> bool:
    """Returns whether ``theirs(*tensors)`` takes less time than ``ours(*tensors)``, by more than noise.

    If no attempt gives a reliable ratio, as on a busy machine: whether the slowest slice of ``theirs`` took
    less time than the fastest of ``ours``, or the fastest of ``theirs`` less by LEAST_GAIN times the noise.
    False where a call fails: many calls may where one does not, since a cache is full at last.
    """
    our_call = partial(ours, *tensors)
    calls: dict[str, Call] = {OURS: our_call, THEIRS: partial(theirs, *tensors), AGAIN: our_call}
    end = time.perf_counter() + ATTEMPTS_SECONDS
    for attempt in range(DECISION_ATTEMPTS):
        if attempt and time.perf_counter() > end:
            break
        try:
            with torch.no_grad():
                timed = interleaved_times(calls, DECISION_SECONDS)
        except FAILURES:
            return False
        compared = compared_baseline(THEIRS, timed[THEIRS], timed[OURS], timed[AGAIN])
        if compared.speed is not None:
            return compared.is_faster
    least = min(timed[THEIRS])
    one, other = sorted((min(timed[OURS]), min(timed[AGAIN])))
    return max(timed[THEIRS]) < one or least * LEAST_GAIN * other / one < one


@contextlib.contextmanager
def on_threads(count: int) -> Iterator[None]:
    """Context manager in which PyTorch has ``count`` threads; at its end as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
