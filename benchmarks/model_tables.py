"""The table and the sentence on PyTorch models of README and ``docs/concepts/results.md``.

``python -m benchmarks.result_tables`` prints them, from the results of ``benchmarks.models``.
"""

import json
from typing import Any

from benchmarks.markdown_table import markdown_table
from benchmarks.ratios import machine
from benchmarks.results_file import RESULTS

MODELS_1_THREAD = "models_f32_1_thread.json"
MODELS_2_THREADS = "models_f32_2_threads.json"
MODELS_BF16 = "models_bf16_1_thread.json"
FILES = (MODELS_1_THREAD, MODELS_2_THREADS, MODELS_BF16)
HEADS = ("f32, 1 thread", "f32, 2 threads", "bf16, 1 thread")
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
    documents = [_document(file) for file in FILES]
    models = dict.fromkeys(row["model"] for document in documents for row in document["rows"])
    rows = [(model, *(cell for each in documents for cell in _cells(each, model))) for model in models]
    heads = [f"{head}, over {other}" for head in HEADS for other in (EAGER, "compile")]
    return markdown_table(("model", *heads), [*rows, *map(_means, ("large", "small"))])


def models_versions() -> str:
    """Returns a sentence on how the models were timed."""
    document = _document(MODELS_1_THREAD)
    version = document["settings"]["torch"].partition("+")[0]
    return (
        f"{machine(MODELS_1_THREAD)}; PyTorch {version}; each model was tuned for "
        f"{_budget(MODELS_1_THREAD)} seconds on one thread, and has the same schedules on two."
    )


def _means(size: str) -> tuple[str, ...]:
    summaries = [_document(file)["summary"] for file in FILES]
    means = [summary[f"{size}_over_{other}"] for summary in summaries for other in (EAGER, "compile")]
    return (f"geometric mean, {size}", *(NONE if mean is None else f"**{mean:.2f}**" for mean in means))


def _cells(document: dict[str, Any], model: str) -> tuple[str, str]:
    """Returns the ratios over eager and over the best of torch.compile; NONE where one did not run."""
    for row in document["rows"]:
        if row["model"] == model:
            return _ratio(row, EAGER), _ratio(row, row["best_compile"])
    return NONE, NONE


def _ratio(row: dict[str, Any], other: str) -> str:
    found = row["ratios"].get(other)
    return NONE if found is None else f"{found['median']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"


def _budget(file: str) -> str:
    return f"{_document(file)['settings']['budget']:.0f}"


def _document(file: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((RESULTS / file).read_text())
    return document
