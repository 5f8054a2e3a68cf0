"""``tuner tune --shapes FILE``: reads a file of problems, and tunes them under one budget."""

import csv
import io
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.forms import COLD_START
from tuner.cli.main import BEGAN_S, screen_columns
from tuner.cli.operations import programs
from tuner.cli.options import SUFFIX, open_known_store, open_store, print_found, run_limit
from tuner.cli.session import ended_by_signals, exit_code, print_interrupted, print_stored
from tuner.cli.tune_forms import OperationForm, ResumedCampaign, ShapesForm, require_one_class
from tuner.core.dtypes import IEEE, dtype_of_math, narrow_output, require_plain_dtype
from tuner.core.epilogues import NONE
from tuner.core.errors import Refusal, UsageError
from tuner.core.matmul import Matmul
from tuner.core.problem import (
    BATCH_MATMUL,
    MATMUL,
    NUMPY_ALIGNMENT,
    OPERATIONS,
    WARM,
    NamedProblem,
    distinct_problems,
    require_choice,
)
from tuner.core.problem_classes import problem_of_values
from tuner.core.problem_text import parse_extents
from tuner.core.text_files import read_text
from tuner.results.database_name import database_text
from tuner.results.output.campaign_progress import campaign_progress
from tuner.results.output.campaign_tables import campaign_document, campaign_lines
from tuner.results.output.formatting import wrapped
from tuner.space.file import yaml
from tuner.tuning.campaign import begin_campaign, campaign_settings, require_on_cpu, resume_campaign
from tuner.tuning.events import Interruption

# Reads a file of problems to tune together: YAML or CSV, with operation, sizes, types, count and name.
#
# ```yaml
# - {op: matmul, shape: 128x768x768, count: 12, name: attention}
# - {shape: 1x768x3072, dtype: bf16, layout: nt}
# ```
#
# A CSV file has the same keys in its first line. Only ``shape`` has no default.

BYTES_LIMIT = 4_000_000
LINE_HINT = "a line of such a file: - {shape: 512x512x512, count: 12}"
YAML = (".yaml", ".yml")
CSV = ".csv"
TEXTS = {  # key -> default
    "op": "",  # by the number of sizes
    "dtype": "f32",
    "math": IEEE,
    "layout": "nn",
    "epilogue": NONE,
    "output": "",
    "align": NUMPY_ALIGNMENT,
    "cache": WARM,
    "weights": "",  # a whole format: i4-g128-f16-zp-a8row
    "name": "",
}
KEYS = ("shape", *TEXTS, "count")


def read_shapes(path: Path) -> tuple[NamedProblem, ...]:
    """Returns the problems of a YAML or CSV file; equal problems are one, with their counts added.

    Raises UsageError for another suffix, for a file without a problem, and, with the line, for an invalid
    entry.
    """
    suffix = path.suffix.lower()
    if suffix not in (*YAML, CSV):
        raise UsageError(f"{path.name}: found the suffix {suffix!r}, allowed .yaml, .csv and .mlir")
    text = read_text(path, "YAML or CSV", BYTES_LIMIT, LINE_HINT)
    entries = _csv_entries(text, path.name) if suffix == CSV else _yaml_entries(text, path.name)
    problems = distinct_problems(tuple(_named_problem(entry, where) for where, entry in entries))
    if not problems:
        raise UsageError(f"{path.name}: has no problem", "shape: 128x768x768")
    return problems


