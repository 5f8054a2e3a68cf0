"""What the rows of a visit decide: one line for each question, with the figures that it rests on.

A question for which rows are missing is open. The rules are those that a reader would apply to the rows by
hand, so that a visit that was cut off is read the same way as a whole one.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.gpu_visit.kept_bits import BITS_PREFIX
from benchmarks.search.ordering import ordering

Row = Mapping[str, Any]
Rows = tuple[Row, ...]
OPEN = "open"
# Cycles of an FFMA of three operands in one bank over those of two reads: 1.45 where both banks are averaged
PORT_RATIO = 1.2
PAIRED_CYCLES = 0.75  # of what distinct addresses take: pairs of lanes share a pass of shared memory
FASTER = 1.02  # ratio of two medians that is no noise
LEAST_POINTS = 8
THREE_PRODUCTS = "Do three products of tf32 beat cuBLAS's f32 at 4096^3, and by which configuration?"
UNSCALED = "matmul 4096x4096x4096 e4m3 nt none"
WITH_SCALES = "scaled_matmul 4096x4096x4096 e4m3 nt none scales=1x128,128x128"
EXPERTS = {  # groups of rows -> as many rows of one matrix
    "grouped_matmul 8x4096x4096x4096 bf16 nt none": "matmul 4096x4096x4096 bf16 nt none",
    "grouped_matmul 64x4096x1408x2048 bf16 nt none": "matmul 4096x1408x2048 bf16 nt none",
}
F32_SQUARE, F32_FOUNDING = "matmul 4096x4096x4096 f32", "matmul 5376x2048x5376 f32"


@dataclass(frozen=True)
class VisitFinding:
    """An answer to one question, with its figures."""

    question: str
    answer: str  # ``OPEN`` where rows are missing
    figures: dict[str, Any] = field(default_factory=dict)


def decided(rows: Iterable[Row]) -> tuple[VisitFinding, ...]:
    """Returns the decisions of a file's rows."""
    passed = tuple(row for row in rows if row["status"] == "passed")
    return tuple(decide(passed) for decide in QUESTIONS)


def ports(rows: Rows) -> VisitFinding:
    """Answers by the cycles of an FFMA with 4 warps per scheduler: three operands in one bank against two."""
    question = "Do register ports limit FFMA?"
    cycles = {
        form: _of_check(rows, f"ffma_{form}: 4 warps per scheduler", "cycles_per_operation")
        for form in ("reuse", "two_and_one", "three", "three_in_runs")
    }
    known = {form: value / 4 for form, value in cycles.items() if value is not None}  # of a scheduler
    if len(known) < len(cycles):
        return VisitFinding(question, OPEN, known)
    if known["three"] < PORT_RATIO * known["reuse"]:
        return VisitFinding(question, "not ports: look at the path", known)
    if known["three"] >= PORT_RATIO * known["two_and_one"]:
        return VisitFinding(question, "ports, by bank", known)
    depends_on_banks = known["three_in_runs"] >= PORT_RATIO * known["three"]
    answer = "ports, by bank over a few FFMA" if depends_on_banks else "ports, whatever the bank"
    return VisitFinding(question, answer, known)


def pair_rule(rows: Rows) -> VisitFinding:
    """Answers by the cycles of LDS.128 whose lanes n and n^1 read the same address."""
    question = "Do pairs of lanes with equal addresses take half the passes of LDS.128?"
    names = {"distinct": "lds_128: distinct, 16 warps", "pairs": "lds_128: pairs n, n^1, 16 warps"}
    cycles = {key: _of_check(rows, name, "cycles_per_operation") for key, name in names.items()}
    if None in cycles.values():
        return VisitFinding(question, OPEN)
    figures = {key: value / 16 for key, value in cycles.items() if value is not None}  # of a warp's read
    holds = figures["pairs"] <= PAIRED_CYCLES * figures["distinct"]
    return VisitFinding(question, "yes: pair the lanes" if holds else "no: leave the lanes", figures)


def kept_bits_of_sums(rows: Rows) -> VisitFinding:
    """Reports how many bits below the largest term a sum keeps in each type."""
    question = "How many bits does a sum keep inside of the tensor core?"
    figures = {
        str(row["check"]): row["kept_bits"] for row in rows if str(row["check"]).startswith(BITS_PREFIX)
    }
    answers = (
        f"{name.removeprefix(BITS_PREFIX)}: {min(kept.values())} to {max(kept.values())}"
        for name, kept in figures.items()
    )
    return VisitFinding(question, ", ".join(answers) or OPEN, figures)


