"""A trial -> a transform script with a header, which records its origin for users and ``tuner check``."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from tuner.core.candidate import PROBLEM, RecordedRound, Seconds, TargetName, Value, with_alignment
from tuner.core.errors import UsageError
from tuner.core.problem import WARM, Problem
from tuner.core.reliability import AS_TEXT, NOT_RECORDED, Reliability, unreliable
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
from tuner.space.scripts.requirements import instructions_needed

THREADS_LIMIT = 4096  # more than any machine of today has
MARK = "// tuner: "  # the one line of the header that programs read
KNOBS = form(dict[str, Value], dict, lambda knobs: tuple(knobs.items()))
TARGET = form(str, lambda target: target.text, TargetName.parse)


@dataclass(frozen=True)
class BaselineMedian:
    """The name of the baseline and its median time, as recorded in the header of an exported script."""

    name: str
    median_s: Seconds


@dataclass(frozen=True, kw_only=True)
class ScriptProvenance:
    """Origin and time of an exported script: the fields of its header's JSON line, in their order."""

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
    unreliable: str = ""  # why the time cannot be relied on; "" where it can
    ratio: float | None = None  # the baseline's time over this one; None: ``no_ratio`` says why
    ratio_interval: tuple[float, float] | None = None  # 95 %
    round: RecordedRound | None = None  # None: exported by an older tuner, or timed alone
    no_ratio: str = ""  # why the time must not be compared with the baseline's; "" where it may
    sensitive: str = ""  # at which other alignment of operands it is slower; "" where it is not, or not timed
    unverified: str = ""  # why nothing was verified, only compiled; "" where the result was right
    trial: Annotated[int, whole(0)]
    run: Annotated[int, whole(0)]
    mlir: str  # version string
    date: str  # UTC, ISO 8601

    def __post_init__(self) -> None:
        if (self.median_s is None) != (self.interval_s is None):
            raise ValueError("median_s and interval_s: one of them is missing")

    @property
    def time_reliability(self) -> Reliability:
        """Returns how reliable the time is; that of an older script by what its header says."""
        is_old = self.reliability == NOT_RECORDED and self.unreliable
        return unreliable(self.unreliable) if is_old else self.reliability

    @property
    def gflop_per_s(self) -> float | None:
        return self.problem.flop / self.median_s / 1e9 if self.median_s else None


def script_with_header(
    script: str, provenance: ScriptProvenance, ops: Sequence[str], script_file: str, source_file: str
) -> str:
    """Returns a transform script with its header, which replaces the header of an earlier export.

    ``ops``: tuner's transform ops in the script, which stock ``mlir-opt`` does not have. ``script_file`` and
    ``source_file``: the names of the script and of the payload in the header's command.
    """
    if ops:
        own = f"calls the project's own transform ops ({', '.join(ops)})"
        apply = f"{own}: run with tuner apply {script_file} {source_file}"
    else:
        apply = (
            f"mlir-opt {source_file} "
            f"--transform-preload-library=transform-library-paths={script_file} --transform-interpreter"
        )
    lines = [f"// {printable(' '.join(line.splitlines()))}" for line in _header_lines(provenance)]
    document: dict[str, Any] = {}
    for name, value in encode(provenance).items():
        document[name] = value
        if name == "interval_s":
            document["gflop_per_s"] = provenance.gflop_per_s
    lines += [f"// payload   {source_file}", f"// apply     {apply}", MARK + json.dumps(document)]
    return "\n".join(lines) + "\n" + without_header(script).rstrip("\n") + "\n"


def read_provenance(text: str, name: str) -> ScriptProvenance:
    """Returns the origin and time from the header of an exported script; ``name`` is its name for messages.

    What its code needs is worked out from the ops of the script as well, as older headers do not have it.
    Raises UsageError, which names what is missing or wrong.
    """
    lines = [line for line in text.splitlines() if line.startswith(MARK)]
    if len(lines) != 1:
        raise UsageError(
            f"{name}: is not a script that 'tuner export' wrote: "
            f"found {len(lines)} lines that begin with {MARK.strip()!r}, allowed 1"
        )
    damaged = f"{name}: its line {MARK.strip()!r} is damaged"
    document = known_part(ScriptProvenance, parsed(lines[0].removeprefix(MARK), damaged), damaged)
    provenance = decode(ScriptProvenance, with_alignment(document), f"{damaged}: ")
    needs = {*provenance.needs, *instructions_needed(text, provenance.problem.dtype)}
    return replace(provenance, needs=tuple(sorted(needs)))


def without_header(text: str) -> str:
    """Returns a script without the header of an earlier export; unchanged if it has none."""
    lines = text.splitlines(keepends=True)
    if not any(line.startswith(MARK) for line in lines):
        return text
    last = max(index for index, line in enumerate(lines) if line.startswith(MARK))
    return "".join(lines[last + 1 :])


def _header_lines(provenance: ScriptProvenance) -> list[str]:
    return [
        f"Transform script of {provenance.problem.key}",
        f"made by   tuner {provenance.tuner} on {provenance.date}",
        f"target    {provenance.target}, {provenance.threads} thread{'s' * (provenance.threads != 1)}",
        *_operands_lines(provenance),
        f"machine   {provenance.machine}",
        *[f"needs     {', '.join(provenance.needs)}"] * bool(provenance.needs),
        f"strategy  {provenance.strategy}",
        f"knobs     {', '.join(f'{name}={value}' for name, value in provenance.knobs)}",
        f"time      {_time_text(provenance)}",
        *[f"reliable  {provenance.reliability.answer}"] * (provenance.median_s is not None),
        f"baseline  {_baseline_text(provenance)}",
        f"trial     {provenance.trial} of run {provenance.run}",
        f"mlir      {provenance.mlir}",
    ]


def _operands_lines(provenance: ScriptProvenance) -> list[str]:
    """Returns the line on the alignment of operands; on a GPU, whose driver aligns them, no line."""
    if not provenance.target.is_on_cpu:
        return []
    align = provenance.problem.align
    where = {"any": ": timed one element past a multiple of 64", "16": ": timed 16 bytes past one of 64"}
    text = "at any address" if align == "any" else f"at multiples of {align} bytes"
    if provenance.median_s is not None:
        text += where.get(align, "")
    if provenance.problem.cache != WARM:
        text += f"; caches {provenance.problem.cache}"
    sensitive = [f"sensitive to alignment: {provenance.sensitive}"] * bool(provenance.sensitive)
    return [f"operands  {text}", *(f"          {line}" for line in sensitive)]


def _time_text(provenance: ScriptProvenance) -> str:
    if provenance.unverified:
        return f"none: {provenance.unverified}"
    if provenance.median_s is None or provenance.interval_s is None:
        return "none: verified, not timed"
    interval = f"95 % interval {interval_text(provenance.interval_s)}"
    return f"{seconds_text(provenance.median_s)} ({interval}), {provenance.gflop_per_s:.2f} GFLOP/s"


def _baseline_text(provenance: ScriptProvenance) -> str:
    if provenance.baseline is None or provenance.median_s is None:
        return "not measured"
    if provenance.ratio is not None and provenance.ratio_interval is not None:
        low, high = provenance.ratio_interval
        ratio = f"ratio {provenance.ratio:.3f} (95 % interval {low:.3f} .. {high:.3f})"
    elif provenance.unreliable:
        ratio = "no ratio to an unreliable time"
    else:
        ratio = f"no ratio: {provenance.no_ratio or provenance.reliability.reason}"
    return f"{provenance.baseline.name}: {seconds_text(provenance.baseline.median_s)}, {ratio}"
