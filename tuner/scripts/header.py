"""A trial -> a transform script whose first lines tell people and ``tuner check`` its origin."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tuner.core.candidate import Value
from tuner.core.errors import UsageError
from tuner.core.printable import printable
from tuner.core.problem import BATCH_MATMUL, SIZE_LIMIT, Problem, split_extents
from tuner.core.recorded_round import RecordedRound
from tuner.core.target_name import TargetName
from tuner.scripts.header_fields import Fields

THREADS_LIMIT = 4096  # more than any machine of today has
NUMBER_LIMIT = 2**63 - 1  # of a trial or run, as databases count
MARK = "// tuner: "  # the one line of the header that programs read


@dataclass(frozen=True)
class ScriptProvenance:
    """Where a script comes from and what it did there."""

    tuner: str  # version
    problem: Problem
    target: TargetName
    threads: int
    machine: str  # Machine.name
    strategy: str
    knobs: tuple[tuple[str, Value], ...]
    median_s: float | None  # None: verified, on a target without a clock
    interval_s: tuple[float, float] | None
    baseline: tuple[str, float] | None  # (name, median seconds)
    trial: int
    run: int
    mlir: str  # version string
    date: str  # UTC, ISO 8601
    unreliable: str = ""  # why its time means nothing; "" where it can be relied on
    round: RecordedRound | None = None  # None: exported by an older tuner, or timed alone
    no_ratio: str = ""  # why its time must not be compared with the baseline's; "" where it may

    @property
    def gflop_per_s(self) -> float | None:
        """Returns the speed in 1e9 flop per second; None for what was not timed."""
        return self.problem.flop / self.median_s / 1e9 if self.median_s else None


def script_with_header(
    script: str, provenance: ScriptProvenance, ops: Sequence[str], script_file: str, source_file: str
) -> str:
    """Returns the script under its provenance; ``ops`` are our own that it calls, which mlir-opt lacks."""
    if ops:
        own = f"calls the project's own transform ops ({', '.join(ops)})"
        apply = f"{own}: run with tuner apply {script_file} {source_file}"
    else:
        apply = (
            f"mlir-opt {source_file} "
            f"--transform-preload-library=transform-library-paths={script_file} --transform-interpreter"
        )
    lines = [f"// {printable(' '.join(line.splitlines()))}" for line in _header_lines(provenance)]
    lines += [f"// payload   {source_file}", f"// apply     {apply}", MARK + _to_json(provenance)]
    return "\n".join(lines) + "\n" + without_header(script).rstrip("\n") + "\n"


def read_provenance(text: str, name: str) -> ScriptProvenance:
    """Reads the header of an exported script. Raises UsageError naming what is missing or wrong."""
    lines = [line for line in text.splitlines() if line.startswith(MARK)]
    if len(lines) != 1:
        raise UsageError(
            f"{name}: found {len(lines)} lines that begin with {MARK.strip()!r}, needs one: "
            "allowed are scripts written by 'tuner export'"
        )
    place = f"{name}: its line {MARK.strip()!r} is damaged"
    try:
        document = json.loads(lines[0].removeprefix(MARK))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place}: found no JSON: {error}") from error
    if not isinstance(document, dict):
        raise UsageError(f"{place}: found {type(document).__name__}, allowed an object")
    return _from_json(Fields(place, document))


def without_header(text: str) -> str:
    """Returns a script without the leading comment lines of an earlier export."""
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
        f"machine   {provenance.machine}",
        f"strategy  {provenance.strategy}",
        f"knobs     {', '.join(f'{name}={value}' for name, value in provenance.knobs)}",
        f"time      {_time_words(provenance)}",
        f"baseline  {_baseline_words(provenance)}",
        f"trial     {provenance.trial} of run {provenance.run}",
        f"mlir      {provenance.mlir}",
    ]


def _time_words(provenance: ScriptProvenance) -> str:
    if provenance.median_s is None or provenance.interval_s is None:
        return "none: verified, not timed"
    low, high = provenance.interval_s
    interval = f"95 % interval {low * 1e6:.2f} .. {high * 1e6:.2f} us"
    return f"{provenance.median_s * 1e6:.2f} us ({interval}), {provenance.gflop_per_s:.2f} GFLOP/s"


def _baseline_words(provenance: ScriptProvenance) -> str:
    if provenance.baseline is None or provenance.median_s is None:
        return "not measured"
    name, median_s = provenance.baseline
    ratio = f"ratio {median_s / provenance.median_s:.3f}"
    if provenance.unreliable:
        ratio = f"unreliable: {provenance.unreliable}"
    elif provenance.no_ratio:
        ratio = f"no ratio: {provenance.no_ratio}"
    return f"{name}: {median_s * 1e6:.2f} us, {ratio}"


def _to_json(provenance: ScriptProvenance) -> str:
    problem = provenance.problem
    return json.dumps(
        {
            "tuner": provenance.tuner,
            "problem": {
                "op": problem.operation,
                "shape": problem.extents,
                "dtype": problem.dtype,
                "layout": problem.layout,
                "epilogue": problem.epilogue,
                "output": problem.output,
            },
            "target": provenance.target.text,
            "threads": provenance.threads,
            "machine": provenance.machine,
            "strategy": provenance.strategy,
            "knobs": dict(provenance.knobs),
            "median_s": provenance.median_s,
            "interval_s": provenance.interval_s,
            "gflop_per_s": provenance.gflop_per_s,
            "baseline": provenance.baseline
            and {"name": provenance.baseline[0], "median_s": provenance.baseline[1]},
            "unreliable": provenance.unreliable,
            "round": provenance.round and asdict(provenance.round),
            "no_ratio": provenance.no_ratio,
            "trial": provenance.trial,
            "run": provenance.run,
            "mlir": provenance.mlir,
            "date": provenance.date,
        }
    )


def _from_json(fields: Fields) -> ScriptProvenance:
    """Reads back what ``_to_json`` wrote. Raises UsageError naming the key for anything else."""
    median_s, interval_s = _time(fields)
    return ScriptProvenance(
        tuner=fields.text("tuner"),
        problem=_problem(fields.part("problem")),
        target=TargetName.parse(fields.text("target")),
        threads=fields.count("threads", THREADS_LIMIT),
        machine=fields.text("machine"),
        strategy=fields.text("strategy"),
        knobs=fields.part("knobs").values(),
        median_s=median_s,
        interval_s=interval_s,
        baseline=_baseline(fields),
        trial=fields.count("trial", NUMBER_LIMIT),
        run=fields.count("run", NUMBER_LIMIT),
        mlir=fields.text("mlir"),
        date=fields.text("date"),
        unreliable=fields.text("unreliable") if fields.has("unreliable") else "",
        round=_round(fields.part("round")) if fields.has("round") else None,
        no_ratio=fields.text("no_ratio") if fields.has("no_ratio") else "",
    )


def _problem(fields: Fields) -> Problem:
    operation = fields.text("op")
    extents = fields.counts("shape", SIZE_LIMIT, 4 if operation == BATCH_MATMUL else 3)
    batch, sizes = split_extents(operation, extents)
    return Problem(
        operation,
        sizes,
        fields.text("dtype"),
        fields.text("layout"),
        fields.text("epilogue"),
        fields.text("output") if fields.has("output") else "",
        batch,
    )


def _time(fields: Fields) -> tuple[float | None, tuple[float, float] | None]:
    if not fields.has("median_s") and not fields.has("interval_s"):
        return None, None
    low, high = fields.seconds_of("interval_s", 2)
    return fields.seconds("median_s"), (low, high)


def _round(fields: Fields) -> RecordedRound:
    def optional(key: str) -> float | None:
        return fields.seconds(key) if fields.has(key) else None

    return RecordedRound(
        fields.seconds("kernel_s"),
        fields.share("noise"),
        optional("library_s"),
        optional("panel_product_s"),
    )


def _baseline(fields: Fields) -> tuple[str, float] | None:
    key = "vendor" if fields.has("vendor") else "baseline"  # its earlier name
    if not fields.has(key):
        return None
    part = fields.part(key)
    return part.text("name"), part.seconds("median_s")
