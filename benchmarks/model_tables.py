"""The table and the sentence on PyTorch models of README and ``docs/concepts/results.md``.

``python -m benchmarks.result_tables`` prints them, from the results of ``benchmarks.models`` and
``benchmarks.real_size``.
"""

import json
import statistics
from collections.abc import Iterable
from typing import Any

from benchmarks.markdown_table import markdown_table
from benchmarks.model_zoo import LARGE, RARER, SMALL
from benchmarks.ratios import machine
from benchmarks.results_file import RESULTS

MODELS_1_THREAD = "models_f32_1_thread.json"
MODELS_2_THREADS = "models_f32_2_threads.json"
MODELS_BF16 = "models_bf16_1_thread.json"
BF16_CONVOLUTIONS = "models_bf16_convolutions_1_thread.json"  # measured again, after their code had changed
NETWORKS_AVX2 = "networks_avx2_f32_1_thread.json"
REAL_SIZE = "real_size.json"
RIVALS = ("eager", "compile_freezing", "onnxruntime", "openvino")  # of networks
# of models at real size: head -> names of the baselines, the best of which counts
BASELINES = {
    "eager": ("eager",),
    "torch.compile": ("torch.compile", "torch.compile freezing"),
    "onnxruntime": ("onnxruntime",),
    "openvino": ("openvino",),
}
COLUMNS = {  # head -> files; a model counts as the last one has it
    "f32, 1 thread": (MODELS_1_THREAD,),
    "f32, 2 threads": (MODELS_2_THREADS,),
    "bf16, 1 thread": (MODELS_BF16, BF16_CONVOLUTIONS),
}
EAGER = "eager"
NONE = "-"
EQUAL = "not distinguishable"


def models_sentence() -> str:
    """Returns the README's sentence on models."""
    summary = _document(MODELS_1_THREAD)["summary"]
    return (
        f"PyTorch models on one thread ({machine(MODELS_1_THREAD)}), f32, tuned for "
        f"{_budget(MODELS_1_THREAD)} seconds each: large ones are {summary['large_over_eager']:.2f} times as "
        f"fast as eager and {summary['large_over_compile']:.2f} times as fast as the best of torch.compile, "
        f"small ones {summary['small_over_eager']:.2f} and {summary['small_over_compile']:.2f} times, "
        "geometric means."
    )


def models_table() -> str:
    """Returns each model's ratios over the best of torch.compile, the first also over eager, with means."""
    columns = [_rows(files) for files in COLUMNS.values()]
    models = dict.fromkeys(model for rows in columns for model in rows)
    lines = []
    for model in models:
        found = [rows.get(model) for rows in columns]
        lines.append((model, _text(_over_eager(found[0])), *map(_text, map(_over_compile, found))))
    categories = {row["category"] for rows in columns for row in rows.values()}
    means = [_means(columns, each) for each in (LARGE, SMALL, RARER) if each in categories]
    first, *_ = COLUMNS
    heads = ("model", f"{first}, over eager", *(f"{head}, over compile" for head in COLUMNS))
    return markdown_table(heads, [*lines, *means])


def models_intervals() -> str:
    """Returns how far the widest interval of each column's ratios reaches from its median."""
    texts = []
    for head, files in COLUMNS.items():
        reach = 0.0
        for row in _rows(files).values():
            for found in (_over_eager(row), _over_compile(row)):
                if found is not None:
                    reach = max(reach, found["high"] / found["median"], found["median"] / found["low"])
        texts.append(f"{reach - 1:.0%} ({head})")
    return f"The widest intervals reach {', '.join(texts)} from their ratio."


def models_versions() -> str:
    """Returns a sentence on how the models were timed."""
    document = _document(MODELS_1_THREAD)
    version = document["settings"]["torch"].partition("+")[0]
    return (
        f"PyTorch is {version}; each model was tuned for {_budget(MODELS_1_THREAD)} seconds on one "
        "thread, and has the same schedules on two."
    )


def networks_sentence() -> str:
    """Returns on which machine the networks were timed, and how the runtimes were held to its processor."""
    remark = _document(NETWORKS_AVX2)["settings"]["remark"]
    return f"One thread of {machine(NETWORKS_AVX2)}, f32, without tuning; {remark} (`{NETWORKS_AVX2}`):"


