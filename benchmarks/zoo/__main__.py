"""Compiles language, audio, multimodal and vision models as written, by the back end of ``torch.compile``.

``python -m benchmarks.zoo --output FILE [--times]``. Each model has random weights, drawn from its name, and
is compiled in a child process with a limit of time; models that the file has are not compiled again. A model
is "right" (as near to eager mode as f32 rounds), "wrong", "left" (no graph is taken), "stopped" or "missing".

transformers, torchvision and timm are not among tuner's own requirements.
"""

import argparse
import importlib.util
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.limited_child import Stopped, in_child
from benchmarks.results_file import emit, report
from benchmarks.zoo.outcome import MISSING, OUTCOMES, STOPPED, WRONG, ZooModel, ZooOutcome, models, outcome_of

LIMIT_S = 900.0


def main(arguments: list[str] | None = None) -> int:
    """Compiles the models, prints a line for each, and writes the outcomes as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description=__doc__)
    parser.add_argument("--model", nargs="*", default=[], help="only models of these names")
    parser.add_argument("--library", nargs="*", default=[], help="only models of these libraries")
    parser.add_argument("--times", action="store_true", help="time them next to eager mode and inductor")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds of a model")
    parser.add_argument("--output", type=Path, help="file for the outcomes; models that it has are kept")
    options = parser.parse_args(arguments)
    outcomes = kept(options.output)
    for model in wanted(options.model, options.library, outcomes):
        outcome = in_child(outcome_of, model, options.times, limit_s=options.limit)
        if isinstance(outcome, Stopped):
            outcome = ZooOutcome(model.library, model.name, STOPPED, outcome.reason)
        outcomes.append(outcome)
        print(line_of(outcome), flush=True)
        if options.output is not None:
            write(options.output, outcomes)
    summary = summary_of(outcomes)
    print(json.dumps(summary, indent=1))
    return int(any(outcome.outcome in (WRONG, STOPPED) for outcome in outcomes))


def wanted(names: list[str], libraries: list[str], outcomes: Iterable[ZooOutcome]) -> list[ZooModel]:
    """Returns the models of ``names`` and ``libraries``, all without any, whose outcome is not known."""
    known = {ZooModel(outcome.library, outcome.name) for outcome in outcomes}
    found = []
    for model in models():
        is_named = not names or model.name in names
        if is_named and (not libraries or model.library in libraries) and model not in known:
            found.append(model)
    return found


def line_of(outcome: ZooOutcome) -> str:
    """Returns an outcome in one line."""
    ratios = ", ".join(f"{median:.2f} x {name}" for name, (median, _, _) in outcome.ratios.items())
    graphs = f"{outcome.taken} graphs taken, {outcome.left} left, {outcome.compile_s:g} s"
    return f"{outcome.outcome:8} {outcome.name}: {'; '.join(filter(None, (graphs, ratios, outcome.reason)))}"


def summary_of(outcomes: Iterable[ZooOutcome]) -> dict[str, Any]:
    """Returns how many models have each outcome, and the geometric mean and the least of each ratio."""
    outcomes = tuple(outcomes)
    counts = Counter(outcome.outcome for outcome in outcomes)
    ratios: dict[str, list[float]] = {}
    for outcome in outcomes:
        for name, (median, _, _) in outcome.ratios.items():
            ratios.setdefault(name, []).append(median)
    means = {}
    for name, values in ratios.items():
        mean = math.exp(sum(map(math.log, values)) / len(values))
        means[name] = {"models": len(values), "mean": round(mean, 2), "least": round(min(values), 2)}
    by_outcome = {name: counts[name] for name in OUTCOMES}
    run = sum(counts.values()) - counts[MISSING]
    whole = sum(bool(outcome.taken) and not outcome.left for outcome in outcomes)
    return {"by_outcome": by_outcome, "run": run, "all graphs taken": whole, "times as fast as": means}


def kept(file: Path | None) -> list[ZooOutcome]:
    """Returns the outcomes in a file of results; none where there is no file."""
    if file is None or not file.is_file():
        return []
    outcomes = []
    for row in json.loads(file.read_text(encoding="utf-8"))["rows"]:
        ratios = {name: tuple(ratio) for name, ratio in row["ratios"].items()}
        lists = {"reasons": tuple(row["reasons"]), "in_torch": tuple(row["in_torch"]), "ratios": ratios}
        outcomes.append(ZooOutcome(**{**row, **lists}))
    return outcomes


def write(file: Path, outcomes: Iterable[ZooOutcome]) -> None:
    """Writes a file of results."""
    libraries = ("torch", "transformers", "torchvision", "timm")
    versions = {name: version(name) for name in libraries if importlib.util.find_spec(name)}
    rows = list(map(asdict, outcomes))
    emit(report("zoo", versions, rows, summary_of(outcomes)), is_json=False, output=file)


if __name__ == "__main__":
    sys.exit(main())
