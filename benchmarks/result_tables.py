"""Tables and sentences of README and ``docs/concepts/results.md``, generated from the results files.

    python -m benchmarks.result_tables

Tests compare the pages with these texts: no number of a result is typed by hand.
"""

import argparse
import json
import re
import statistics
from collections import Counter
from collections.abc import Iterable
from typing import Any

from benchmarks.markdown_table import markdown_table
from benchmarks.model_tables import (
    models_intervals,
    models_sentence,
    models_table,
    models_versions,
    networks_sentence,
    networks_table,
    real_size_sentence,
    real_size_table,
)
from benchmarks.quantized_tables import quantized_avx2_sentence, quantized_sentence, quantized_table
from benchmarks.ratios import (
    AMX_1_THREAD,
    AVX2_1_THREAD,
    BF16_1_THREAD,
    F32_1_THREAD,
    XEON_1_THREAD,
    ZEN4_1_THREAD,
    Ratio,
    f32_pairs,
    geometric_mean,
    machine,
    mean_of_pairs,
    ratios_in,
)
from benchmarks.results_file import RESULTS
from benchmarks.search.kernel_tuner import PREFIX
from benchmarks.search.search_replay import REGRET_STEPS

SPACES = {  # recorded space -> its name in the table, and the file with Kernel Tuner's searches on it
    "gemm_RTX_3090": ("GEMM, RTX 3090", "search_replay_rtx_3090.json"),
    "gemm_RTX_Titan": ("GEMM, Titan RTX", "search_replay_titan.json"),
    "matmul_cpu_packed_256x320x192": ("256x320x192, CPU", "search_replay_cpu_256x320x192.json"),
    "matmul_cpu_packed_192x256x320": ("192x256x320, CPU", "search_replay_cpu_192x256x320.json"),
    "matmul_cpu_packed_200x300x400": ("200x300x400, CPU", "search_replay_cpu_200x300x400.json"),
    "convolution_A100": ("convolution, A100", "search_replay_kernel_tuner_convolution_a100.json"),
    "convolution_MI250X": ("convolution, MI250X", "search_replay_kernel_tuner_convolution_mi250x.json"),
    "dedispersion_A100": ("dedispersion, A100", "search_replay_kernel_tuner_dedispersion_a100.json"),
}
PROCESSORS = {
    "Zen 4": ZEN4_1_THREAD,
    "AVX2": AVX2_1_THREAD,
    "Xeon": XEON_1_THREAD,
    "Xeon, AMX": AMX_1_THREAD,
}
REGRETS = {  # search -> its name in the table
    "tpe": "`tpe`",
    f"{PREFIX}adaptive_tabu_greywolf": "tabu_greywolf",
}


def libraries_table() -> str:
    """Returns a line for each processor and type: means of ratios to the fastest library, and the least."""
    head = ("processor, type", "large", "small or skinny", "least", "below 1")
    lines = []
    for processor, files in PROCESSORS.items():
        for dtype, file in files.items():
            ratios = ratios_in(file)
            least = min(ratios, key=lambda ratio: ratio.ratio)
            slower = sum(ratio.ratio < 1 for ratio in ratios)
            lines.append(
                (
                    f"{processor}, {dtype}",
                    _mean_text(ratios, is_large=True),
                    _mean_text(ratios, is_large=False),
                    f"{_interval(least)}, {least.shape}, {_library(least)}",
                    f"{slower} of {len(ratios)}",
                )
            )
    return markdown_table(head, lines)


def _mean_text(ratios: Iterable[Ratio], *, is_large: bool) -> str:
    """Returns the geometric mean of the large shapes or of the others; "" without any."""
    chosen = [ratio for ratio in ratios if ratio.is_large == is_large]
    if not chosen:
        return ""
    return f"{geometric_mean(chosen):.2f}"


def _library(ratio: Ratio) -> str:
    name = ratio.baseline.split()[0]
    return name.replace("openblas", "OpenBLAS")


def _interval(ratio: Ratio) -> str:
    return f"{ratio.ratio:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def intervals_sentence() -> str:
    """Returns how far the intervals of the ratios to the fastest library reach."""
    texts = []
    for processor, files in PROCESSORS.items():
        ratios = [ratio for file in files.values() for ratio in ratios_in(file)]
        reach = statistics.median(max(each.high / each.ratio, each.ratio / each.low) - 1 for each in ratios)
        texts.append(f"{reach:.0%} ({processor})")
    return f"Half of the intervals reach at most {', '.join(texts)} from their ratio."


