"""Pieces of C text that the templates of a C library put together."""

import functools
from collections.abc import Iterable

import jinja2

from tuner.analysis.comparison import Comparable, NotComparable
from tuner.core.printable import printable
from tuner.core.time_text import seconds_text
from tuner.library.c.code_target import BITS
from tuner.library.c.cpu_kernels import CpuKernel
from tuner.library.c.functions import CFunction
from tuner.library.c.gpu_kernels import GpuKernel
from tuner.library.entry import LibraryEntry

WIDENED = {"bf16": "from_bf16({})", "i8": "(int32_t){}"}  # element type -> expression in the sums' type
ROUNDED = {"bf16": "to_bf16({})"}  # element type of C -> expression of a sum
# For the check, whose numbers are integers: bits of a bf16 from a number, and the number of such bits.
FROM_INTEGER = {"bf16": "to_bf16({})", "f32": "(float)({})", "i8": "(int8_t)({})", "i32": "(int32_t)({})"}
AS_DOUBLE = {"bf16": "from_bf16({})", "f64": "{}"}


def rendered(template: str, **values: object) -> bytes:
    """Returns a file made of a template of this package, ``template`` its name without ".j2"."""
    text = _templates().get_template(f"{template}.j2").render(**values)
    return _without_runs_of_empty_lines(text).encode()


@functools.cache
def _templates() -> jinja2.Environment:
    made = jinja2.Environment(  # noqa: S701 - C is written, no HTML
        loader=jinja2.PackageLoader(__package__),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {
        "as_double": lambda text, dtype: AS_DOUBLE.get(dtype, "(double){}").format(text),
        "comment": comment,
        "from_integer": lambda text, dtype: FROM_INTEGER.get(dtype, "{}").format(text),
        "loop_parameters": lambda function: parameters(function, has_batch=False),
        "gpu_parameters": gpu_parameters,
        "gpu_provenance": gpu_provenance,
        "needs": needs,
        "parameters": parameters,
        "provenance": provenance,
        "rounded": lambda text, dtype: ROUNDED.get(dtype, "{}").format(text),
        "widened": lambda text, dtype: WIDENED.get(dtype, "{}").format(text),
    }
    return made


def parameters(function: CFunction, *, has_batch: bool = True) -> str:
    """Returns the parameters of a function: pointers to A, B[, bias] and C, then the sizes."""
    source, result = function.input_type, function.output_type
    pointers = [f"const {source} *a", f"const {source} *b"]
    pointers += [f"const {result} *bias"] * function.has_bias
    sizes = ["batch"] * (function.is_batch and has_batch) + ["m", "n", "k"]
    return ", ".join((*pointers, f"{result} *c", *(f"int64_t {size}" for size in sizes)))


def needs(names: Iterable[str], macro: str) -> str:
    """Returns the C expression of instruction sets, keys of BITS: ``TUNER_AVX2 | TUNER_AVX512``."""
    return " | ".join(f"{macro}_{BITS[name]}" for name in names) or "0"


def gpu_provenance(kernel: GpuKernel) -> str:
    """Returns where a kernel for a GPU comes from, in a line: sizes, chip, time, baseline, trial."""
    entry = kernel.entry
    parts = (entry.problem.shape, entry.machine.chip, *times(entry), f"trial {entry.trial}")
    return ", ".join(part for part in parts if part)


def provenance(kernel: CpuKernel) -> str:
    """Returns where a kernel comes from, in a line: sizes, threads, time, baseline, instructions, trial."""
    entry = kernel.entry
    count = len(kernel.shares)
    parts = [
        entry.problem.shape,
        f"{count} threads" if count > 1 else "",
        *times(kernel.entry),
        " ".join(entry.problem.memory_options),
        " ".join(kernel.target.needs),
        f"trial {entry.trial}",
    ]
    return ", ".join(part for part in parts if part)


def times(entry: LibraryEntry) -> tuple[str, ...]:
    """Returns the time of an entry, how reliable it is, and its ratio to the baseline, where there is one."""
    if entry.median_s is None:
        return ("verified, not timed",)
    compared = entry.compared
    ratio = f"{compared.times_text} {entry.baseline}" if isinstance(compared, Comparable) else ""
    if isinstance(compared, NotComparable) and compared.is_equal:
        ratio = f"{entry.baseline}: {compared.reason}"
    return (f"{seconds_text(entry.median_s)} ({entry.reliability.text})", ratio)


def gpu_parameters(function: CFunction) -> str:
    """Returns the parameters of a function on a GPU: addresses of A, B[, bias], C, the sizes, the stream."""
    addresses = ["a", "b", *["bias"] * function.has_bias, "c"]
    sizes = ["batch"] * function.is_batch + ["m", "n", "k"]
    types = (*(f"uint64_t {each}" for each in addresses), *(f"int64_t {each}" for each in sizes))
    return ", ".join((*types, "void *stream"))


def comment(text: str) -> str:
    """Returns a text for a C comment: one line of printable characters that does not end the comment."""
    return printable(" ".join(text.split())).replace("*/", "* /").replace("/*", "/ *")


def _without_runs_of_empty_lines(text: str) -> str:
    lines: list[str] = []
    for line in text.split("\n"):
        if line.strip() or (lines and lines[-1]):
            lines.append(line.rstrip())
    return "\n".join(lines).strip("\n") + "\n"
