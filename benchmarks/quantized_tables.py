"""The table of quantized matmuls in ``docs/concepts/results.md``, of results of ``benchmarks.quantized``."""

import json
import re
import statistics
from typing import Any

from benchmarks.markdown_table import markdown_table
from benchmarks.quantized import SHAPES
from benchmarks.results_file import RESULTS

FILES = ("quantized_decode_zen5.json", "quantized_prefill_zen5.json")
NAMES = {
    "w4a8": "W4A8",
    "w4a8-row": "W4A8, A by row",
    "w4a16": "W4A16, bf16",
    "w4a16-f32": "W4A16, f32",
    "w8a8": "W8A8",
    "w8a8-row": "W8A8, A by row",
}
LIBRARIES = {"onnxruntime": "ONNX Runtime", "OpenVINO": "OpenVINO", "zentorch": "zentorch", "torch": "torch"}
FORMAT = re.compile(r"i\d-(g\d+|channel)-")


def quantized_rows() -> list[dict[str, Any]]:
    """Returns the rows that have a ratio, of all files."""
    rows = [row for file in FILES for row in json.loads((RESULTS / file).read_text())["rows"]]
    return [row for row in rows if row.get("ratio")]


def quantized_table() -> str:
    """Returns a line for each format, group and number of rows, with a ratio for each shape."""
    lines: dict[tuple[str, str, int], dict[str, dict[str, Any]]] = {}
    for row in quantized_rows():
        _, sizes, types, *_ = row["problem"].split()
        m, shape = sizes.split("x", 1)
        group = FORMAT.search(types)
        assert group is not None
        lines.setdefault((row["format"], group[1], int(m)), {})[shape] = row
    measured = {shape for found in lines.values() for shape in found}
    shapes = tuple(shape for shape in SHAPES if shape in measured)
    head = ("weights and A", "group", "rows", *(f"n x k = {shape}" for shape in shapes), "of read", "error")
    return markdown_table(head, [_line(*key, lines[key], shapes) for key in sorted(lines, key=_rank)])


def _rank(key: tuple[str, str, int]) -> tuple[int, int, str, int]:
    name, group, m = key
    return list(NAMES).index(name), len(group), group, m


def quantized_sentence() -> str:
    """Returns the processor's ratios of few and of many rows, and the least of all."""
    rows = quantized_rows()
    few = [row["ratio"]["median"] for row in rows if "cache=weights-cold" in row["problem"]]
    many = [row["ratio"]["median"] for row in rows if "cache=weights-cold" not in row["problem"]]
    machine = json.loads((RESULTS / FILES[0]).read_text())["machine"]
    return (
        f"On one thread of {machine['name']}, weights from memory, at most 16 rows: "
        f"{statistics.geometric_mean(few):.2f} times as fast as the fastest library (least {min(few):.2f}); "
        f"weights in the caches, 128 rows and more: {statistics.geometric_mean(many):.2f} "
        f"(least {min(many):.2f}), geometric means."
    )


def _line(
    name: str, group: str, m: int, found: dict[str, dict[str, Any]], shapes: tuple[str, ...]
) -> tuple[str, ...]:
    is_cold = all("cache=weights-cold" in row["problem"] for row in found.values())
    share = statistics.median(row["share_of_read"] for row in found.values())
    error = statistics.median(row["errors"]["tuner"]["unquantized"] for row in found.values())
    cells = [_cell(found[shape]) if shape in found else "" for shape in shapes]
    read = f"{share:.0%}" if is_cold else ""
    return (NAMES[name], group.removeprefix("g"), str(m), *cells, read, f"{error:.2g}")


def _cell(row: dict[str, Any]) -> str:
    ratio = row["ratio"]
    library = LIBRARIES[row["best"].split()[0]]
    return f"{ratio['median']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}], {library}"
