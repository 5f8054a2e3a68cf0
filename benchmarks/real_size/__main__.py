"""Compiles and times models of the size that users have, next to eager mode, inductor and other runtimes.

    python -m benchmarks.real_size --output benchmarks/results/real_size.json
    python -m benchmarks.real_size --model bert --stage cold warm inductor

Each stage of a model (``benchmarks.real_size.outcome``) runs in a process of its own, with a limit of time
and of memory, which all of its children share; weights are random. Compiled files are in a folder of the
model's own: the first stage finds none. A model that the file has is not run again, but for stages that
--stage names. Calls are timed on one thread. Rivals that are not installed are left out, with the reason.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from benchmarks.compiled_files import new_caches
from benchmarks.limited_child import Stopped, in_child
from benchmarks.limited_libraries import limit_libraries
from benchmarks.real_size.outcome import (
    COLD,
    INDUCTOR,
    LLAMA_CPP,
    MISSING,
    STAGES,
    WARM,
    WRONG,
    RealSizeOutcome,
    stage_of,
)
from benchmarks.results_file import emit, report, seconds_option

LIMIT_S = 900.0
LIMIT_GB = 8.0
SECONDS = 10.0  # of timing, for each model


def main(arguments: list[str] | None = None) -> int:
    """Runs the stages of the models, prints a line for each, and writes the outcomes as JSON."""
    options = _options(arguments)
    limit_libraries()  # the children, which load them, inherit it
    known = kept(options.output)
    ggufs = dict(option.split("=", 1) for option in options.gguf)
    limits = {"limit_s": options.limit, "limit_bytes": int(options.memory * 2**30)}
    outcomes = dict(known)
    for name in options.model or model_names():
        if name in known and not options.stage:
            continue
        outcome = known.get(name, RealSizeOutcome(name))
        with new_caches():
            for stage in options.stage or stages_of(name, ggufs):
                found = in_child(
                    stage_of, name, stage, outcome, options.seconds, ggufs.get(name, ""), **limits
                )
                outcome = with_stage(outcome, stage, found)
                if outcome.outcome == MISSING:
                    break
        outcomes[name] = outcome
        print(line_of(outcome), flush=True)
        write(options, outcomes.values())
    print(json.dumps(summary_of(outcomes.values()), indent=1))
    return int(any(outcome.outcome == WRONG for outcome in outcomes.values()))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.real_size",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", nargs="*", choices=model_names(), default=[], help="only these models")
    parser.add_argument(
        "--stage", nargs="*", choices=STAGES, default=[], help="only these, which share compiled files"
    )
    parser.add_argument("--seconds", type=seconds_option, default=SECONDS, help="of timing, for each model")
    parser.add_argument("--limit", type=seconds_option, default=LIMIT_S, help="seconds of a stage")
    parser.add_argument("--memory", type=float, default=LIMIT_GB, help="GiB of all processes of a stage")
    parser.add_argument("--gguf", nargs="*", default=[], metavar="MODEL=FILE", help="files for llama.cpp")
    parser.add_argument("--output", type=Path, help="file for the outcomes; models that it has are kept")
    return parser.parse_args(arguments)


def model_names() -> tuple[str, ...]:
    """Returns the names of all models."""
    from benchmarks.real_size.models import BY_NAME  # loads torch

    return tuple(BY_NAME)


def stages_of(name: str, ggufs: dict[str, str]) -> tuple[str, ...]:
    """Returns the stages of a model: without llama.cpp where no file is for it."""
    return tuple(stage for stage in STAGES if stage != LLAMA_CPP or name in ggufs)


def with_stage(outcome: RealSizeOutcome, stage: str, found: RealSizeOutcome | Stopped) -> RealSizeOutcome:
    """Returns the outcome after a stage: what it found, or why it was stopped."""
    if isinstance(found, Stopped):
        return replace(outcome, stopped={**outcome.stopped, stage: found.reason})
    without = {name: reason for name, reason in found.stopped.items() if name != stage}
    return replace(found, stopped=without)


def line_of(outcome: RealSizeOutcome) -> str:
    """Returns an outcome in one line."""
    compiled = ", ".join(f"{stage} {seconds:g} s" for stage, seconds in outcome.compile_s.items())
    peaks = ", ".join(f"{stage} {peak:,.0f}" for stage, peak in outcome.peak_mb.items())
    memory = f"{outcome.weights_mb:,.0f} MB of weights, peak {peaks} MB, after {outcome.after_mb:,.0f} MB"
    calls = ", ".join(f"{name} {call_ms:g} ms" for name, call_ms in outcome.call_ms.items())
    ratios = ", ".join(f"{median:.2f} x {name}" for name, (median, _, _) in outcome.ratios.items())
    tokens = ", ".join(f"{name} {speed:g} tokens/s" for name, speed in outcome.tokens_per_s.items())
    missing = {**outcome.untimed, **outcome.stopped}
    reasons = ", ".join(f"{name}: {reason}" for name, reason in missing.items())
    parts = (outcome.reason, compiled, memory, calls, ratios, tokens, reasons)
    return f"{outcome.outcome:8} {outcome.model}: {'; '.join(filter(None, parts))}"


def summary_of(outcomes: Any) -> dict[str, Any]:
    """Returns means over the models: of times to compile over inductor's, and of the ratios of calls."""
    run = [outcome for outcome in outcomes if outcome.outcome != MISSING]
    over_inductor = [
        outcome.compile_s[COLD] / outcome.compile_s[INDUCTOR]
        for outcome in run
        if {COLD, INDUCTOR} <= outcome.compile_s.keys()
    ]
    ratios: dict[str, list[float]] = {}
    for outcome in run:
        for name, (median, _, _) in outcome.ratios.items():
            ratios.setdefault(name, []).append(median)
    warm = [outcome.compile_s[WARM] for outcome in run if WARM in outcome.compile_s]
    return {
        "models": len(run),
        "right": sum(outcome.outcome != WRONG for outcome in run),
        "cold over inductor": round(geometric_mean(over_inductor), 2) if over_inductor else None,
        "slowest warm": max(warm, default=None),
        "times as fast as": {name: round(geometric_mean(found), 2) for name, found in ratios.items()},
    }


def kept(file: Path | None) -> dict[str, RealSizeOutcome]:
    """Returns the outcomes in a file of results by model, but of missing ones; {} where there is no file."""
    if file is None or not file.is_file():
        return {}
    names = [field.name for field in fields(RealSizeOutcome)]
    outcomes = {}
    for row in json.loads(file.read_text(encoding="utf-8"))["rows"]:
        if row["outcome"] != MISSING:
            ratios = {name: tuple(ratio) for name, ratio in row["ratios"].items()}
            outcomes[row["model"]] = RealSizeOutcome(
                **{name: row[name] for name in names} | {"ratios": ratios}
            )
    return outcomes


def write(options: argparse.Namespace, outcomes: Any) -> None:
    """Writes a file of results, if ``options`` name one."""
    if options.output is None:
        return
    settings = {"seconds": options.seconds, "memory_gb": options.memory, "threads": 1}
    rows = list(map(asdict, outcomes))
    emit(report("real_size", settings, rows, summary_of(outcomes)), is_json=False, output=options.output)


if __name__ == "__main__":
    sys.exit(main())
