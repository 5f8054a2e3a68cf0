"""What the pages show of a race: the part of results.md, the README's lines and picture.

    python -m benchmarks.race.pages        writes them anew from benchmarks/results/race.json, race_avx2.json

A test compares. Without the first file the parts are empty.
"""

import argparse
import statistics
from pathlib import Path

from benchmarks.markdown_table import markdown_table
from benchmarks.race.environments import ROOT
from benchmarks.race.peers import BASELINE
from benchmarks.race.peers.ours import COLD_TUNER, TUNER
from benchmarks.race.picture import svg
from benchmarks.race.race_file import ALIGNED, FILE, LIMITED_FILE, PICTURE_DTYPE, SHIFTED, Race, stored_race
from benchmarks.race.rows import Row
from benchmarks.race.standings import SHARES, geometric_means
from benchmarks.results_file import day_of

PICTURE = ROOT / "docs" / "concepts" / "race.svg"
PAGE, README = ROOT / "docs" / "concepts" / "results.md", ROOT / "README.md"
BEGIN, END = "<!-- race -->\n", "<!-- /race -->\n"
LINK = "docs/concepts/results.md#whole-tuners"
OURS = (TUNER.name, COLD_TUNER.name)


def results_part(race: Race) -> str:
    """Returns the part of results.md: first where a peer is better, then ratios, searches and versions."""
    skipped = [
        f"{peer['title']} is missing ({peer['skipped']})" for peer in race.peers.values() if peer["skipped"]
    ]
    missing = f" {'; '.join(skipped)}." if skipped else ""
    return (
        f"{losses(race)}{limited_sentence()}\n\n"
        f"{day_of(race.document)}, one thread on one core of {race.machine}; "
        f"{race.document['settings']['rounds']} rounds, in which quartiles of OpenBLAS's times "
        f"were up to {race.spread:.1%} apart (`{FILE.name}`)."
        f"{missing}\n\n"
        f"{ratio_table(race)}\n\n{search_table(race)}\n\n{versions_sentence(race)}\n"
    )


def limited_sentence() -> str:
    """Returns where a peer is better where all are limited to AVX2; "" without such a race."""
    race = stored_race(LIMITED_FILE)
    if race is None:
        return ""
    return f"\n\n{race.machine} (`{LIMITED_FILE.name}`, {race.longest_s:g} s): {losses(race)}"


def losses(race: Race) -> str:
    """Returns where a peer's kernel is faster than tuner's of the same budget, or tuner has none."""
    found = []
    for row in race.rows:
        for offset in (ALIGNED, SHIFTED):
            if _is_loss(race, row, offset):
                ratio = row["offsets"][offset]["over_tuner"]
                by = "tuner has no kernel" if ratio is None else _interval(ratio)
                found.append(f"{row['shape']} {row['dtype']} at +{offset}: {race.title(row)}, {by}")
    if not found:
        return "No peer's kernel is faster than tuner's by the whole interval."
    return f"A peer is better (time of tuner's kernel over the peer's): {'; '.join(found)}."


def _is_loss(race: Race, row: Row, offset: str) -> bool:
    """True if a peer's kernel is faster by the whole interval, or tuner has no kernel for this matmul."""
    part = row["offsets"].get(offset, {})
    if row["peer"] in OURS or part.get("median_s") is None:
        return False
    if part["over_tuner"] is None:
        return not race.has_time(TUNER.name, row, offset)
    return bool(part["over_tuner"]["low"] > 1)


def ratio_table(race: Race) -> str:
    """Returns a row for each matmul: its fastest kernel, then each tuner's ratio to OpenBLAS."""
    titles = _titles(race)
    matmuls: dict[str, dict[str, Row]] = {}
    for row in race.rows:
        matmuls.setdefault(f"{row['shape']} {row['dtype']}", {})[race.title(row)] = row
    lines = []
    for matmul, by_title in matmuls.items():
        ratios = [_ratio_or_reason(by_title[title]) if title in by_title else "" for title in titles]
        lines.append((matmul, _fastest(by_title), *ratios))
    return markdown_table(("m x n x k", "fastest: GFLOP/s (of peak)", *titles), lines)


def _titles(race: Race) -> list[str]:
    """Returns the title of each tuner and budget, without OpenBLAS, which all others are compared with."""
    return list(dict.fromkeys(race.title(row) for row in race.rows if row["peer"] != BASELINE))


def _fastest(by_title: dict[str, Row]) -> str:
    """Returns "169.2 (89%)", the speed of a matmul's fastest kernel at +0; "" without any."""
    parts = [row["offsets"].get(ALIGNED, {}) for row in by_title.values()]
    timed = [part for part in parts if part.get("median_s") is not None]
    if not timed:
        return ""
    best = max(timed, key=lambda part: float(part["gflop_per_s"]))
    share = f" ({best['of_peak']:.0%})" if best["of_peak"] else ""
    return f"{best['gflop_per_s']:.1f}{share}"


def _ratio_or_reason(row: Row) -> str:
    """Returns the ratio at +0, or why there is none."""
    return row["reason"].replace("|", "/") or _ratio_cell(row["offsets"].get(ALIGNED, {}))


