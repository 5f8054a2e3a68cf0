"""What the pages show of a race: losses first, each row with its reason, nothing where nothing is stored."""

import re
from typing import Any
from xml.etree import ElementTree

from benchmarks.race import pages
from benchmarks.race.peers import PEERS
from benchmarks.race.picture import svg
from benchmarks.race.race_file import Race

SHAPES = ("64x64x64", "512x512x512")


def ratio(median: float) -> dict[str, float]:
    return {"median": median, "low": median - 0.01, "high": median + 0.01, "rounds": 31}


def part(over_openblas: float, over_tuner: float) -> dict[str, Any]:
    speeds = {"gflop_per_s": 100 * over_openblas, "of_peak": 0.5 * over_openblas, "of_best": 0.9}
    reached = {"seconds_to": {"0.95": 3.25, "0.98": None}}
    ratios = {"ratio": ratio(over_openblas), "over_tuner": ratio(over_tuner)}
    return {
        "failure": "",
        "error": 0.1,
        "median_s": 1e-3,
        "spread": over_openblas / 20,
        **speeds,
        **reached,
        **ratios,
    }


def row(peer: str, shape: str, budget_s: float | None, reason: str = "", **offsets: Any) -> dict[str, Any]:
    named = {name.removeprefix("at_"): figures for name, figures in offsets.items()}
    numbers = {"wall_s": 9.5, "build_s": 1.0, "trials": 7, "failed": 2, "peak_gflop_per_s": 200.0}
    known = {"shape": shape, "dtype": "f32", "peer": peer, "budget_s": budget_s, "reason": reason}
    return {**known, **numbers, "improvements": [], "offsets": named}


def race(xtc_over_tuner: float) -> Race:
    rows = []
    for shape in SHAPES:
        rows += [
            row("openblas", shape, None, at_0=part(1.0, 0.8), at_16=part(1.0, 0.8)),
            row("tuner", shape, 10.0, at_0=part(1.2, 1.0), at_16=part(1.2, 1.0)),
            row("xtc", shape, 10.0, at_0=part(1.3, xtc_over_tuner), at_16=part(0.9, 0.7)),
            row("tvm", shape, 10.0, "no candidate measured yet"),
        ]
    rows.append(row("iree-data-tiling", SHAPES[0], None, at_0={**part(0.5, 0.4), "ratio": None}))
    crashed = {"failure": "crashes (signal 11)", "error": None, "median_s": None}
    rows.append(row("iree", SHAPES[0], None, at_0=part(0.5, 0.4), at_16=crashed))
    known = {
        name: {
            "title": peer.title,
            "version": "1.2.3",
            "skipped": "",
            "settings": peer.settings,
            "source": "s",
        }
        for name, peer in PEERS.items()
    }
    known["inductor"]["skipped"] = "not installed"
    settings = {"budgets": [10.0], "rounds": 31, "peers": known}
    machine = {"processor": "A processor", "isa": "avx512"}
    return Race({"rows": rows, "settings": settings, "machine": machine, "date": "2026-01-31T00:00:00"})


def test_the_page_says_first_where_a_peer_is_better_by_the_whole_interval() -> None:
    text = pages.results_part(race(1.05))
    assert text.startswith(
        "A peer is better (time of tuner's kernel over the peer's): 64x64x64 f32 at +0: XTC, 10 s, 1.05"
    )
    assert pages.results_part(race(1.005)).startswith("No peer's kernel is faster")


def test_a_peer_is_better_too_where_tuner_has_no_kernel() -> None:
    found = race(0.9)
    for each in found.rows:
        if each["peer"] == "tuner" and each["shape"] == SHAPES[0]:
            each.update(reason="no result yet", offsets={})
        for figures in each["offsets"].values():
            if each["shape"] == SHAPES[0]:
                figures["over_tuner"] = None
    assert "64x64x64 f32 at +0: XTC, 10 s, tuner has no kernel" in pages.results_part(found)
    assert "512x512x512 f32 at" not in pages.losses(found)
    assert "A peer is better at 64x64x64." in " ".join(pages.readme_part(found).split())


def test_each_matmul_has_ratios_or_reasons_and_each_peer_its_searches_and_version() -> None:
    text = pages.results_part(race(1.05))
    lines = text.splitlines()
    (small,) = (line for line in lines if line.startswith("| 64x64x64 f32 |"))
    assert small.startswith("| 64x64x64 f32 | 130.0 (65%) | 1.20 [1.19, 1.21] | 1.30 [1.29, 1.31] | ")
    assert "0.40 [0.39, 0.41] of tuner" in small
    assert sum("no candidate measured yet" in line for line in lines) == len(SHAPES)
    searches = {line.split(" | ")[0]: line for line in lines}
    assert searches["| XTC, 10 s"].startswith(
        "| XTC, 10 s | 9.5 | 7 (4) | 1.30 | 0.90 | 2 of 2, after 3.2 s |"
    )
    assert "| none | never |" in searches["| TVM, 10 s"]
    assert searches["| IREE"].startswith("| IREE | 9.5 |  | 0.50 | none; crashes (signal 11) | 1 of 1, ")
    assert "quartiles of OpenBLAS's times were up to 5.0% apart" in text
    assert "inductor is missing (not installed)" in text
    for peer in PEERS.values():
        assert f"[{peer.title}](s) 1.2.3" in lines[-1]


def test_the_readme_has_means_over_the_shapes_of_each_peer_and_where_a_peer_is_better() -> None:
    text = " ".join(pages.readme_part(race(1.05)).split())
    for phrase in ("tuner 1.20", "XTC 1.30", "TVM none", "IREE 0.50 (of 1)"):
        assert phrase in text
    assert "A peer is better at 64x64x64, 512x512x512." in text
    assert len(text.split()) < 56
    assert "No peer is better" in pages.readme_part(race(0.9))


def test_a_part_is_put_between_its_marks_and_read_back() -> None:
    page = f"before\n{pages.BEGIN}old\n{pages.END}after\n"
    written = pages.with_part(page, "new\n")
    assert written == f"before\n{pages.BEGIN}new\n{pages.END}after\n"
    assert pages.part_of(written) == "new\n"


def test_the_picture_has_a_mark_for_each_share_and_says_where_there_is_no_kernel() -> None:
    picture = svg(race(1.05))
    assert not re.search(r"(?:href|src)=|url\(|font-face", picture)
    root = ElementTree.fromstring(picture)
    circles = list(root.iter("{http://www.w3.org/2000/svg}circle"))
    assert len(circles) == 2 * (3 + 3) + 2
    assert picture.count(' hollow"') == 2 * 3
    assert picture.count("no kernel") == len(SHAPES)
