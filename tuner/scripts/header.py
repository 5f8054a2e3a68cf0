"""A trial -> a transform script whose first lines tell people and ``tuner check`` its origin."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tuner.core.candidate import Value
from tuner.core.errors import UsageError
from tuner.core.problem import Problem
from tuner.core.target_name import TargetName

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

    @property
    def gflop_per_s(self) -> float | None:
        """Returns the speed in 1e9 flop per second; None for what was not timed."""
        return None if self.median_s is None else self.problem.flop / self.median_s / 1e9


def own_ops(script: str, prefix: str) -> tuple[str, ...]:
    """Returns the ops named ``prefix``... that a script calls in generic syntax; comments do not count."""
    code = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("//"))
    return tuple(sorted(set(re.findall(rf'"({re.escape(prefix)}[\w.]+)"\s*\(', code))))


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
    lines = [f"// {' '.join(line.splitlines())}" for line in _header_lines(provenance)]
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
    try:
        return _from_json(json.loads(lines[0].removeprefix(MARK)))
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{name}: its line {MARK.strip()!r} is damaged: {error!r}") from error


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
    return f"{name}: {median_s * 1e6:.2f} us, ratio {median_s / provenance.median_s:.3f}"


def _to_json(provenance: ScriptProvenance) -> str:
    problem = provenance.problem
    return json.dumps(
        {
            "tuner": provenance.tuner,
            "problem": {
                "op": problem.operation,
                "shape": problem.sizes,
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
            "trial": provenance.trial,
            "run": provenance.run,
            "mlir": provenance.mlir,
            "date": provenance.date,
        }
    )


def _from_json(document: dict[str, object]) -> ScriptProvenance:
    """Reads back what ``_to_json`` wrote. Raises KeyError, TypeError or ValueError for anything else."""
    problem, knobs = document["problem"], document["knobs"]
    baseline = document["vendor" if "vendor" in document else "baseline"]  # its earlier name
    if not isinstance(problem, dict) or not isinstance(knobs, dict):
        raise TypeError("problem or knobs has another form")
    median_s, interval_s = _time(document["median_s"], document["interval_s"])
    return ScriptProvenance(
        tuner=str(document["tuner"]),
        problem=Problem(
            problem["op"],
            tuple(int(size) for size in problem["shape"]),
            problem["dtype"],
            problem["layout"],
            problem["epilogue"],
            problem.get("output", ""),
        ),
        target=TargetName.parse(str(document["target"])),
        threads=int(str(document["threads"])),
        machine=str(document["machine"]),
        strategy=str(document["strategy"]),
        knobs=tuple(knobs.items()),
        median_s=median_s,
        interval_s=interval_s,
        baseline=(str(baseline["name"]), float(baseline["median_s"])) if isinstance(baseline, dict) else None,
        trial=int(str(document["trial"])),
        run=int(str(document["run"])),
        mlir=str(document["mlir"]),
        date=str(document["date"]),
    )


def _time(median_s: object, interval_s: object) -> tuple[float | None, tuple[float, float] | None]:
    if median_s is None and interval_s is None:
        return None, None
    if not isinstance(interval_s, list):
        raise TypeError("interval_s has another form")
    low, high = interval_s
    return _positive(median_s), (float(low), float(high))


def _positive(value: object) -> float:
    seconds = float(str(value))
    if not seconds > 0:
        raise ValueError(f"median_s: found {seconds}, allowed more than 0")
    return seconds