def search_table(race: Race) -> str:
    """Returns a row for each tuner and budget: what its searches took, the means, how often it was close."""
    head = (
        *("tuner", "wall s", "trials (failed)"),
        *(f"mean at +{offset}" for offset in (ALIGNED, SHIFTED)),
        f"{SHARES[0]:g} of the fastest",
    )
    lines = []
    for title in _titles(race):
        rows = [row for row in race.rows if race.title(row) == title]
        has_budget = rows[0]["budget_s"] is not None
        failed = sum(row["failed"] for row in rows)
        trials = f"{_range([row['trials'] for row in rows])} ({failed})" if has_budget else ""
        means = [_mean_ratio(rows, offset) for offset in (ALIGNED, SHIFTED)]
        reached = _reached(rows, f"{SHARES[0]:g}")
        lines.append((title, _range([row["wall_s"] for row in rows]), trials, *means, reached))
    return markdown_table(head, lines)


def _range(numbers: list[float]) -> str:
    least = f"{min(numbers):.3g}"
    most = f"{max(numbers):.3g}"
    return least if least == most else f"{least} to {most}"


def _mean_ratio(rows: list[Row], offset: str) -> str:
    """Returns the geometric mean of the ratios to OpenBLAS, of how many matmuls if not of all, and why."""
    parts = [row["offsets"].get(offset, {}) for row in rows]
    ratios = [part["ratio"]["median"] for part in parts if part.get("ratio") is not None]
    failures = dict.fromkeys(str(part["failure"]).replace("|", "/") for part in parts if part.get("failure"))
    if not ratios:
        return "; ".join(("none", *failures))
    count = f" (of {len(ratios)})" if len(ratios) < len(rows) else ""
    return "; ".join((f"{statistics.geometric_mean(ratios):.2f}{count}", *failures))


def _reached(rows: list[Row], share: str) -> str:
    """Returns "2 of 4, after 3.7 s": in how many matmuls a tuner had such a kernel, after which median."""
    parts = [row["offsets"].get(ALIGNED, {}) for row in rows]
    seconds = [part["seconds_to"][share] for part in parts if "seconds_to" in part]
    reached = [after_s for after_s in seconds if after_s is not None]
    if not reached:
        return "never"
    return f"{len(reached)} of {len(rows)}, after {statistics.median(reached):.1f} s"


def _ratio_cell(part: Row) -> str:
    if part.get("failure"):
        return str(part["failure"]).replace("|", "/")
    if part.get("ratio") is not None:
        return _interval(part["ratio"])
    if part.get("over_tuner") is not None:  # numpy's OpenBLAS has no matmul of this type
        return f"{_interval(part['over_tuner'])} of tuner"
    return ""


def versions_sentence(race: Race) -> str:
    """Returns a sentence with the version of each peer, and a link to the page that its settings are from."""
    texts = []
    for peer in race.peers.values():
        text = f"{_linked_title(peer)} {peer['version']}"
        if not peer["version"]:
            text = f"{_linked_title(peer)} missing"
        texts.append(text)
    return f"{', '.join(texts)}. `settings.peers` of the file says how each is run."


def _linked_title(peer: Row) -> str:
    source = str(peer["source"])
    return f"[{peer['title']}]({source.replace('docs/', '../', 1) if source.startswith('docs/') else source})"


def readme_part(race: Race) -> str:
    """Returns the README's lines on the race."""
    ratios: dict[str, list[float]] = {}
    for row in race.last_rows():
        ratio = row["offsets"].get(ALIGNED, {}).get("ratio")
        if row["dtype"] == PICTURE_DTYPE and row["peer"] != BASELINE and ratio is not None:
            ratios.setdefault(race.peers[row["peer"]]["title"], []).append(ratio["median"])
    shapes = max(map(len, ratios.values()), default=0)
    means = geometric_means(ratios)
    texts = []
    for name in dict.fromkeys(row["peer"] for row in race.last_rows() if row["dtype"] == PICTURE_DTYPE):
        title = race.peers[name]["title"]
        if name in (BASELINE, COLD_TUNER.name):
            continue
        if title not in means:
            texts.append(f"{title} none")
        elif len(ratios[title]) < shapes:
            texts.append(f"{title} {means[title]:.2f} (of {len(ratios[title])})")
        else:
            texts.append(f"{title} {means[title]:.2f}")
    compared = [row for row in race.last_rows() if row["dtype"] == PICTURE_DTYPE]
    lost_shapes = list(dict.fromkeys(row["shape"] for row in compared if _is_loss(race, row, ALIGNED)))
    where = f"A peer is better at {', '.join(lost_shapes)}." if lost_shapes else "No peer is better at any."
    return (
        f"[Whole tuners]({LINK}), {race.longest_s:g} s each on one core ({race.machine}), over OpenBLAS\n"
        f"(geometric mean of {shapes} f32 shapes): {', '.join(texts)}. {where}\n\n"
        "![Share of the core's peak](docs/concepts/race.svg)\n"
    )


def with_part(page: str, text: str) -> str:
    """Returns a page with ``text`` between its marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}{text}{END}{rest.partition(END)[2]}"


def part_of(page: str) -> str:
    """Returns what a page has between its marks."""
    return page.partition(BEGIN)[2].partition(END)[0]


def _interval(ratio: Row) -> str:
    return f"{ratio['median']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]"


def main() -> None:
    """Writes both pages and the picture."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    race = stored_race()
    if race is None:
        raise SystemExit(
            f"error: {FILE.name} is missing\nhint: python -m benchmarks.race --output {FILE.name}"
        )
    write(PAGE, results_part(race))
    write(README, readme_part(race))
    PICTURE.write_text(svg(race))


def write(page: Path, text: str) -> None:
    """Writes a page with ``text`` between its marks."""
    page.write_text(with_part(page.read_text(), text))


if __name__ == "__main__":
    main()
