"""What the pages show of a race: the part of results.md, the README's lines and picture.

    python -m benchmarks.race.pages        writes them anew from benchmarks/results/race.json

A test compares. Without that file the parts are empty.
"""

import argparse
from pathlib import Path

from benchmarks.markdown_table import markdown_table
from benchmarks.race.environments import ROOT
from benchmarks.race.peers import BASELINE
from benchmarks.race.peers.ours import COLD_TUNER, TUNER
from benchmarks.race.picture import svg
from benchmarks.race.race_file import ALIGNED, FILE, PICTURE_DTYPE, SHIFTED, Race, stored_race
from benchmarks.race.rows import Row
from benchmarks.race.standings import SHARES, geometric_means

PICTURE = ROOT / "docs" / "concepts" / "race.svg"
PAGE, README = ROOT / "docs" / "concepts" / "results.md", ROOT / "README.md"
BEGIN, END = "<!-- race -->\n", "<!-- /race -->\n"
LINK = "docs/concepts/results.md#whole-tuners"
OURS = (TUNER.name, COLD_TUNER.name)


def results_part(race: Race) -> str:
    """Returns the part of results.md: first where a peer is better, then all rows and all settings."""
    days = race.document["date"][:10]
    skipped = [
        f"{peer['title']} is missing ({peer['skipped']})" for peer in race.peers.values() if peer["skipped"]
    ]
    missing = f" {'; '.join(skipped)}." if skipped else ""
    return (
        f"{losses(race)}\n\n"
        f"{days}, one thread on one core of {race.machine}; {race.document['settings']['rounds']} rounds, in "
        f"which quartiles of OpenBLAS's times were up to {race.spread:.1%} apart (`{FILE.name}`)."
        f"{missing}\n\n"
        f"{race_table(race)}\n\n{settings_table(race)}\n"
    )


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


def race_table(race: Race) -> str:
    """Returns a row for each matmul, peer and budget."""
    head = (
        *("m x n x k", "tuner", "wall s", "trials (failed)", "GFLOP/s", "of peak"),
        *(f"ratio at +{offset}" for offset in (ALIGNED, SHIFTED)),
        *(f"s to {share:g}" for share in SHARES),
    )
    return markdown_table(head, [_cells(race, row) for row in race.rows])


def _cells(race: Race, row: Row) -> tuple[str, ...]:
    aligned = row["offsets"].get(ALIGNED, {})
    shifted = row["offsets"].get(SHIFTED, {})
    trials = f"{row['trials']} ({row['failed']})" if row["budget_s"] else ""
    has_time = aligned.get("median_s") is not None
    return (
        f"{row['shape']} {row['dtype']}",
        race.title(row),
        f"{row['wall_s']:.1f}",
        trials,
        f"{aligned['gflop_per_s']:.1f}" if has_time else "",
        f"{aligned['of_peak']:.0%}" if has_time and aligned["of_peak"] else "",
        row["reason"].replace("|", "/") or _ratio_cell(aligned),
        _ratio_cell(shifted),
        *(_after(aligned, f"{share:g}") for share in SHARES),
    )


def _ratio_cell(part: Row) -> str:
    if part.get("failure"):
        return str(part["failure"]).replace("|", "/")
    if part.get("ratio") is not None:
        return _interval(part["ratio"])
    if part.get("over_tuner") is not None:  # numpy's OpenBLAS has no matmul of this type
        return f"{_interval(part['over_tuner'])} of tuner"
    return ""


def _after(part: Row, share: str) -> str:
    if "seconds_to" not in part:
        return ""
    seconds = part["seconds_to"][share]
    return "never" if seconds is None else f"{seconds:.1f}"


def settings_table(race: Race) -> str:
    """Returns version and settings of each peer, and the page that they are from."""
    rows = [
        (peer["title"], peer["version"] or "missing", peer["settings"].replace("|", "/"), peer["source"])
        for peer in race.peers.values()
    ]
    return markdown_table(("tuner", "version", "how it is run", "documentation"), rows)


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
    behind = list(dict.fromkeys(row["shape"] for row in compared if _is_loss(race, row, ALIGNED)))
    where = f"A peer is better at {', '.join(behind)}." if behind else "No peer is better at any."
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