def networks_table() -> str:
    """Returns the ratios of whole networks over each rival."""
    rows = _document(NETWORKS_AVX2)["rows"]
    lines = [(row["model"], *(_text(row["ratios"].get(rival)) for rival in RIVALS)) for row in rows]
    return markdown_table(("network", *(f"over {rival}" for rival in RIVALS)), lines)


def real_size_sentence() -> str:
    """Returns the README's sentence on models at real size."""
    rows = _document(REAL_SIZE)["rows"]
    over_inductor = [row["compile_s"]["cold"] / row["compile_s"]["inductor"] for row in rows]
    over_eager = [row["ratios"][EAGER][0] for row in rows]
    over_best = list(map(_over_best, rows))
    return (
        f"{len(rows)} models at real size on one thread ({machine(REAL_SIZE)}), not tuned: compiled in "
        f"{statistics.geometric_mean(over_inductor):.2f} of inductor's time, "
        f"{statistics.geometric_mean(over_eager):.2f} times as fast as eager and "
        f"{statistics.geometric_mean(over_best):.2f} times as fast as the best of torch.compile, onnxruntime "
        "and OpenVINO, geometric means."
    )


def real_size_table() -> str:
    """Returns time and memory of compiling models at real size, and the ratios of their calls."""
    lines = []
    for row in _document(REAL_SIZE)["rows"]:
        seconds = [f"{row['compile_s'][stage]:.1f}" for stage in ("cold", "inductor", "warm")]
        memory = f"{row['weights_mb']:.0f}, {row['peak_mb']['cold']:.0f}"
        ratios = [_least_median(row["ratios"], names) for names in BASELINES.values()]
        lines.append((row["model"], memory, ", ".join(seconds), *ratios))
    heads = ("model", "MB: weights, peak", "s: cold, inductor, warm")
    return markdown_table((*heads, *(f"over {baseline}" for baseline in BASELINES)), lines)


def _over_best(row: dict[str, Any]) -> float:
    """Returns how many times as fast as the best baseline a model is; 1.0 where they cannot be told apart."""
    medians: list[float] = [median for median, _, _ in row["ratios"].values()]
    if any(reason.startswith(EQUAL) for reason in row["untimed"].values()):
        medians.append(1.0)
    return min(medians)


def _least_median(ratios: dict[str, list[float]], names: tuple[str, ...]) -> str:
    """Returns how many times as fast as the fastest of some baselines a model is; NONE if none was timed."""
    medians = [ratios[name][0] for name in names if name in ratios]
    return f"{min(medians):.2f}" if medians else NONE


def _rows(files: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Returns the rows of a column, by model."""
    return {row["model"]: row for file in files for row in _document(file)["rows"]}


def _means(columns: list[dict[str, dict[str, Any]]], category: str) -> tuple[str, ...]:
    """Returns a line with the geometric means of all columns, over the models of a category."""
    chosen = [[row for row in rows.values() if row["category"] == category] for rows in columns]
    over_compile = [_mean(map(_over_compile, rows)) for rows in chosen]
    return (f"geometric mean, {category}", _mean(map(_over_eager, chosen[0])), *over_compile)


def _mean(ratios: Iterable[dict[str, float] | None]) -> str:
    medians = [each["median"] for each in ratios if each is not None]
    return f"**{statistics.geometric_mean(medians):.2f}**" if medians else NONE


def _over_eager(row: dict[str, Any] | None) -> dict[str, float] | None:
    found: dict[str, float] | None = row and row["ratios"].get(EAGER)
    return found


def _over_compile(row: dict[str, Any] | None) -> dict[str, float] | None:
    found: dict[str, float] | None = row and row["ratios"].get(row["best_compile"])
    return found


def _text(found: dict[str, float] | None) -> str:
    return NONE if found is None else f"{found['median']:.2f}"


def _budget(file: str) -> str:
    return f"{_document(file)['settings']['budget']:.0f}"


def _document(file: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((RESULTS / file).read_text())
    return document
