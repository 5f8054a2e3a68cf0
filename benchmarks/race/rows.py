"""Rows and summary of the race's results file."""

from dataclasses import asdict
from typing import Any

from benchmarks.race.contest import OFFSETS, KernelTiming
from benchmarks.race.peer import PeerResult, RaceMatmul
from benchmarks.race.peers import BASELINE
from benchmarks.race.peers.ours import TUNER
from benchmarks.race.standings import (
    SHARES,
    best_known_s,
    geometric_means,
    improvements,
    ratio_to,
    seconds_to,
    spread_of,
    without_folders,
)

Row = dict[str, Any]


def key_of(name: str, entry: PeerResult) -> str:
    """Returns the name of a peer's kernel in the contest: "xtc 10 s"."""
    return name if entry.budget_s is None else f"{name} {entry.budget_s:g} s"


def row_of(
    case: RaceMatmul,
    name: str,
    entry: PeerResult,
    timings: tuple[KernelTiming, ...],
    peak_flop_per_s: float | None,
) -> Row:
    """Returns the row of a peer and budget: its search, and its kernel at each offset."""
    key = key_of(name, entry)
    failed = sum(trial.is_failed for trial in entry.trials)
    row: Row = {
        "shape": case.shape,
        "dtype": case.dtype,
        "peer": name,
        "budget_s": entry.budget_s,
        "wall_s": round(entry.wall_s, 2),
        "build_s": round(entry.build_s, 2),
        "trials": len(entry.trials),
        "failed": failed,
        "improvements": improvements(entry),
        "reason": without_folders(entry.reason),
        "peak_gflop_per_s": None if peak_flop_per_s is None else peak_flop_per_s / 1e9,
        "offsets": {},
    }
    for offset in OFFSETS:
        there = [timing for timing in timings if timing.offset == offset]
        own = [timing for timing in there if timing.name == key]
        if own:
            row["offsets"][str(offset)] = _offset_part(case, entry, own[0], there, peak_flop_per_s)
    return row


def _offset_part(
    case: RaceMatmul,
    entry: PeerResult,
    timing: KernelTiming,
    all_timings: list[KernelTiming],
    peak_flop_per_s: float | None,
) -> Row:
    """Returns the figures of a kernel at one offset."""
    median_s = timing.median_s
    best_s = best_known_s(all_timings)
    part: Row = {"failure": without_folders(timing.failure), "error": timing.error, "median_s": median_s}
    if median_s is None or best_s is None:
        return part
    part["gflop_per_s"] = case.flop / median_s / 1e9
    part["of_best"] = best_s / median_s
    part["of_peak"] = None if peak_flop_per_s is None else case.flop / median_s / peak_flop_per_s
    part["seconds_to"] = {f"{share:g}": seconds_to(share, entry, median_s, best_s) for share in SHARES}
    part["spread"] = spread_of(timing)
    part["ratio"] = _ratio(BASELINE, timing, all_timings)
    # of the same budget where the peer has one, else of the longest
    tuners = [other.name for other in all_timings if other.name.startswith(f"{TUNER.name} ")]
    budgeted = f"{TUNER.name} {entry.budget_s:g} s" if entry.budget_s is not None else ""
    part["over_tuner"] = _ratio(budgeted or tuners[-1], timing, all_timings) if tuners else None
    return part


def _ratio(name: str, timing: KernelTiming, all_timings: list[KernelTiming]) -> Row | None:
    """Returns the ratio of the named kernel's time to ``timing``; None where one of them has too few."""
    for other in all_timings:
        if other.name == name:
            ratio = ratio_to(other, timing)
            return None if ratio is None else asdict(ratio)
    return None


def summary_of(rows: list[Row]) -> Row:
    """Returns geometric means of the ratios to OpenBLAS, by peer with budget, and by offset."""
    means = {}
    for offset in map(str, OFFSETS):
        ratios: dict[str, list[float]] = {}
        for row in rows:
            ratio = row["offsets"].get(offset, {}).get("ratio")
            if ratio is not None:
                key = row["peer"] if row["budget_s"] is None else f"{row['peer']} {row['budget_s']:g} s"
                ratios.setdefault(key, []).append(ratio["median"])
        means[offset] = geometric_means(ratios)
    return {"geometric_means": means}