def library_sentence() -> str:
    """Returns the README's sentence on large f32 shapes against the fastest library of each."""
    means = []
    for processor, files in PROCESSORS.items():
        large = [ratio for ratio in ratios_in(files["f32"]) if ratio.is_large]
        means.append(f"{geometric_mean(large):.2f} ({processor})")
    return (
        f"On one thread, large f32 products are {', '.join(means)} times as fast as the fastest of "
        "OpenBLAS, MKL, BLIS and oneDNN, geometric means."
    )


def processors_sentence() -> str:
    """Returns which processors and libraries the table of libraries has."""
    machines = [f"{processor}: {machine(files['f32'])}" for processor, files in PROCESSORS.items()]
    return (
        f"On one thread ({'; '.join(machines)}), against the fastest of OpenBLAS, MKL, BLIS and oneDNN for "
        "each shape:"
    )


def cpu_summary() -> str:
    """Returns a sentence on the processor that the picture of ratios shows."""
    large = [pair for pair in f32_pairs() if pair.one.is_large]
    small = [pair for pair in f32_pairs() if not pair.one.is_large]
    large_1, large_2 = mean_of_pairs(large)
    small_1, small_2 = mean_of_pairs(small)
    least = min(pair.one.ratio for pair in small)
    library = ".".join(ratios_in(F32_1_THREAD)[0].baseline.split()[1].split(".")[:3])
    bf16 = geometric_mean(ratios_in(BF16_1_THREAD))
    return (
        f"On one thread ({machine(F32_1_THREAD)}), large f32 matmuls are {large_1:.2f} times as fast as "
        f"OpenBLAS {library}, small or skinny ones {small_1:.2f} times (least {least:.2f}); on two threads "
        f"{large_2:.2f} and {small_2:.2f} times. bf16 is {bf16:.2f} times as fast as oneDNN. All are "
        "geometric means."
    )


def seeds_sentence() -> str:
    """Returns a sentence on the speeds that five searches with different seeds reach."""
    found = [each.ratio for each in ratios_in("cpu_matmul_1024_5_seeds.json")]
    return (
        f"{len(found)} searches of 1024x1024x1024 with different seeds, 100 trials each, reach ratios of "
        f"{min(found):.2f} to {max(found):.2f}."
    )


def search_table() -> str:
    """Returns score P of the default sampler and of the best of Kernel Tuner's searches for each space."""
    default = {row["space"]: row for row in _rows("search_replay_tpe.json") if row["search"] == "tpe"}
    rows = []
    for space, (name, file) in SPACES.items():
        rivals = [row for row in _rows(file) if row["search"].startswith(PREFIX)]
        best = max(rivals, key=lambda row: float(row["p"]))
        search = best["search"].removeprefix(PREFIX)
        cells = (_score(default[space]), f"{_score(best)}, {search}", str(len(rivals)))
        rows.append((name, f"{default[space]['rows']:,}", *cells))
    return markdown_table(("space", "configurations", "`tpe`", "best of Kernel Tuner", "of searches"), rows)


def regret_table() -> str:
    """Returns for each space how much slower the best kernel of a search is than the optimum, in the mean."""
    by_space: dict[str, dict[str, Any]] = {}
    for row in _rows("search_regret.json"):
        by_space.setdefault(row["space"], {})[row["search"]] = row["regret"]
    rows = []
    for space, (name, _) in SPACES.items():
        cells = [_percent(by_space[space][search][str(step)]) for search in REGRETS for step in REGRET_STEPS]
        rows.append((name, *cells))
    heads = [f"{REGRETS[search]}, {step}" for search in REGRETS for step in REGRET_STEPS]
    return markdown_table(("space", *heads), rows)


def _percent(share: float) -> str:
    return f"{share:.1%}"


def warm_start_sentence() -> str:
    """Returns after how many trials a search is at 97 % of the optimum."""
    rows = _rows("warm_start_97.json")
    both, cold = ([float(row[kind]["mean"]) for row in rows] for kind in ("both", "cold"))
    random = [float(row["random_mean"]) for row in rows]
    return (
        f"On {len(rows)} recorded CPU spaces, a search needs {_range(both)} trials to find 97 % of the best "
        "speed when it starts from the cost model and from the best trials of the other spaces, "
        f"{_range(cold)} from nothing, and random search {_range(random)}."
    )


