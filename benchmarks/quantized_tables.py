"""The table of quantized matmuls in ``docs/concepts/results.md``, of results of ``benchmarks.quantized``."""

import json
import re
import statistics
from typing import Any

from benchmarks.markdown_table import markdown_table
from benchmarks.results_file import RESULTS, day_of

FILES = ("quantized_decode_zen5.json", "quantized_prefill_zen5.json")
AVX2 = "quantized_avx2.json"
NAMES = {
    "w4a8": "W4A8",
    "w4a8-row": "W4A8, A by row",
    "w4a16": "W4A16, bf16",
    "w4a16-f32": "W4A16, f32",
    "w8a8": "W8A8",
    "w8a8-row": "W8A8, A by row",
}
FORMAT = re.compile(r"i\d-(g\d+|channel)-")


def quantized_rows() -> list[dict[str, Any]]:
    """Returns the rows that have a ratio, of all files."""
    rows = [row for file in FILES for row in json.loads((RESULTS / file).read_text())["rows"]]
    return [row for row in rows if row.get("ratio")]


def quantized_table() -> str:
    """Returns a line for each format and group, with the ratios of each number of rows of A."""
    lines: dict[tuple[str, str], dict[int, list[dict[str, Any]]]] = {}
    for row in quantized_rows():
        _, sizes, types, *_ = row["problem"].split()
        group = FORMAT.search(types)
        assert group is not None
        by_rows = lines.setdefault((row["format"], group[1]), {})
        by_rows.setdefault(int(sizes.split("x")[0]), []).append(row)
    rows_of_a = sorted({m for by_rows in lines.values() for m in by_rows})
    head = ("weights and A", "group", *(f"rows: {m}" for m in rows_of_a), "of read", "error")
    return markdown_table(head, [_line(*key, lines[key], rows_of_a) for key in sorted(lines, key=_rank)])


def _rank(key: tuple[str, str]) -> tuple[int, int, str]:
    name, group = key
    return list(NAMES).index(name), len(group), group


def quantized_sentence() -> str:
    """Returns the processor's ratios of few and of many rows, and the least of all."""
    rows = quantized_rows()
    few = [row["ratio"]["median"] for row in rows if "cache=weights-cold" in row["problem"]]
    many = [row["ratio"]["median"] for row in rows if "cache=weights-cold" not in row["problem"]]
    document = json.loads((RESULTS / FILES[0]).read_text())
    return (
        f"On one thread of {document['machine']['name']}, {day_of(document)}, weights from memory, "
        f"at most 16 rows: {statistics.geometric_mean(few):.2f} times as fast as the fastest library "
        f"(least {min(few):.2f}); weights in the caches, 128 rows and more: "
        f"{statistics.geometric_mean(many):.2f} (least {min(many):.2f}), geometric means."
    )


def _line(
    name: str, group: str, by_rows: dict[int, list[dict[str, Any]]], rows_of_a: list[int]
) -> tuple[str, ...]:
    errors = [row["errors"]["tuner"]["unquantized"] for rows in by_rows.values() for row in rows]
    cells = [_ratios_text(by_rows.get(m, [])) for m in rows_of_a]
    read = _share_of_read(by_rows.get(1, []))
    return (NAMES[name], group.removeprefix("g"), *cells, read, f"{statistics.median(errors):.2g}")


def _share_of_read(rows: list[dict[str, Any]]) -> str:
    """Returns the median share for one row of A; "" where its weights did not come from memory."""
    shares = [row["share_of_read"] for row in rows if "cache=weights-cold" in row["problem"]]
    return f"{statistics.median(shares):.0%}" if shares else ""


def _ratios_text(rows: list[dict[str, Any]]) -> str:
    """Returns the geometric mean over the shapes and the least ratio; "" for no shape."""
    ratios = [row["ratio"]["median"] for row in rows]
    return f"{statistics.geometric_mean(ratios):.2f} ({min(ratios):.2f})" if ratios else ""


def quantized_avx2_sentence() -> str:
    """Returns the ratios of one shape over the fastest library, on a processor limited to AVX2."""
    document = json.loads((RESULTS / AVX2).read_text())
    rows = {int(row["problem"].split()[1].partition("x")[0]): row for row in document["rows"]}
    shapes = {row["problem"].split()[1].partition("x")[2] for row in document["rows"]}
    libraries = {row["best"].split()[0] for row in document["rows"]}
    assert len(shapes) == len(libraries) == 1
    counts, ratios = zip(*((str(m), f"{row['ratio']['median']:.2f}") for m, row in rows.items()), strict=True)
    return (
        f"On {document['machine']['processor']}, W4A8 of {shapes.pop()} in groups of 32 is "
        f"{_listed(ratios)} times as fast as {libraries.pop()} for {_listed(counts)} rows (`{AVX2}`)."
    )


def _listed(texts: tuple[str, ...]) -> str:
    return f"{', '.join(texts[:-1])} and {texts[-1]}"
