"""Exported scripts: a header for people, a file next to it for programs.

A ``ScriptProvenance`` says where a script comes from; ``script_with_header`` and ``provenance_text`` write
it, ``read_provenance`` reads it.
"""

import json
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from tuner.core.candidate import RecordedRound, Seconds, TargetName, Value
from tuner.core.errors import UsageError
from tuner.core.problem import WARM, Problem
from tuner.core.problem_documents import PROBLEM
from tuner.core.reliability import AS_TEXT, NOT_RECORDED, Reliability
from tuner.core.serialization import (
    decode,
    encode,
    form,
    interval_text,
    known_part,
    parsed,
    printable,
    seconds_text,
    whole,
)
from tuner.core.text_files import read_text
from tuner.mlir.cpu.needed_instructions import script_instructions

CUSTOM_DIALECT = "tuner."  # prefix of tuner's transform ops
THREADS_LIMIT = 4096  # more than any machine of today has
COLUMNS = 120  # of a line of a script, and of its header, where a break is allowed
RUN = "// Run it by:"  # the last line of the header but for the command, whose lines begin with CONTINUED
CONTINUED = "//   "  # begins the rest of a line that was broken
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
# Before the types of an op, a location, a target, attributes, one of them, an element of a list of maps
BREAK = re.compile(
    r" (?=: [(!]|loc\(|(?:in|to|into) %|\{|attributes\{|\w+ = |with "
    r"|transform\.|tile_sizes |interchange |affine_map)"
)


def code_lines(script: str) -> list[str]:
    """Returns the lines of an MLIR script that are not comments: those that do not begin with ``//``."""
    return [line for line in script.splitlines() if not line.lstrip().startswith("//")]


def custom_ops(script: str) -> tuple[str, ...]:
    """Returns tuner's ops that a script calls in generic syntax, sorted; () for a portable script."""
    code = "\n".join(code_lines(script))
    return tuple(sorted(set(re.findall(rf'"({re.escape(CUSTOM_DIALECT)}[\w.]+)"\s*\(', code))))


KNOBS = form(dict[str, Value], dict, lambda knobs: tuple(knobs.items()))
TARGET = form(str, lambda target: target.text, TargetName.parse)


@dataclass(frozen=True)
class BaselineMedian:
    """The name and the median time of the baseline, as recorded with an exported script."""

    name: str
    median_s: Seconds


@dataclass(frozen=True, kw_only=True)
class ScriptProvenance:
    """The origin and time of an exported script: the fields of its provenance file, in their order.

    Raises ValueError for a median without an interval, or an interval without a median.
    """

    tuner: str  # version
    problem: Problem = field(metadata=PROBLEM)
    target: TargetName = field(metadata=TARGET)
    threads: Annotated[int, whole(0, THREADS_LIMIT)]
    machine: str  # Machine.name
    needs: tuple[str, ...] = ()  # instruction sets without which the code cannot run: "amx-bf16"
    strategy: str
    knobs: tuple[tuple[str, Value], ...] = field(metadata=KNOBS)
    median_s: Seconds | None  # None: verified, on a target that times nothing
    interval_s: tuple[Seconds, Seconds] | None
    baseline: BaselineMedian | None = None
    reliability: Reliability = field(default=NOT_RECORDED, metadata=AS_TEXT)  # of the time
    ratio: float | None = None  # the baseline's time over this one; None: ``no_ratio`` says why
    ratio_interval: tuple[float, float] | None = None  # 95 %
    round: RecordedRound | None = None  # None: exported by an older tuner, or timed alone
    no_ratio: str = ""  # why the time must not be compared with the baseline's; "" where it may
    sensitive: str = ""  # at which other alignment of operands it is slower; "" where it is not, or not timed
    unverified: str = ""  # why nothing was verified, only compiled; "" where the result was right
    untuned: str = ""  # how it was chosen, where there was no search; then ``trial`` and ``run`` are 0
    trial: Annotated[int, whole(0)]
    run: Annotated[int, whole(0)]
    mlir: str  # version string
    date: str  # UTC, ISO 8601

    def __post_init__(self) -> None:
        if (self.median_s is None) != (self.interval_s is None):
            raise ValueError("median_s and interval_s: one of them is missing")

    @property
    def gflop_per_s(self) -> float | None:
        """Returns the speed in GFLOP/s at the median time; None for a script that was not timed."""
        if self.median_s:
            return self.problem.flop / self.median_s / 1e9
        return None


