"""Problems as text on the command line: shapes, examples, and the command that tunes a problem."""

import re
import shlex

from tuner.core.dtypes import MODES
from tuner.core.errors import UsageError
from tuner.core.fusions import QUANTIZED
from tuner.core.problem import (
    BATCH_MATMUL,
    FUSION_OPERATIONS,
    GROUPED,
    MATMUL,
    NUMPY_ALIGNMENT,
    OPERATIONS,
    SCALED,
    SCALES,
    WARM,
    require_choice,
    split_extents,
)
from tuner.core.problem_classes import MatmulProblem
from tuner.core.quantization import CONSTANT
from tuner.core.queries import TaskQuery

SHAPES = {  # operation -> the form of its shape on the command line, an example
    MATMUL: ("MxNxK", "512x512x512"),
    BATCH_MATMUL: ("BxMxNxK", "8x512x512x512"),
    GROUPED: ("GxMxNxK", "8x4096x1024x2048"),
}

# operation -> another whose shape has as many numbers
ALIKE = {QUANTIZED: MATMUL, SCALED: MATMUL, GROUPED: BATCH_MATMUL}


def example_of(operation: str | None, sizes: str) -> str:
    """Returns example arguments for hints: "matmul 512x512x512".

    For a batch_matmul "batch_matmul 8x512x512x512", likewise for a grouped_matmul. ``sizes``: the text MxNxK.
    """
    if operation in (BATCH_MATMUL, GROUPED):
        return f"{operation} 8x{sizes}"
    return f"{MATMUL} {sizes}"


def parse_shape(text: str) -> tuple[int, int, int]:
    """Returns (m, n, k) of a text ``MxNxK`` such as 512x256x128. Raises UsageError for other text."""
    _, sizes = parse_sizes(MATMUL, text)
    m, n, k = sizes
    return m, n, k


def parse_sizes(operation: str, text: str) -> tuple[int, tuple[int, ...]]:
    """Parses MxNxK to (1, (m, n, k)), for a batch_matmul BxMxNxK to (b, (m, n, k)).

    For a grouped_matmul GxMxNxK to (groups, (m, n, k)).

    Raises UsageError for an unknown operation, and for text of another form.
    """
    return split_extents(operation, parse_extents(operation, text))


def parse_extents(operation: str, text: str) -> tuple[int, ...]:
    """Parses MxNxK to (m, n, k), for a batch_matmul BxMxNxK to (b, m, n, k): ``Problem.extents``.

    Raises UsageError as ``parse_sizes``.
    """
    require_choice("operation", operation, OPERATIONS)
    pattern, example = SHAPES[operation]
    if parse_row_range(text) is not None:
        line = f"shape: found the range {text[:80]}, allowed {pattern} such as {example}"
        raise UsageError(line, f"tuner tune {MATMUL} {text}, then tuner export --campaign N --format c")
    extents = _extents(text)
    if len(extents) != pattern.count("x") + 1:
        advice = _shape_advice(operation, extents)
        raise UsageError(f"shape: found {text[:80]!r}, allowed {pattern} such as {example}{advice}")
    return extents


def parse_row_range(text: str) -> tuple[int, str] | None:
    """Parses a shape whose m is a range, such as 1..4096x512x128, to the least m and 4096x512x128.

    Returns None for a text without a range. Raises UsageError for an m of "?", and for a range of another
    size than m.
    """
    size = r"[0-9]{1,18}"
    found = re.fullmatch(rf"({size})\.\.({size}x{size}x{size})", text.lower())
    if found is not None:
        return int(found[1]), found[2]
    if re.fullmatch(rf"\?(x{size})+", text.lower()):
        stated = text.replace("?", "1..4096")
        raise UsageError(f"shape: found {text[:80]!r}: the range of m is missing", f"{MATMUL} {stated}")
    extent = rf"({size}|\?|{size}\.\.{size})"
    if ("?" in text or ".." in text) and re.fullmatch(f"{extent}(x{extent})+", text.lower()):
        line = f"shape: found {text[:80]!r}: of a {MATMUL} m alone, the number of rows, may be a range"
        raise UsageError(line, f"{MATMUL} 1..4096x512x128")
    return None