def transposed_operand(rows: Rows) -> VisitFinding:
    """Answers by the same knobs on tn and nn: the ratio of their medians at 4096^3."""
    question = "Is f32 faster with A's rows along m (tn) than nn with the same knobs?"
    times: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in rows:
        for layout in ("nn", "tn"):
            if (
                row.get("problem") == f"{F32_SQUARE} {layout} none"
                and row["part"] == "f32"
                and "knobs" in row
            ):
                times.setdefault(tuple(sorted(row["knobs"].items())), {})[layout] = row["median_s"]
    ratios = [pair["nn"] / pair["tn"] for pair in times.values() if len(pair) == 2]
    if not ratios:
        return VisitFinding(question, OPEN)
    median = statistics.median(ratios)
    figures = {"nn_over_tn": {"median": median, "most": max(ratios)}, "pairs": len(ratios)}
    return VisitFinding(question, "tn: transpose A" if median >= FASTER else "no difference", figures)


# What may differ between two configurations of one tile that say what products in rows or a transposed A gain
REGISTER_KNOBS = ("order_products", "transpose", "vector_a", "pad_bytes", "unroll_k")


def knobs_for_registers(rows: Rows) -> VisitFinding:
    """Answers by configurations of one tile with and without the knobs for the banks of registers, nn."""
    question = "What do products in rows and A transposed in shared memory gain in f32?"
    times: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in rows:
        knobs = dict(row.get("knobs", {}))
        if row["part"] != "f32" or "order_products" not in knobs or not row["problem"].endswith("nn none"):
            continue
        names = {(0, 0): "neither", (1, 0): "rows", (0, 1): "transposed", (1, 1): "both"}
        name = names[knobs["order_products"], knobs["transpose"]]
        others = {key: value for key, value in knobs.items() if key not in REGISTER_KNOBS}
        times.setdefault((row["problem"], *sorted(others.items())), {})[name] = row["median_s"]
    compared = [each for each in times.values() if "neither" in each and len(each) > 1]
    if not compared:
        return VisitFinding(question, OPEN)
    figures = {
        f"{name}_over_neither": statistics.median(
            each[name] / each["neither"] for each in compared if name in each
        )
        for name in ("rows", "transposed", "both")
        if any(name in each for each in compared)
    }
    best = min(figures, key=lambda name: figures[name])
    answer = f"{best}: {figures[best]:.3f}" if figures[best] * FASTER <= 1 else "nothing"
    return VisitFinding(question, answer, figures | {"pairs": len(compared)})


def fastest_of(problem: str, question: str) -> Callable[[Rows], VisitFinding]:
    """Returns the decision that names the fastest configuration of a problem, and the library's ratio."""

    def decide(rows: Rows) -> VisitFinding:
        own = [
            row
            for row in rows
            if row.get("problem") == problem and "knobs" in row and row["part"] != "ranking"
        ]
        own = [row for row in own if "median_s" in row]
        if not own:
            return VisitFinding(question, OPEN)
        best = min(own, key=_library_shares if all("ratio" in row for row in own) else _median_s)
        others = sorted(row["median_s"] for row in own)
        figures = {name: best.get(name) for name in ("median_s", "ratio", "knobs", "strategy", "sm_clock_hz")}
        text = " ".join(f"{name}={value}" for name, value in best["knobs"].items())
        return VisitFinding(question, text, figures | {"configurations": len(own), "second_s": others[1:2]})

    return decide


def scales_against_none(rows: Rows) -> VisitFinding:
    """Reports the time of e4m3 without scales in that with scales of blocks, each by its fastest kernel."""
    question = "How much of the speed of e4m3 is left with scales of blocks (.9 is wanted)?"
    unscaled_s = _fastest_s(rows, UNSCALED)
    scaled_s = _fastest_s(rows, WITH_SCALES)
    if unscaled_s is None or scaled_s is None:
        return VisitFinding(question, OPEN)
    ratio = unscaled_s / scaled_s
    figures = {"unscaled_s": unscaled_s, "scaled_s": scaled_s, "ratio": ratio}
    return VisitFinding(question, f"{ratio:.3f}", figures)


def groups_against_one(rows: Rows) -> VisitFinding:
    """Reports the time of as many rows of one matrix in that of groups, each by its fastest kernel."""
    question = "How fast are products of groups next to as many rows of one matrix?"
    figures = {}
    for grouped, one in EXPERTS.items():
        one_s = _fastest_s(rows, one)
        grouped_s = _fastest_s(rows, grouped)
        if one_s is not None and grouped_s is not None:
            figures[grouped] = one_s / grouped_s
    answer = ", ".join(f"{key}: {ratio:.3f}" for key, ratio in figures.items())
    return VisitFinding(question, answer or OPEN, figures)