def script_with_header(
    script: str, provenance: ScriptProvenance, ops: Sequence[str], script_file: str, source_file: str
) -> str:
    """Returns a transform script below a header with its origin and time; replaces an earlier header.

        // matmul 512x512x512 f32 on cpu, 1 thread, AMD EPYC (avx512): 1.193 ms (95 % interval ...), ...
        // Tuned by tuner 0.1.0 (...) on 2026-01-31T12:00:00Z: trial 42 of run 3, matmul_cpu_packed(...)
        // Operands at multiples of 64 bytes. Reliable: yes.
        // Run it by:
        //   mlir-opt best.source.mlir --transform-preload-library=...
        module attributes {transform.with_named_sequence} { ... }

    Header lines of more than 120 columns are broken. ``ops``: tuner's transform ops in the script, which
    stock ``mlir-opt`` does not have. ``script_file`` and ``source_file``: the names of the script and of the
    payload in the header's command.
    """
    lines = [*_header_lines(provenance)]
    if ops:
        lines.append(f"Stock mlir-opt lacks {', '.join(ops)}.")
    comments = [_comment(f"// {_one_line(line)}") for line in lines]
    command = _one_line(run_command(script_file, source_file, is_stock=not ops))
    return "\n".join([*comments, RUN, _comment(CONTINUED + command, " \\"), without_header(script)])


def _one_line(text: str) -> str:
    return printable(" ".join(text.splitlines()))