def shape_text(operation: str | None, text: str) -> str:
    """Returns a shape that a user wrote in the form of ``Problem.shape``: 512x512x512 for 512X512X512.

    ``operation``: None takes four sizes as a batch_matmul. Raises UsageError for text that is not a shape and
    for sizes that are not allowed.
    """
    has_batch = len(_extents(text)) == SHAPES[BATCH_MATMUL][0].count("x") + 1
    named = ALIKE.get(operation or MATMUL, operation or MATMUL)
    if has_batch and not operation:
        named = BATCH_MATMUL
    batch, sizes = parse_sizes(named, text)
    return MatmulProblem(named, sizes, "f32", batch=batch).shape


def _extents(text: str) -> tuple[int, ...]:
    numbers = re.fullmatch(r"[0-9]{1,18}(x[0-9]{1,18})*", text.lower())  # int() refuses thousands of digits
    if numbers:
        return tuple(map(int, numbers[0].split("x")))
    return ()


def _shape_advice(operation: str, extents: tuple[int, ...]) -> str:
    names = SHAPES[operation][0].split("x")
    text = "x".join(map(str, extents))
    if operation == MATMUL and len(extents) == len(names) + 1:
        return f"; with a batch it is: {BATCH_MATMUL} {text}"
    if operation == BATCH_MATMUL and len(extents) == len(names) - 1:
        return f"; without a batch it is: {MATMUL} {text}"
    if operation == GROUPED and len(extents) == len(names) - 1:
        return f"; of one group it is: {MATMUL} {text}"
    missing = names[len(extents) :] if extents else []
    if missing:
        return f": {' and '.join(missing)} missing"
    return ""


FLAGS = {"output": "--output-dtype"}  # field of TaskQuery -> its option, where that has another name
PLAIN = {  # field of TaskQuery -> the value for which no option is needed
    "dtype": "f32",
    "layout": "nn",
    "epilogue": "none",
    "output": "",
    "align": NUMPY_ALIGNMENT,
    "cache": WARM,
    "threads": 1,
    "target": None,
}


def tune_command(task: TaskQuery, strategy: str | None = None) -> str:
    """Returns a shell command that tunes the problem of ``task``: ``tuner tune matmul 64x64x64 --dtype f64``.

    Fields that are None or have their default give no option; a missing operation or shape is replaced by
    an example. For a fusion: ``tuner tune PROGRAM.mlir``, where the user puts in the name of the program.
    A scaled_matmul gives ``--scales``. Quantized weights give ``--weights i4-g32-f16``, constant ones
    ``--constant b``.
    """
    weights = task.weights or ""
    if task.operation in FUSION_OPERATIONS and not weights:
        return "tuner tune PROGRAM.mlir"  # a fusion is tuned with the program that it is a part of
    operation = task.operation or MATMUL
    if weights or operation == SCALED:
        operation = MATMUL
    _, example = SHAPES.get(operation, SHAPES[MATMUL])
    options = ["tuner", "tune", operation, task.shape or example]
    if weights == CONSTANT:
        options += ["--constant", "b"]
    elif weights:
        options += ["--weights", weights]
    if task.operation == SCALED:
        options += ["--scales", SCALES]
    for name, plain in PLAIN.items():
        value = getattr(task, name)
        is_implied = name == "layout" and weights not in ("", CONSTANT)
        if value is not None and value != plain and not is_implied:
            options += _option(name, str(value))
    if strategy is not None:
        options += ["--strategy", strategy]
    return shlex.join(options)


def _option(name: str, value: str) -> list[str]:
    """Returns the command-line option for a field of TaskQuery, as [option, value].

    For f32 in another mode than "ieee" it is --math.
    """
    if name == "dtype" and value in MODES:
        return ["--math", MODES[value]]
    return [FLAGS.get(name, f"--{name}"), value]
