"""One model of the zoo: whether it is right by the back end of ``torch.compile``, and how fast it is."""

import importlib.util
import resource
import sysconfig
import time
import warnings
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

from benchmarks.vision_survey import TIMM, TORCHVISION, error_of, images_of, vision_module
from benchmarks.zoo import language

TOLERANCE = 1e-3  # of the greatest error, relative to the greatest number that eager mode returns
RIGHT, WRONG, LEFT, STOPPED, MISSING = OUTCOMES = ("right", "wrong", "left", "stopped", "missing")
TORCH = "torch"
TRANSFORMERS = "transformers"
SECONDS = 4.0  # of all rounds
ATTEMPTS = 4  # on a machine whose other guests are busy, half of the ratios are not reliable at first


@dataclass(frozen=True)
class ZooModel:
    """A model, by its library and its name there."""

    library: str
    name: str


@dataclass(frozen=True)
class ZooOutcome:
    """What became of a model.

    ``taken`` and ``left``: graphs of dynamo; ``reasons``: why graphs were left; ``in_torch``: operators that
    PyTorch runs in graphs that were taken; ``share``: of the operations of products and convolutions that
    tuner computes, None if it was not counted; ``error``: relative to the greatest number; ``ratios``: how
    many times as fast as a baseline, with the bounds of the 95 % interval; ``untimed``: why a baseline has
    no ratio; ``versions``: of libraries.
    """

    library: str
    name: str
    outcome: str
    reason: str = ""
    taken: int = 0
    left: int = 0
    reasons: tuple[str, ...] = ()
    in_torch: tuple[str, ...] = ()
    share: float | None = None
    error: float = 0.0
    compile_s: float = 0.0
    peak_mb: int = 0
    ratios: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    untimed: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


def models() -> tuple[ZooModel, ...]:
    """Returns all models of the zoo."""
    by_library = {TRANSFORMERS: language.MODELS, "torchvision": tuple(TORCHVISION), "timm": tuple(TIMM)}
    return tuple(ZooModel(library, name) for library, names in by_library.items() for name in names)


def outcome_of(model: ZooModel, is_timed: bool) -> ZooOutcome:
    """Compiles a model and compares its results with eager mode, in this process.

    ``is_timed``: whether it is timed next to eager mode and inductor, on one thread.
    """
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(zlib.crc32(model.name.encode()))
    warnings.simplefilter("ignore")
    versions = versions_of((TORCH, model.library))
    start = ZooOutcome(model.library, model.name, RIGHT, versions=versions)
    try:
        example = _example_of(model)
        with torch.no_grad():
            expected = example.module(*example.arguments, **example.keywords)
    except Exception as error:  # noqa: BLE001 - libraries raise errors of many kinds for models that they lack
        return replace(
            start, outcome=MISSING, reason=f"{type(error).__name__}: {' '.join(str(error).split())}"
        )
    return _compared(start, example, expected, is_timed)


def versions_of(libraries: Iterable[str]) -> dict[str, str]:
    """Returns the versions of the libraries that are installed."""
    return {name: version(name) for name in libraries if importlib.util.find_spec(name)}


def _example_of(model: ZooModel) -> Any:
    from tuner.models.torch.baselines import Example

    if model.library == TRANSFORMERS:
        module = language.module_of(model.name)
        return Example(module, (), language.inputs_of(module))
    side = {**TORCHVISION, **TIMM}[model.name]
    return Example(vision_module(model.library, model.name), images_of(model.name, side), {})


def _compared(start: ZooOutcome, example: Any, expected: Any, is_timed: bool) -> ZooOutcome:
    import torch

    import tuner.torch
    from benchmarks.zoo.arithmetic import CountedArithmetic

    tuner.torch.graph_counts(reset=True)
    began = time.perf_counter()
    counted = CountedArithmetic()
    compiled: Any = torch.compile(example.module, backend=counted.backend, dynamic=False)
    with torch.no_grad():
        found = compiled(*example.arguments, **example.keywords)
    compile_s = time.perf_counter() - began
    counts = tuner.torch.graph_counts()
    error = greatest_error(found, expected)
    reasons = without_folders(counts.reasons)
    outcome = RIGHT
    if error > TOLERANCE:
        outcome = WRONG
    elif not counts.taken:
        outcome = LEFT
    ended = replace(
        start,
        outcome=outcome,
        reason="; ".join(reasons[:1]),
        taken=counts.taken,
        left=counts.left,
        reasons=reasons,
        in_torch=without_folders(counts.in_torch),
        share=counted.share,
        error=error,
        compile_s=round(compile_s, 1),
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    )
    if not is_timed:
        return ended
    return _timed(ended, compiled, example)


def _timed(ended: ZooOutcome, compiled: Any, example: Any) -> ZooOutcome:
    """Times a compiled model next to the baselines; returns its outcome with the ratios that are reliable."""
    from tuner.core.programs import COMPILE, EAGER, FREEZING
    from tuner.models.torch.baselines import timed_baselines

    ratios = {}
    untimed = {}
    names = (EAGER, COMPILE, FREEZING)
    for baseline in timed_baselines(compiled, example, names, seconds=SECONDS, attempts=ATTEMPTS):
        speed = baseline.speed
        if speed is None:
            untimed[baseline.name] = baseline.reason
        else:
            ratios[baseline.name] = (speed.median, speed.low, speed.high)
    return replace(ended, ratios=ratios, untimed=untimed)


def without_folders(texts: Iterable[str]) -> tuple[str, ...]:
    """Returns texts whose paths of installed packages begin with the package, for results that are kept."""
    folder = sysconfig.get_path("purelib")
    return tuple(text.replace(f"{folder}/", "") for text in texts)


def greatest_error(found: Any, expected: Any) -> float:
    """Returns the greatest error of all tensors, relative to the greatest number of each."""
    from torch.utils._pytree import tree_leaves

    return max(map(error_of, tree_leaves(found), tree_leaves(expected)))