def order_of_models(rows: Rows) -> VisitFinding:
    """Reports the rank correlation of both cost models, by strategy, over the random points."""
    question = "Do the cost models order new points as their times do?"
    figures: dict[str, Any] = {}
    ranked = [row for row in rows if row["part"] == "ranking"]
    for strategy in dict.fromkeys(str(row["strategy"]) for row in ranked):
        for model in ("by_knobs", "by_machine_code"):
            pairs = [
                (row[model], row["median_s"])
                for row in ranked
                if row["strategy"] == strategy and row.get(model) is not None
            ]
            if len(pairs) >= LEAST_POINTS:
                predictions, times = np.array(pairs).T
                found = ordering(predictions, times, np.random.default_rng(0))
                figures[f"{strategy} {model}"] = {"points": len(pairs), "rank": found.rank_correlation}
    answer = ", ".join(f"{name}: {each['rank']:.2f}" for name, each in figures.items())
    return VisitFinding(question, answer or OPEN, figures)


def _library_shares(row: Row) -> float:
    """Returns a kernel's time in those of the library next to it: clocks differ from minute to minute."""
    return 1 / float(row["ratio"])


def _fastest_s(rows: Rows, problem: str) -> float | None:
    """Returns the time of a problem's fastest kernel; None where none was timed."""
    return min(
        (_median_s(row) for row in rows if row.get("problem") == problem and "knobs" in row), default=None
    )


def _median_s(row: Row) -> float:
    return float(row["median_s"])


def _of_check(rows: Rows, name: str, fact: str) -> float | None:
    return next((float(row[fact]) for row in rows if row["check"] == name and fact in row), None)


QUESTIONS: tuple[Callable[[Rows], VisitFinding], ...] = (
    ports,
    pair_rule,
    kept_bits_of_sums,
    transposed_operand,
    knobs_for_registers,
    fastest_of(f"{F32_SQUARE} nn none", "Which configuration of f32 comes first at 4096^3?"),
    fastest_of(f"{F32_SQUARE} tn none", "Which configuration of f32 tn comes first at 4096^3?"),
    fastest_of(f"{F32_FOUNDING} tn none", "Which configuration of f32 tn comes first at 5376x2048x5376?"),
    fastest_of(f"{F32_FOUNDING} nn none", "Which configuration of f32 comes first at 5376x2048x5376?"),
    fastest_of("matmul 4096x4096x4096 tf32 nt none", "Which configuration of tf32 nt comes first?"),
    fastest_of("matmul 4096x4096x4096 tf32 nn none", "How far is tf32 nn behind cuBLAS?"),
    fastest_of("matmul 4096x4096x4096 tf32 tn none", "What does a copy by columns before cost tf32 tn?"),
    fastest_of("matmul 4096x4096x4096 tf32x3 nn none", THREE_PRODUCTS),
    fastest_of(
        "matmul 4096x4096x4096 tf32x3 nt none",
        "Do three products of tf32 nt beat cuBLAS's f32, by wgmma or by mma.sync?",
    ),
    fastest_of(
        "matmul 4096x4096x4096 tf32x3 tn none",
        "Do three products of tf32 tn beat cuBLAS's f32, by wgmma or by mma.sync?",
    ),
    fastest_of(
        "matmul 4096x4096x4096 bf16x6 nn none",
        "Do six products of bf16 beat cuBLAS's f32 at 4096^3, and by which configuration?",
    ),
    fastest_of(
        "matmul 5376x2048x5376 bf16x6 nn none",
        "Do six products of bf16 beat cuBLAS's f32 at 5376x2048x5376, and by which configuration?",
    ),
    fastest_of("matmul 4096x4096x4096 i8 nt none", "Which configuration of i8 nt comes first?"),
    fastest_of(UNSCALED, "Which configuration of e4m3 nt comes first?"),
    fastest_of(WITH_SCALES, "Which configuration of e4m3 with scales of blocks comes first?"),
    scales_against_none,
    groups_against_one,
    fastest_of("matmul 4096x4096x4096 f16 nn none", "Is f16 as fast as before (1.014 of cuBLAS)?"),
    fastest_of("matmul 4096x4096x4096 bf16 nn none", "Is bf16 as fast as before (1.016 of cuBLAS)?"),
    order_of_models,
)
