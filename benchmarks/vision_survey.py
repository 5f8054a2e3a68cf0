"""Compiles vision models of torchvision and timm as written.

``python -m benchmarks.vision_survey --output FILE``. Each model has random weights, drawn from its name,
and is compiled in a child process with a time limit. Its outcome is "right" (as near to eager mode as f32
rounds), "wrong", "refused" with the reason, "stopped" (a crash, the compiler's or the child's limit) or
"missing" (the library does not have it). The document has counts and reasons, no times.

torchvision and timm are not among tuner's own requirements: ``pip install torchvision timm``.
"""

import argparse
import importlib
import importlib.util
import json
import os
import sys
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.limited_child import Stopped, in_child
from benchmarks.results_file import emit, report

LIMIT_S = 600.0  # of a model, in seconds of processor time of all its processes, about
TOLERANCE = 1e-3  # of the greatest error, relative to the greatest number that eager mode returns
RIGHT, WRONG, REFUSED, STOPPED, MISSING = OUTCOMES = ("right", "wrong", "refused", "stopped", "missing")

# The side of the square images: the least that the model takes with all its stages, or near to it.
TORCHVISION = {
    "alexnet": 96,
    "vgg11_bn": 64,
    "resnet18": 64,
    "resnet50": 64,
    "resnext50_32x4d": 64,
    "wide_resnet50_2": 64,
    "squeezenet1_1": 64,
    "densenet121": 64,
    "inception_v3": 96,
    "googlenet": 64,
    "shufflenet_v2_x1_0": 64,
    "mobilenet_v2": 64,
    "mobilenet_v3_large": 64,
    "mobilenet_v3_small": 64,
    "mnasnet1_0": 64,
    "efficientnet_b0": 64,
    "efficientnet_v2_s": 64,
    "regnet_y_400mf": 64,
    "convnext_tiny": 64,
    "vit_b_16": 224,
    "swin_t": 64,
    "swin_v2_t": 64,
    "maxvit_t": 224,
    "segmentation.deeplabv3_mobilenet_v3_large": 96,
    "segmentation.lraspp_mobilenet_v3_large": 96,
    "segmentation.fcn_resnet50": 64,
    "optical_flow.raft_small": 128,
    "video.r3d_18": 32,
}
TIMM = {
    "swin_tiny_patch4_window7_224": 224,
    "vit_tiny_patch16_224": 224,
    "deit_tiny_patch16_224": 224,
    "beit_base_patch16_224": 224,
    "samvit_base_patch16_224": 224,
    "mixer_s32_224": 224,
    "resmlp_12_224": 224,
    "gmlp_ti16_224": 224,
    "convmixer_768_32": 64,
    "poolformer_s12": 64,
    "efficientformer_l1": 224,
    "mobilevit_xxs": 64,
    "mobilevitv2_050": 64,
    "ghostnet_100": 64,
    "hrnet_w18_small": 64,
    "dla34": 64,
    "coat_lite_tiny": 224,
    "cait_xxs24_224": 224,
    "pit_ti_224": 224,
    "levit_128s": 224,
    "crossvit_tiny_240": 240,
    "xcit_nano_12_p16_224": 224,
    "eva02_tiny_patch14_224": 224,
    "pvt_v2_b0": 64,
    "edgenext_xx_small": 64,
    "fastvit_t8": 64,
    "repvgg_a0": 64,
    "nfnet_f0": 64,
    "volo_d1_224": 224,
    "focalnet_tiny_srf": 64,
}


@dataclass(frozen=True)
class VisionOutcome:
    """What became of a model."""

    library: str
    model: str
    side: int  # of its images, in pixels
    outcome: str  # one of OUTCOMES
    reason: str = ""  # why it is not right
    fusions: int = 0  # of its program; 0: it was compiled as a whole
    loops: int = 0  # fusions without a schedule
    warnings: tuple[str, ...] = ()  # that tuner.torch.compile gave


def surveyed(
    names: Callable[[str], bool],
    kept: Collection[tuple[str, str]],
    limit_s: float,
    show: Callable[[VisionOutcome, float], None],
) -> None:
    """Compiles each model whose name is wanted in a child, and shows its outcome and processor seconds.

    ``kept``: (library, model) of those whose outcome is known.
    """
    for library, models in (("torchvision", TORCHVISION), ("timm", TIMM)):
        for name, side in models.items():
            if names(name) and (library, name) not in kept:
                began = os.times()
                outcome = in_child(outcome_of, library, name, side, limit_s=limit_s)
                ended = os.times()
                used = ended.children_user + ended.children_system
                if isinstance(outcome, Stopped):
                    outcome = VisionOutcome(library, name, side, STOPPED, outcome.reason)
                show(outcome, used - began.children_user - began.children_system)