def _csv_entries(text: str, name: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [title.strip() for title in next(reader, [])]
        for column in header:
            require_choice(f"{name}: line 1: column", column, KEYS)
        repeated = next((column for column in header if header.count(column) > 1), None)
        if repeated is not None:
            raise UsageError(f"{name}: line 1: the column {repeated!r} is given twice")
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


def _yaml_entries(text: str, name: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    document = yaml.load(text, name)
    lines = yaml.item_lines(text)
    if isinstance(document, dict) and document.keys() == {"shapes"}:
        document = document["shapes"]
    if not isinstance(document, list):
        raise UsageError(f"{name}: is not a list of problems", "- {shape: 128x768x768, count: 12}")
    for line, item in zip(lines, document, strict=True):
        where = f"{name}: line {line}"
        if isinstance(item, str):
            item = {"shape": item}
        if not isinstance(item, dict):
            raise UsageError(f"{where}: found {item!r}, allowed such as {{shape: 128x768x768}}")
        for key in item:
            require_choice(f"{where}: key", str(key), KEYS)
        yield where, {str(key): value for key, value in item.items()}


def _named_problem(fields: Mapping[str, object], where: str) -> NamedProblem:
    if "shape" not in fields:
        raise UsageError(f"{where}: shape: is missing", "shape: 128x768x768")
    shape = _text(fields, "shape", where)
    texts = {key: _text(fields, key, where) if key in fields else default for key, default in TEXTS.items()}
    count = fields.get("count", 1)
    if isinstance(count, str) and count.isascii() and count.isdigit() and len(count) <= 18:
        count = int(count)
    if type(count) is not int:
        raise UsageError(f"{where}: count: found {count!r}, allowed an integer of 1 or more")
    op = texts["op"] or (BATCH_MATMUL if shape.lower().count("x") == 3 else MATMUL)
    try:
        require_choice("op", op, OPERATIONS)
        require_plain_dtype(texts["dtype"])
        texts["dtype"] = dtype_of_math(texts["dtype"], texts["math"])
        extents = parse_extents(op, shape)
        output = narrow_output(texts["dtype"], texts["output"])
        options = {key: texts[key] for key in ("dtype", "layout", "epilogue", "align", "cache")}
        if texts["weights"]:
            require_choice("op with quantized weights", op, (MATMUL,))
            m, n, k = extents
            values = [texts[key] for key in ("dtype", "layout", "epilogue", "output", "align", "cache")]
            dtype, layout, epilogue, result, align, cache = values
            problem = Matmul(m, n, k, dtype, layout, epilogue, result, align, cache, texts["weights"])
        else:
            problem = problem_of_values(op, extents, {**options, "output": output})
        return NamedProblem(problem, texts["name"], count)
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}", error.hint) from None


def _text(fields: Mapping[str, object], key: str, where: str) -> str:
    value = fields[key]
    if key == "shape" and isinstance(value, list):
        value = "x".join(map(str, value))
    if key in ("align", "name") and type(value) is int:
        return str(value)
    if not isinstance(value, str):
        example = "128x768x768" if key == "shape" else "a text"
        raise UsageError(f"{where}: {key}: found {value!r}, allowed {example}")
    return value


if TYPE_CHECKING:
    from tuner.targets.backends import Backends
    from tuner.tuning.tuned_run import TunedCampaign


def tune_shapes(form: ShapesForm, backends: "Backends") -> int:
    """Tunes the problems of ``form.shapes`` under one budget, prints the result, returns the exit code."""
    file = form.shapes
    is_model = file.suffix.lower() == SUFFIX
    problems, left_out = programs().contractions(file) if is_model else (read_shapes(file), ())
    for line in left_out:
        print(f"note: left out: {line}", file=sys.stderr)
    return _tune_together(form, problems, file.name, backends)


def tune_row_range(form: OperationForm, backends: "Backends") -> int:
    """Tunes the matmul of ``form`` for a range of m, prints the result, returns the exit code.

    Raises UsageError for options that are of one run, and for a problem or target without ranges.
    """
    require_one_class(f"a range of m, {form.problem.shape},", form.fleet)
    warm = form.warm_flag
    if warm:
        raise UsageError(f"{warm} cannot be combined with a range of m: its problems begin with one another")
    if form.run.trials == 0:
        raise UsageError("--trials 0 cannot be combined with a range of m: nothing is tuned")
    row_range = form.row_range
    require_on_cpu(row_range.text, form.run.target_text)
    return _tune_together(form, row_range.tuned_problems, row_range.text, backends)


def _tune_together(
    form: OperationForm | ShapesForm, problems: tuple[NamedProblem, ...], source: str, backends: "Backends"
) -> int:
    """Tunes problems by a new campaign, prints the result, returns the exit code.

    ``source``: what the problems come from: the name of a file, or a range of m.
    """
    settings, members = campaign_settings(
        problems, lambda problem: form.run.request(problem, COLD_START), backends, source
    )
    began_s = click.get_current_context().meta[BEGAN_S]
    with open_store(form.result.database) as store:
        begin = partial(begin_campaign, settings, members, backends, store, began_s=began_s)
        tuned = _session(begin)
    return _print(tuned, form)


def resume_shapes(form: ResumedCampaign, backends: "Backends") -> int:
    """Resumes the campaign ``form.resume``, prints the result, returns the exit code."""
    limit = run_limit(form.trials, form.budget)
    printed: int | Refusal | None = None
    with open_known_store(form.result.database) as store:
        tuned = _session(lambda *parts: resume_campaign(form.resume, backends, store, *parts, limit=limit))
        source = tuned.campaign.settings.program
        if source is not None and not form.fleet.has_fleet and not tuned.is_interrupted:
            printed = programs().resume(tuned, source, backends, store, form.result)
    if isinstance(printed, int):
        return printed
    if printed is not None:
        print(f"note: the program is not timed: {printed.text}", file=sys.stderr)
    return _print(tuned, form)


def _session(work: Any) -> "TunedCampaign":
    interruption = Interruption()
    with ended_by_signals(interruption), campaign_progress() as observe:
        tuned: TunedCampaign = work(interruption, observe)
    return tuned


def _print(tuned: "TunedCampaign", form: OperationForm | ShapesForm | ResumedCampaign) -> int:
    named = database_text(form.result.database)
    lines = wrapped(campaign_lines(tuned, screen_columns(), named), screen_columns())
    print_found(form.result.as_json, campaign_document(tuned), *lines)
    print_stored(form.result.database)
    if tuned.is_interrupted:
        on_fleet = " --fleet" if form.fleet.has_fleet else ""
        print_interrupted(f"tuner tune --resume campaign:{tuned.campaign.id}{on_fleet}{named}")
    return exit_code(tuned)