def overhead_sentence() -> str:
    """Returns a sentence on the time of a candidate and of a run."""
    small, large = (
        json.loads((RESULTS / f"overhead_{size}.json").read_text())["summary"] for size in (512, 1024)
    )
    return (
        f"A candidate compiles in {1e3 * small['median_compile_s']:.0f} ms at 512x512x512 and "
        f"{1e3 * large['median_compile_s']:.0f} ms at 1024x1024x1024 (medians). 100 trials take "
        f"{small['wall_s']:.0f} s and {large['wall_s']:.0f} s with two compile workers, "
        f"{100 * small['own_share']:.0f} % and {100 * large['own_share']:.0f} % of it processor time of the "
        "tuner itself."
    )


UNKNOWN_OPS = "ops of a dialect that MLIR does not have, `test` among them"
OTHER_REASONS = "others, most of them an op that changed since LLVM 22"
REASONS = (  # what a refusal says -> why
    (re.compile("unregistered dialect|of dialect test"), UNKNOWN_OPS),
    (
        re.compile("custom op '(transform\\.)?test|pass: unknown pass"),
        "ops and passes of upstream's test executables",
    ),
    (re.compile("found no "), "a match that finds nothing is an error here"),
    (re.compile("^after the script"), "the result is not valid MLIR"),
)


def upstream_sentence() -> str:
    """Returns which tests of the transform dialect in LLVM's sources ``tuner apply`` takes."""
    document = json.loads((RESULTS / "upstream_tests.json").read_text())
    counts, release = document["summary"], document["settings"]["tests"]
    modules = sum(row["modules"] for row in document["rows"])
    return (
        f"`mlir/test` of LLVM {release} has {counts['files']} such files with {modules} payloads. For "
        f"{counts['equal']} of them `tuner apply` and `mlir-opt` {release} give the same module, for "
        f"{counts['differs']} another one, since MLIR here is newer. "
        f"{counts['refused by both']} are refused by both, as most of these tests want, "
        f"{counts['only tuner']} by `mlir-opt` alone and {counts['refused']} by `tuner apply` alone:"
    )


def upstream_table() -> str:
    """Returns why ``tuner apply`` alone refuses upstream's tests, with the number of files."""
    files: Counter[str] = Counter()
    for row in json.loads((RESULTS / "upstream_tests.json").read_text())["rows"]:
        files.update({_why_refused(reason) for reason in row["reasons"]})
    return markdown_table(
        ("refused because of", "files"), [(why, str(count)) for why, count in files.most_common()]
    )


def _why_refused(reason: str) -> str:
    return next((why for pattern, why in REASONS if pattern.search(reason)), OTHER_REASONS)


def _rows(file: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((RESULTS / file).read_text())["rows"]
    return rows


def _score(row: dict[str, Any]) -> str:
    return f"{row['p']:.2f} ± {row['p_standard_error']:.2f}"


def _range(means: list[float]) -> str:
    """Returns the smallest and the largest mean, and their geometric mean."""
    return f"{min(means):.3g} to {max(means):.3g} (geometric mean {statistics.geometric_mean(means):.1f})"


GPU_SQUARE = "4096x4096x4096"
GPU_DTYPES = ("f16", "bf16", "tf32", "f32")


def gpu_sentences() -> str:
    """Returns the README's sentences on GPUs: how kernels are verified, and what some reached on an H200."""
    ratios: dict[str, float] = {}
    for row in json.loads((RESULTS / "gpu_visit_sm_90a.json").read_text())["rows"]:
        if "ratio" in row:
            ratios[row["problem"]] = max(row["ratio"], ratios.get(row["problem"], 0.0))
    reached = ", ".join(
        f"{dtype} {ratios[f'matmul {GPU_SQUARE} {dtype} nn none']:.2f}" for dtype in GPU_DTYPES
    )
    three = ratios[f"matmul {GPU_SQUARE} tf32x3 nn none"]
    return (
        f"Kernels for NVIDIA GPUs are verified as PTX in a simulator. On an H200, {GPU_SQUARE} reached "
        f"{reached} of cuBLAS, f32 by three products of tf32 {three:.2f}."
    )


TEXTS = (
    cpu_summary,
    processors_sentence,
    libraries_table,
    intervals_sentence,
    quantized_sentence,
    quantized_table,
    quantized_avx2_sentence,
    models_sentence,
    models_versions,
    models_table,
    models_intervals,
    networks_sentence,
    networks_table,
    real_size_sentence,
    real_size_table,
    seeds_sentence,
    overhead_sentence,
    search_table,
    regret_table,
    warm_start_sentence,
    upstream_sentence,
    upstream_table,
    gpu_sentences,
)


def main() -> None:
    """Prints all generated texts."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    print("\n\n".join(text() for text in (library_sentence, *TEXTS)))


if __name__ == "__main__":
    main()
