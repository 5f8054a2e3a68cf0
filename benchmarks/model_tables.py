"""The table and the sentence on PyTorch models of README and ``docs/concepts/results.md``.

``python -m benchmarks.result_tables`` prints them, from the results of ``benchmarks.models``.
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
RIVALS = ("eager", "compile", "compile_freezing", "onnxruntime", "openvino")  # of networks
COLUMNS = {  # head -> files; a model counts as the last one has it
    "f32, 1 thread": (MODELS_1_THREAD,),
    "f32, 2 threads": (MODELS_2_THREADS,),
    "bf16, 1 thread": (MODELS_BF16, BF16_CONVOLUTIONS),
}
EAGER = "eager"
NONE = "-"


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
    """Returns each model's ratios over eager and over the best of torch.compile, with their means."""
    columns = [_rows(files) for files in COLUMNS.values()]
    models = dict.fromkeys(model for rows in columns for model in rows)
    lines = [(model, *(cell for rows in columns for cell in _cells(rows.get(model)))) for model in models]
    heads = [f"{head}, over {other}" for head in COLUMNS for other in (EAGER, "compile")]
    categories = {row["category"] for rows in columns for row in rows.values()}
    means = [_means(columns, each) for each in (LARGE, SMALL, RARER) if each in categories]
    return markdown_table(("model", *heads), [*lines, *means])


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


def _rows(files: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Returns the rows of a column, by model."""
    return {row["model"]: row for file in files for row in _document(file)["rows"]}


def _means(columns: list[dict[str, dict[str, Any]]], category: str) -> tuple[str, ...]:
    """Returns a line with the geometric means of all columns, over the models of a category."""
    chosen = [[row for row in rows.values() if row["category"] == category] for rows in columns]
    means = (_mean(map(ratio, rows)) for rows in chosen for ratio in (_over_eager, _over_compile))
    return (f"geometric mean, {category}", *means)


def _mean(ratios: Iterable[dict[str, float] | None]) -> str:
    medians = [each["median"] for each in ratios if each is not None]
    return f"**{statistics.geometric_mean(medians):.2f}**" if medians else NONE


def _cells(row: dict[str, Any] | None) -> tuple[str, str]:
    """Returns the ratios over eager and over the best of torch.compile; NONE where one did not run."""
    return (NONE, NONE) if row is None else (_text(_over_eager(row)), _text(_over_compile(row)))


def _over_eager(row: dict[str, Any]) -> dict[str, float] | None:
    found: dict[str, float] | None = row["ratios"].get(EAGER)
    return found


def _over_compile(row: dict[str, Any]) -> dict[str, float] | None:
    found: dict[str, float] | None = row["ratios"].get(row["best_compile"])
    return found


def _text(found: dict[str, float] | None) -> str:
    return NONE if found is None else f"{found['median']:.2f}"


def _budget(file: str) -> str:
    return f"{_document(file)['settings']['budget']:.0f}"


def _document(file: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((RESULTS / file).read_text())
    return document
