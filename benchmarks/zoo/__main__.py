"""Compiles language, audio, multimodal and vision models as written, by the back end of ``torch.compile``.

``python -m benchmarks.zoo --output FILE [--times]``. Each model has random weights, drawn from its name, and
is compiled in a child process with a limit of time; models that the file has are not compiled again, but with
--times those that lack a ratio. TUNER_CPU limits the libraries of the baselines as well. A model
is "right" (as near to eager mode as f32 rounds), "wrong", "left" (no graph is taken), "stopped" or "missing".
A missing model, whose library is not installed or refuses it, is tried again by the next call. Libraries that
need other versions of PyTorch have an environment and a file each; ``--merge`` joins the files.

transformers, torchvision and timm are not among tuner's own requirements.
"""

import argparse
import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.limited_child import Stopped, in_child
from benchmarks.limited_libraries import limit_libraries
from benchmarks.results_file import emit, report
from benchmarks.zoo.outcome import (
    MISSING,
    OUTCOMES,
    STOPPED,
    TOLERANCE,
    WRONG,
    ZooModel,
    ZooOutcome,
    models,
    outcome_of,
)

LIMIT_S = 900.0


def main(arguments: list[str] | None = None) -> int:
    """Compiles the models, prints a line for each, and writes the outcomes as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description=__doc__)
    parser.add_argument("--model", nargs="*", default=[], help="only models of these names")
    parser.add_argument("--library", nargs="*", default=[], help="only models of these libraries")
    parser.add_argument("--times", action="store_true", help="time them next to eager mode and inductor")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds of a model")
    parser.add_argument("--output", type=Path, help="file for the outcomes; models that it has are kept")
    parser.add_argument("--merge", nargs="*", type=Path, default=[], help="files whose models are kept, too")
    options = parser.parse_args(arguments)
    limit_libraries()  # the children, which load them, inherit it
    outcomes = kept(options.output)
    for file in options.merge:
        outcomes += [outcome for outcome in kept(file) if model_of(outcome) not in map(model_of, outcomes)]
    whole = [outcome for outcome in outcomes if not options.times or is_timed(outcome)]
    for model in wanted(options.model, options.library, whole):
        outcome = in_child(outcome_of, model, options.times, limit_s=options.limit)
        if isinstance(outcome, Stopped):
            outcome = ZooOutcome(model.library, model.name, STOPPED, outcome.reason)
        outcomes = [known for known in outcomes if model_of(known) != model]
        outcomes.append(outcome)
        print(line_of(outcome), flush=True)
        if options.output is not None:
            write(options.output, outcomes)
    if options.merge and options.output is not None:
        write(options.output, outcomes)
    summary = summary_of(outcomes)
    print(json.dumps(summary, indent=1))
    return int(any(outcome.outcome in (WRONG, STOPPED) for outcome in outcomes))


def wanted(names: list[str], libraries: list[str], outcomes: Iterable[ZooOutcome]) -> list[ZooModel]:
    """Returns the models of ``names`` and ``libraries``, all without any, whose outcome is not known."""
    known = set(map(model_of, outcomes))
    found = []
    for model in models():
        is_named = not names or model.name in names
        if is_named and (not libraries or model.library in libraries) and model not in known:
            found.append(model)
    return found


def is_timed(outcome: ZooOutcome) -> bool:
    """Returns whether a model has a ratio to each baseline."""
    return bool(outcome.ratios) and not outcome.untimed


def model_of(outcome: ZooOutcome) -> ZooModel:
    """Returns the model whose outcome it is."""
    return ZooModel(outcome.library, outcome.name)


def line_of(outcome: ZooOutcome) -> str:
    """Returns an outcome in one line."""
    ratios = ", ".join(f"{median:.2f} x {name}" for name, (median, _, _) in outcome.ratios.items())
    graphs = f"{outcome.taken} graphs taken, {outcome.left} left, {outcome.compile_s:g} s"
    if outcome.share is not None:
        graphs += f", {outcome.share:.0%} of the operations"
    untimed = ", ".join(f"no ratio to {name}: {why}" for name, why in outcome.untimed.items())
    words = (graphs, ratios, untimed, outcome.reason)
    return f"{outcome.outcome:8} {outcome.name}: {'; '.join(filter(None, words))}"


def summary_of(outcomes: Iterable[ZooOutcome]) -> dict[str, Any]:
    """Returns how many models have each outcome, and the geometric mean and the least of each ratio.

    The ratios of each library's models are apart. Of the shares of operations that tuner computes: the mean,
    the least, and how many models have one.
    """
    outcomes = tuple(outcomes)
    counts = Counter(outcome.outcome for outcome in outcomes)
    libraries = Counter(outcome.library for outcome in outcomes if outcome.outcome != MISSING)
    shares = [outcome.share for outcome in outcomes if outcome.share is not None]
    means = {}
    for library in libraries:
        means[library] = _means_of([outcome for outcome in outcomes if outcome.library == library])
    by_outcome = {name: counts[name] for name in OUTCOMES}
    run = sum(counts.values()) - counts[MISSING]
    whole = sum(bool(outcome.taken) and not outcome.left for outcome in outcomes)
    return {
        "by_outcome": by_outcome,
        "run": run,
        "of libraries": dict(libraries),
        "all graphs taken": whole,
        "share of operations": _share_of(shares),
        "times as fast as": means,
    }


def _means_of(outcomes: Iterable[ZooOutcome]) -> dict[str, dict[str, float]]:
    ratios: dict[str, list[float]] = {}
    for outcome in outcomes:
        for name, (median, _, _) in outcome.ratios.items():
            ratios.setdefault(name, []).append(median)
    means = {}
    for name, values in ratios.items():
        mean = statistics.geometric_mean(values)
        means[name] = {"models": len(values), "mean": round(mean, 2), "least": round(min(values), 2)}
    return means


def _share_of(shares: list[float]) -> dict[str, float]:
    if not shares:
        return {"models": 0}
    mean = sum(shares) / len(shares)
    return {"models": len(shares), "mean": round(mean, 4), "least": min(shares)}


def kept(file: Path | None) -> list[ZooOutcome]:
    """Returns the outcomes in a file of results, but of missing models; none where there is no file."""
    if file is None or not file.is_file():
        return []
    outcomes = []
    for row in json.loads(file.read_text(encoding="utf-8"))["rows"]:
        if row["outcome"] == MISSING:
            continue
        ratios = {name: tuple(ratio) for name, ratio in row["ratios"].items()}
        lists = {"reasons": tuple(row["reasons"]), "in_torch": tuple(row["in_torch"]), "ratios": ratios}
        outcomes.append(ZooOutcome(**{**row, **lists}))
    return outcomes


def write(file: Path, outcomes: Iterable[ZooOutcome]) -> None:
    """Writes a file of results."""
    outcomes = tuple(outcomes)
    rows = list(map(asdict, outcomes))
    emit(report("zoo", {"tolerance": TOLERANCE}, rows, summary_of(outcomes)), is_json=False, output=file)


if __name__ == "__main__":
    sys.exit(main())
