"""Reads and writes a results file: JSON lines, one for the provenance, then one for each result.

See docs/reference/json-documents.md.
"""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, final

from tuner.core.dataclass_json import decode, encode, parsed, require_format
from tuner.core.errors import UsageError
from tuner.core.machine import Machine
from tuner.core.possible_outcome import most_flop_per_s, why_impossible, why_no_baseline, why_no_verdict
from tuner.core.record import Measurement
from tuner.core.remote_results import (
    BaselineTime,
    FinalTime,
    MeasuredTrial,
    MeasuringProvenance,
    NoiseFloor,
    RemoteResults,
)

FORMAT: Final = "tuner-results"
VERSION: Final = 3  # 3: the library that is compared with is named baseline
KINDS: Final[dict[str, type[Any]]] = {
    "trial": MeasuredTrial,
    "final": FinalTime,
    "noise": NoiseFloor,
    "baseline": BaselineTime,
}
Line = MeasuredTrial | FinalTime | NoiseFloor | BaselineTime


@final
class ResultsFile:
    """A results file that is open for appending; a result is on disk when the call returns."""

    def __init__(self, path: Path, provenance: MeasuringProvenance) -> None:
        """Creates the file, or continues one, of which it removes a truncated last line.

        The caller ensures that a file that exists is of the same bundle and machine. Raises UsageError where
        the file cannot be written.
        """
        try:
            is_new = not path.exists() or path.stat().st_size == 0
            if not is_new:
                _forget_cut_line(path)
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
        if is_new:
            self._write(
                {"format": FORMAT, "version": VERSION, "provenance": encode(provenance)},
            )

    def append(self, line: Line) -> None:
        """Writes one result (trial, final time, noise floor or baseline) as a line of JSON."""
        kind = next(name for name, class_ in KINDS.items() if isinstance(line, class_))
        self._write({kind: encode(line)})

    def close(self) -> None:
        """Closes the results file."""
        self._file.close()

    def _write(self, document: Any) -> None:
        self._file.write(json.dumps(document, allow_nan=False) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def read_results(path: Path) -> RemoteResults:
    """Reads a results file, with the provenance and all results; a truncated last line is ignored.

    Raises UsageError for a file that cannot be read or has other defects, such as impossible times.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is not text; it must be a file of {FORMAT}") from error
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be read ({error.strerror or error}), expected results of tuner measure"
        ) from error
    whole = text[: text.rfind("\n") + 1]  # a rest was being written when its process ended
    results: RemoteResults | None = None
    for number, line in enumerate(whole.splitlines(), 1):
        place = f"{path}: line {number}"
        results = _with_line(results, parsed(line, place), place)
    if results is None:
        raise UsageError(f"{path}: is empty; it must be a file of {FORMAT}")
    return results


def _with_line(results: RemoteResults | None, document: Any, place: str) -> RemoteResults:
    if results is None:
        require_format(document, FORMAT, VERSION, place)
        return RemoteResults(decode(MeasuringProvenance, document.get("provenance"), place), ())
    kind = next(iter(document)) if isinstance(document, dict) and len(document) == 1 else None
    if kind not in KINDS:
        raise UsageError(f"{place}: found {kind!r}, allowed {', '.join(KINDS)}")
    line: Line = decode(KINDS[kind], document[kind], f"{place}: {kind}")
    why = _why_impossible(line, results.provenance.machine)
    if why:
        raise UsageError(f"{place}: {why}")
    match line:
        case MeasuredTrial():
            return replace(results, trials=(*results.trials, line))
        case FinalTime():
            return replace(results, final_times=(*results.final_times, line))
        case NoiseFloor():
            return replace(results, noises=(*results.noises, line))
        case BaselineTime():
            return replace(results, baselines=(*results.baselines, line))


def _why_impossible(line: Line, machine: Machine) -> str:
    """Returns why a line cannot be a measured result, such as a time above the GPU's peak; "": it can."""
    limit = most_flop_per_s(line.problem, machine, 0)
    match line:
        case MeasuredTrial():
            why = "" if line.verdict is None else why_no_verdict(line.verdict, line.problem)
            if why or not isinstance(line.outcome, Measurement):
                return why
            return why_impossible(line.outcome, line.problem, limit)
        case FinalTime():
            return why_impossible(line.measurement, line.problem, limit)
        case NoiseFloor():
            return "" if line.noise >= 0 else f"found a noise of {line.noise:g}, allowed 0 or more"
        case BaselineTime():
            return why_no_baseline(line.baseline, line.problem, limit)


def _forget_cut_line(path: Path) -> None:
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
