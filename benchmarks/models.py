"""Times PyTorch models by tuner, eager, torch.compile and other runtimes, interleaved in one process.

    python -m benchmarks.models --json --output benchmarks/results/models.json
    python -m benchmarks.models --models mlp resnet_big --seconds 5 --threads 1

A ratio above 1 means that tuner is faster. All results are compared with torch's first; what is wrong or
fails is named and not timed. The exit status is 1 where a demanded figure is missed: geometric means of large
models of 1.25 over eager and 1.15 over the best of torch.compile, of small ones 2 over eager, none slower; no
block of rarer operators below 0.95 of eager or 0.9 of torch.compile, no network below any of its rivals.
--budget tunes each model for so many seconds before it is timed; without it, models run by stored or default
schedules. With TUNER_CPU, PyTorch and its libraries are held to that processor; ONNX Runtime and OpenVINO
have no such setting: --remark says which builds ran. Networks run where --models names them.
"""

import argparse
import sys
from dataclasses import asdict
from typing import Any

import torch

from benchmarks.limited_libraries import restart_limited
from benchmarks.model_times.correctness import ALLOWED, relative_error
from benchmarks.model_times.figures import ModelRatios, missed, summary
from benchmarks.model_times.ways import COMPILE, TUNED, TUNER, WAYS, Setting, ways
from benchmarks.model_zoo import NETWORK
from benchmarks.model_zoo.models import MODELS, Model
from benchmarks.results_file import add_report_options, emit, report
from tuner.analysis.ratios import median_interval, paired_ratio
from tuner.core.programs import EAGER, ONNXRUNTIME, OPENVINO
from tuner.core.records import MedianInterval
from tuner.models.torch.baselines import NotRun
from tuner.runtime.timing import Call, before_slice_of, interleaved_times

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
MICROSECONDS = 1e6
SECONDS = 20.0


def main() -> None:
    """Runs the benchmark; exits with 1 where a demanded figure is missed."""
    options = _arguments()
    restart_limited(options.threads)
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    without = frozenset(options.without)
    setting = Setting(DTYPES[options.dtype], options.threads, options.budget, without)
    rows, ratios = [], []
    for model in [each for each in MODELS if each.name in options.models]:
        row, found = _measured(model, setting, options.seconds)
        rows.append(row)
        ratios.append(found)
        print(_line(row, found), file=sys.stderr, flush=True)
    figures = summary(ratios)
    lines = (*missed(figures, options.dtype), *_not_run(rows))
    settings = {name: value for name, value in vars(options).items() if name not in ("json", "output")}
    settings |= {"torch": torch.__version__, "mkldnn": torch.backends.mkldnn.is_available()}
    document = report("models", settings, rows, asdict(figures) | {"missed": lines})
    emit(document, options.json, options.output)
    print(_end(asdict(figures)), *lines, sep="\n", file=sys.stderr)
    sys.exit(1 if lines else 0)


def _measured(model: Model, setting: Setting, seconds: float) -> tuple[dict[str, Any], ModelRatios]:
    """Returns a row of the document, and the ratios of one model."""
    calls, failures, errors = _checked(model, setting)
    times = interleaved_times(calls, seconds, before_slice=before_slice_of(setting.threads))
    medians = {name: median_interval(found) for name, found in times.items()}
    ours = TUNED if TUNED in times else TUNER
    compiled = [name for name in COMPILE if name in times]
    best = min(compiled, key=lambda name: medians[name].median, default="")
    pairs = {other: times[other] for other in times if other != ours} if ours in times else {}
    compared = {other: paired_ratio(found, times[ours]) for other, found in pairs.items()}
    row = {
        "model": model.name,
        "category": model.category,
        "ours": ours,
        "best_compile": best,
        "rounds": len(next(iter(times.values()))),
        "microseconds": {name: _scaled(found) for name, found in medians.items()},
        "least_microseconds": {name: min(found) * MICROSECONDS for name, found in times.items()},
        "ratios": {name: asdict(found) for name, found in compared.items()},
        "relative_errors": errors,
        "failures": failures,
    }
    runtimes = {name: compared[name] for name in (ONNXRUNTIME, OPENVINO) if name in compared}
    return row, ModelRatios(model.name, model.category, compared.get(EAGER), compared.get(best), runtimes)


def _checked(model: Model, setting: Setting) -> tuple[dict[str, Call], dict[str, str], dict[str, float]]:
    """Returns the ways that give what eager gives, why others do not run, and the errors of all."""
    calls: dict[str, Call] = {}
    failures: dict[str, str] = {}
    errors: dict[str, float] = {}
    made = ways(model, setting)
    eager = made[EAGER]
    if isinstance(eager, NotRun):
        raise SystemExit(f"{model.name}: eager fails: {eager.reason}")
    expected = eager()
    for name, call in made.items():
        if isinstance(call, NotRun):
            failures[name] = call.reason
            continue
        errors[name] = relative_error(call(), expected)
        if errors[name] <= ALLOWED[model.dtype or setting.dtype]:
            calls[name] = call
        else:
            failures[name] = f"wrong: relative error {errors[name]:.1e}"
    return calls, failures, errors


def _scaled(found: MedianInterval) -> dict[str, float]:
    return {name: value * MICROSECONDS for name, value in asdict(found).items()}


def _not_run(rows: list[dict[str, Any]]) -> list[str]:
    return [
        f"{row['model']}: {row['ours']} fails: {row['failures'].get(row['ours'], '')}"
        for row in rows
        if row["ours"] not in row["microseconds"]
    ]


def _line(row: dict[str, Any], found: ModelRatios) -> str:
    times = "  ".join(f"{name} {each['median']:.1f}" for name, each in row["microseconds"].items())
    failures = "".join(f"\n    {name}: {reason}" for name, reason in row["failures"].items())
    ratios = f"eager {_text(found.eager)}  compile {_text(found.compile)}"
    return f"{row['model']:12s} {ratios}  | us: {times}{failures}"


def _text(found: MedianInterval | None) -> str:
    return "-" if found is None else f"{found.median:.2f} ({found.low:.2f} to {found.high:.2f})"


def _end(figures: dict[str, Any]) -> str:
    means = [
        f"{name.replace('_', ' ')} {value:.2f}"
        for name, value in figures.items()
        if isinstance(value, float) and name != "worst"
    ]
    worst = "" if figures["worst"] is None else f", worst {figures['worst']:.2f} ({figures['worst_of']})"
    return f"geometric means: {', '.join(means) or 'none'}{worst}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [model.name for model in MODELS]
    parts = [model.name for model in MODELS if model.category != NETWORK]
    parser.add_argument("--models", nargs="+", choices=names, default=parts, metavar="MODEL")
    parser.add_argument("--threads", type=int, choices=(1, 2), default=1)
    parser.add_argument("--dtype", choices=DTYPES, default="f32")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of timing, for each model")
    parser.add_argument("--budget", type=float, default=0.0, help="seconds of tuning, for each model")
    parser.add_argument(
        "--without", nargs="+", choices=WAYS, default=[], metavar="WAY", help="leave out ways"
    )
    parser.add_argument("--remark", default="", help="on the builds of the runtimes, for the document")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