def _comment(line: str, end: str = "") -> str:
    """Returns a comment as lines of at most 120 columns, of which all but the last one end with ``end``."""
    parts = textwrap.wrap(
        line,
        COLUMNS - len(end),
        subsequent_indent=CONTINUED,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    return f"{end}\n".join(parts)


def provenance_text(provenance: ScriptProvenance) -> str:
    """Returns the contents of a provenance file, one JSON document; ``parse_provenance`` reads it."""
    document: dict[str, Any] = {}
    for name, value in encode(provenance).items():
        document[name] = value
        if name == "interval_s":
            document["gflop_per_s"] = provenance.gflop_per_s
    return json.dumps(document, indent=1) + "\n"


def provenance_file(script_file: Path) -> Path:
    """Returns the path of the file with a script's provenance: ``best.provenance.json`` for ``best.mlir``."""
    return script_file.with_name(f"{script_file.stem}.provenance.json")


def within_columns(script: str) -> str:
    """Returns a script with lines of more than 120 columns broken, code where MLIR allows it.

    Comments at the beginning of a line are not changed, as programs read them.
    """
    return "\n".join(part for line in script.split("\n") for part in _broken(line, "  "))


def _broken(line: str, more: str) -> list[str]:
    """Returns a line broken into lines of at most 120 columns; ``more`` indents all but the first further."""
    if len(line) <= COLUMNS:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    if line.startswith(f"{indent}//"):
        if indent:
            return textwrap.wrap(line, COLUMNS, subsequent_indent=f"{indent}// ")
        return [line]
    code = QUOTED.sub(lambda quoted: "_" * len(quoted[0]), line).partition("//")[0]
    breaks = [match.start() for match in BREAK.finditer(code, len(indent) + 1)]
    fitting = [column for column in breaks if column <= COLUMNS] or breaks[:1]
    if not fitting:
        return [line]
    rest = f"{indent}{more}{line[fitting[-1] + 1 :]}"
    return [line[: fitting[-1]], *_broken(rest, "")]


def run_command(script_file: str, source_file: str, *, is_stock: bool, mlir_opt: str = "mlir-opt") -> str:
    """Returns the command that applies a script to its payload: mlir-opt if ``is_stock``, else tuner's."""
    if not is_stock:
        return f"tuner apply {script_file} {source_file}"
    library = f"--transform-preload-library=transform-library-paths={script_file}"
    return f"{mlir_opt} {source_file} {library} --transform-interpreter"


def source_file(script_file: Path) -> Path:
    """Returns the path of the file for a script's payload: ``best.source.mlir`` next to ``best.mlir``."""
    return script_file.with_name(f"{script_file.stem}.source{script_file.suffix}")


def read_provenance(script_file: Path, script: str) -> ScriptProvenance:
    """Returns the origin and time of an exported script, from the provenance file next to it.

    Raises UsageError if there is no such file, or if it is damaged or has a wrong value.
    """
    file = provenance_file(script_file)
    if not file.is_file():
        raise UsageError(
            f"{script_file.name}: found no {file.name} next to it, which says what the script is for",
            f"move that file with the script, or write both: tuner export ... -o {script_file.name}",
        )
    return parse_provenance(read_text(file, "the provenance of a script"), script, file.name)


def parse_provenance(text: str, script: str, name: str) -> ScriptProvenance:
    """Returns the origin and time of a script, from the text of its provenance file ``name``.

    ``needs`` is completed by the script's ops, as older exports do not state it. Raises UsageError, naming
    the key, for a missing or wrong value.
    """
    damaged = f"{name}: is damaged"
    document = known_part(ScriptProvenance, parsed(text, damaged), damaged)
    provenance = decode(ScriptProvenance, document, f"{damaged}: ")
    needs = {*provenance.needs, *script_instructions(script, provenance.problem.multiplied_dtype)}
    return replace(provenance, needs=tuple(sorted(needs)))


def is_exported(text: str) -> bool:
    """Returns whether a script has the header of an exported script."""
    return any(line.startswith(RUN) for line in text.splitlines())


def without_header(text: str) -> str:
    """Returns a script without the header of an earlier export; unchanged if it has none."""
    lines = text.splitlines(keepends=True)
    run = next((index for index, line in enumerate(lines) if line.startswith(RUN)), -1)
    rest = lines[run + 1 :]
    while run >= 0 and rest and rest[0].startswith(CONTINUED):
        rest = rest[1:]
    return "".join(rest)


def _header_lines(provenance: ScriptProvenance) -> tuple[str, ...]:
    """Returns the header's lines without the command: the problem and its time, the origin, conditions."""
    threads = "1 thread" if provenance.threads == 1 else f"{provenance.threads} threads"
    knobs = ", ".join(f"{name}={value}" for name, value in provenance.knobs)
    conditions = _operands(provenance)
    if provenance.needs:
        conditions.append(f"Needs {', '.join(provenance.needs)}.")
    if provenance.median_s is not None:
        conditions.append(f"Reliable: {provenance.reliability.answer}.")
    where = f"{provenance.target}, {threads}, {provenance.machine}"
    by = f"by tuner {provenance.tuner} ({provenance.mlir}) on {provenance.date}:"
    script = f"{provenance.strategy}({knobs})"
    trial = f"trial {provenance.trial} of run {provenance.run}"
    what = f"{_time_text(provenance)}; {_baseline_text(provenance)}"
    lines = [f"{provenance.problem.key} on {where}: {provenance.untuned or what}"]
    if provenance.untuned:
        lines.append(f"Chosen {by} {script}")
    else:
        lines.append(f"Tuned {by} {trial}, {script}")
    if conditions:
        lines.append(" ".join(conditions))
    return tuple(lines)


def _operands(provenance: ScriptProvenance) -> list[str]:
    """Returns sentences on the alignment of operands; [] on a GPU, whose driver aligns them."""
    if not provenance.target.is_on_cpu:
        return []
    align = provenance.problem.align
    where = {
        "any": ": timed one element past a multiple of 64",
        "16": ": timed 16 bytes past a multiple of 64",
    }
    text = "at any address" if align == "any" else f"at multiples of {align} bytes"
    if provenance.median_s is not None:
        text += where.get(align, "")
    if provenance.problem.cache != WARM:
        text += f"; caches {provenance.problem.cache}"
    if provenance.sensitive:
        sensitive = [f"Sensitive to alignment: {provenance.sensitive}."]
    else:
        sensitive = []
    return [f"Operands {text}.", *sensitive]


def _time_text(provenance: ScriptProvenance) -> str:
    if provenance.unverified:
        return f"no time, not verified: {provenance.unverified}"
    if provenance.median_s is None or provenance.interval_s is None:
        return "verified, not timed"
    interval = f"95 % interval {interval_text(provenance.interval_s)}"
    return f"{seconds_text(provenance.median_s)} ({interval}), {provenance.gflop_per_s:.2f} GFLOP/s"


def _baseline_text(provenance: ScriptProvenance) -> str:
    if provenance.baseline is None or provenance.median_s is None:
        return "baseline not measured"
    if provenance.ratio is not None and provenance.ratio_interval is not None:
        low, high = provenance.ratio_interval
        ratio = f"ratio {provenance.ratio:.3f} (95 % interval {low:.3f} .. {high:.3f})"
    elif provenance.reliability.unreliable:
        ratio = "no ratio to an unreliable time"
    else:
        ratio = f"no ratio: {provenance.no_ratio or provenance.reliability.reason}"
    return f"{provenance.baseline.name}: {seconds_text(provenance.baseline.median_s)}, {ratio}"