def outcome_of(library: str, name: str, side: int) -> VisionOutcome:
    """Compiles a model and compares its program with eager mode, in this process."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(zlib.crc32(name.encode()))
    try:
        module = vision_module(library, name)
    except (ImportError, AttributeError, RuntimeError) as error:
        return VisionOutcome(library, name, side, MISSING, f"{type(error).__name__}: {error}")
    return _compared(VisionOutcome(library, name, side, RIGHT), module, images_of(name, side))


def vision_module(library: str, name: str) -> Any:
    """Returns a model with random weights, in ``eval`` mode. Raises what its library raises."""
    package = importlib.import_module(library)
    if library == "timm":
        return package.create_model(name, pretrained=False).eval()
    place, _, model = name.rpartition(".")
    models = getattr(package.models, place) if place else package.models
    options: dict[str, Any] = {}
    if model in ("inception_v3", "googlenet"):
        options = {"init_weights": True}  # else they warn
    if place == "segmentation":
        options = {"weights_backbone": None}
    return getattr(models, model)(weights=None, **options).eval()


def images_of(name: str, side: int) -> tuple[Any, ...]:
    """Returns example inputs of a model: square images, of ``side`` pixels, or frames of a video."""
    import torch

    image = torch.randn(1, 3, side, side)
    if name.startswith("video."):
        return (torch.randn(1, 3, 8, side, side),)
    return (image, torch.randn_like(image)) if name.startswith("optical_flow.") else (image,)


def _compared(start: VisionOutcome, module: Any, inputs: tuple[Any, ...]) -> VisionOutcome:
    import torch
    from torch.utils._pytree import tree_leaves

    import tuner.torch
    from tuner.core.errors import TunerError
    from tuner.models.run.fused_program import FusedFunction

    with torch.no_grad():
        expected = tree_leaves(module(*inputs))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            program = tuner.torch.compile(module, inputs)
            results = tree_leaves(program(*inputs))
        except TunerError as error:
            # the hint of an error is in its text, on a line of its own
            is_stopped = any(word in str(error) for word in ("timed out", "killed by", "exceeded"))
            return _changed(start, STOPPED if is_stopped else REFUSED, str(error).splitlines()[0])
    said = tuple(str(each.message) for each in caught if "scalar loops" in str(each.message))
    function = program.function
    fusions = function.code.fusions if isinstance(function, FusedFunction) else ()
    worst = max(map(error_of, results, expected))
    return VisionOutcome(
        start.library,
        start.model,
        start.side,
        RIGHT if worst <= TOLERANCE else WRONG,
        "" if worst <= TOLERANCE else f"an error of {worst:.2g} of the greatest number",
        len(fusions),
        sum(not each.strategy for each in fusions),
        said,
    )


def _changed(start: VisionOutcome, outcome: str, reason: str) -> VisionOutcome:
    return VisionOutcome(start.library, start.model, start.side, outcome, reason)


def error_of(found: Any, expected: Any) -> float:
    """Returns the greatest error relative to the greatest number; infinite where the shapes differ."""
    if not hasattr(expected, "shape"):
        return 0.0 if found == expected else float("inf")
    if found.shape != expected.shape or bool((found.isnan() != expected.isnan()).any()):
        return float("inf")
    difference = (found.double() - expected.double()).abs().nan_to_num(0.0)
    return float(difference.max() / expected.double().abs().nan_to_num(0.0).max().clamp(min=1e-30))


def main(arguments: list[str] | None = None) -> int:
    """Surveys the models, prints a line for each, and writes the outcomes as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vision_survey", description=__doc__)
    parser.add_argument("--model", nargs="*", default=[], help="only models whose name contains one of these")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds of a model")
    parser.add_argument("--output", type=Path, help="file for the outcomes; models that it has are kept")
    options = parser.parse_args(arguments)
    outcomes = _kept(options.output)
    kept = {(outcome.library, outcome.model) for outcome in outcomes}

    def show(outcome: VisionOutcome, seconds: float) -> None:
        outcomes.append(outcome)
        said = (
            f"{outcome.fusions} fusions, {outcome.loops} as loops" if not outcome.reason else outcome.reason
        )
        print(f"{outcome.outcome:8} {outcome.model}: {said} ({seconds:.0f} s of processors)", flush=True)
        if options.output is not None:
            _write(options.output, outcomes)

    began = time.monotonic()
    surveyed(
        lambda name: not options.model or any(each in name for each in options.model),
        kept,
        options.limit,
        show,
    )
    counts = Counter(each.outcome for each in outcomes)
    print(", ".join(f"{counts[each]} {each}" for each in OUTCOMES), f"in {time.monotonic() - began:.0f} s")
    return int(bool(counts[WRONG] or counts[STOPPED]))


def _kept(file: Path | None) -> list[VisionOutcome]:
    if file is None or not file.is_file():
        return []
    models = json.loads(file.read_text(encoding="utf-8"))["rows"]
    return [VisionOutcome(**{**model, "warnings": tuple(model["warnings"])}) for model in models]


def _write(file: Path, outcomes: list[VisionOutcome]) -> None:
    counts = Counter(each.outcome for each in outcomes)
    by_outcome = {each: counts[each] for each in OUTCOMES}
    libraries = ("torch", "torchvision", "timm")
    versions = {each: version(each) for each in libraries if importlib.util.find_spec(each)}
    rows = [asdict(each) for each in outcomes]
    emit(report("vision_survey", versions, rows, {"by_outcome": by_outcome}), is_json=False, output=file)


if __name__ == "__main__":
    sys.exit(main())
