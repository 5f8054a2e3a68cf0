"""Reads a file of problems to tune together: YAML or CSV, with operation, sizes, types, count and name.

```yaml
- {op: matmul, shape: 128x768x768, count: 12, name: attention}
- {shape: 1x768x3072, dtype: bf16, layout: nt}
```

A CSV file has the same keys in its first line. Only ``shape`` has no default.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path

from tuner.core.errors import UsageError
from tuner.core.problem import (
    BATCH_MATMUL,
    EPILOGUES,
    MATMUL,
    NUMPY_ALIGNMENT,
    OPERATIONS,
    WARM,
    Problem,
    narrow_output,
    parse_sizes,
    require_choice,
)
from tuner.core.serialization import read_text
from tuner.space.file import yaml
from tuner.tuning.campaign import NamedProblem, combined

BYTES_LIMIT = 4_000_000
YAML, CSV = (".yaml", ".yml"), ".csv"
TEXTS = {  # key -> default
    "op": "",  # by the number of sizes
    "dtype": "f32",
    "layout": "nn",
    "epilogue": EPILOGUES[0],
    "output": "",
    "align": NUMPY_ALIGNMENT,
    "cache": WARM,
    "name": "",
}
KEYS = ("shape", *TEXTS, "count")


def read_shapes(path: Path) -> tuple[NamedProblem, ...]:
    """Returns the problems of a YAML or CSV file, each once: counts of equal problems are added.

    Raises UsageError, with the line of the first error and its key, for a file that cannot be read, that has
    another form or another suffix, and for a problem that is not allowed.
    """
    suffix = path.suffix.lower()
    if suffix not in (*YAML, CSV):
        raise UsageError(f"{path.name}: found the suffix {suffix!r}, allowed .yaml, .csv and .mlir")
    text = read_text(path, "YAML or CSV", BYTES_LIMIT)
    rows = _csv_rows(text, path.name) if suffix == CSV else _yaml_rows(text, path.name)
    problems = combined(tuple(_named_problem(row, where) for where, row in rows))
    if not problems:
        raise UsageError(f"{path.name}: has no problem", "shape: 128x768x768")
    return problems


def _csv_rows(text: str, name: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yields (file and line, {key: text}) per line; empty fields are left out."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [each.strip() for each in next(reader, [])]
        _require_keys(header, f"{name}: line 1")
        for fields in reader:
            where = f"{name}: line {reader.line_num}"
            if not any(field.strip() for field in fields):
                continue
            if len(fields) != len(header):
                raise UsageError(f"{where}: found {len(fields)} fields, allowed {len(header)}, as in line 1")
            pairs = zip(header, (field.strip() for field in fields), strict=True)
            yield where, {key: field for key, field in pairs if field}
    except csv.Error as error:
        raise UsageError(f"{name}: line {reader.line_num}: found no CSV ({error})") from None


def _yaml_rows(text: str, name: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yields (file and line, {key: value}) per entry of a list, or of the list under the key ``shapes``."""
    document, lines = yaml.load(text, name), yaml.item_lines(text)
    if isinstance(document, dict) and document.keys() == {"shapes"}:
        document = document["shapes"]
    if not isinstance(document, list):
        raise UsageError(f"{name}: is no list of problems", "- {shape: 128x768x768, count: 12}")
    for place, entry in enumerate(document):
        where = f"{name}: line {lines[place]}"
        if isinstance(entry, str):
            entry = {"shape": entry}
        if not isinstance(entry, dict):
            raise UsageError(f"{where}: found {entry!r}, allowed such as {{shape: 128x768x768}}")
        _require_keys([str(key) for key in entry], where)
        yield where, {str(key): value for key, value in entry.items()}


def _require_keys(found: list[str], where: str) -> None:
    for key in found:
        require_choice(f"{where}: key", key, KEYS)
    repeated = next((key for key in found if found.count(key) > 1), None)
    if repeated is not None:
        raise UsageError(f"{where}: the key {repeated!r} is given twice")


def _named_problem(row: Mapping[str, object], where: str) -> NamedProblem:
    if "shape" not in row:
        raise UsageError(f"{where}: shape: is missing", "shape: 128x768x768")
    shape = _text(row, "shape", where)
    texts = {key: _text(row, key, where) if key in row else default for key, default in TEXTS.items()}
    count = _count(row.get("count", 1), where)
    op = texts["op"] or (BATCH_MATMUL if shape.lower().count("x") == 3 else MATMUL)
    try:
        require_choice("op", op, OPERATIONS)
        batch, sizes = parse_sizes(op, shape)
        output = narrow_output(texts["dtype"], texts["output"])
        problem = Problem(
            op,
            sizes,
            texts["dtype"],
            texts["layout"],
            texts["epilogue"],
            output,
            batch,
            texts["align"],
            texts["cache"],
        )
        return NamedProblem(problem, texts["name"], count)
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}", error.hint) from None


def _text(row: Mapping[str, object], key: str, where: str) -> str:
    found = row[key]
    if key == "shape" and isinstance(found, list):
        found = "x".join(str(each) for each in found)
    if key in ("align", "name") and type(found) is int:
        return str(found)
    if not isinstance(found, str):
        example = "128x768x768" if key == "shape" else "a text"
        raise UsageError(f"{where}: {key}: found {found!r}, allowed {example}")
    return found


def _count(found: object, where: str) -> int:
    if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) <= 18:
        return int(found)
    if type(found) is int:
        return found
    raise UsageError(f"{where}: count: found {found!r}, allowed an integer of 1 or more")
