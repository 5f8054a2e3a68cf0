"""Reads and writes results files: the results of a bundle's candidates on a machine with a GPU.

A results file has JSON lines: the provenance, then one line per result. See docs/reference/json-documents.md.
"""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, final

from tuner.core.errors import Failure, Refusal, UsageError
from tuner.core.machine import Machine
from tuner.core.plausibility import most_flop_per_s, why_impossible, why_no_baseline, why_no_verdict
from tuner.core.records import Measurement
from tuner.core.remote_results import (
    BaselineTime,
    FinalTime,
    MeasuredTrial,
    MeasuringProvenance,
    NoiseFloor,
    RemoteResults,
)
from tuner.core.serialization import decode, encode, parsed, require_format
from tuner.core.text_files import unreadable

RESULTS_FORMAT: Final = "tuner-results"
RESULTS_VERSION: Final = 5  # 5: code as text and binary
LINE_TYPES: Final[dict[str, type[Any]]] = {  # first word of a line
    "trial": MeasuredTrial,
    "final": FinalTime,
    "noise": NoiseFloor,
    "baseline": BaselineTime,
}
FIELDS: Final = {"trial": "trials", "final": "final_times", "noise": "noises", "baseline": "baselines"}
Line = MeasuredTrial | FinalTime | NoiseFloor | BaselineTime


@final
class ResultsFile:
    """A results file that is open for appending; a result is on disk when ``append`` returns."""

    def __init__(self, path: Path, provenance: MeasuringProvenance) -> None:
        """Opens a results file; a new one begins with ``provenance``.

        An incomplete last line of an existing file is removed first. Raises UsageError if it cannot be
        written.
        """
        try:
            is_new = not path.exists() or path.stat().st_size == 0
            if not is_new:
                os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
        if is_new:
            head = {"format": RESULTS_FORMAT, "version": RESULTS_VERSION}
            self._write({**head, "provenance": encode(provenance)})

    def append(self, line: Line) -> None:
        """Writes one result as a line of JSON, and waits until it is on disk."""
        key = next(name for name, class_ in LINE_TYPES.items() if isinstance(line, class_))
        self._write({key: encode(line)})

    def close(self) -> None:
        """Closes the results file."""
        self._file.close()

    def _write(self, document: Any) -> None:
        self._file.write(json.dumps(document, allow_nan=False) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def read_results(path: Path) -> RemoteResults:
    """Reads a results file, without a last line that its process did not finish.

    Raises UsageError for a file that is unreadable, empty, of another format or version, or has impossible
    times.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is not text; it must be a file of {RESULTS_FORMAT}") from error
    except OSError as error:
        raise unreadable(path, error, "results of tuner measure") from error
    whole = text[: text.rfind("\n") + 1]  # a rest was being written when its process ended
    results: RemoteResults | None = None
    for number, line in enumerate(whole.splitlines(), 1):
        where = f"{path}: line {number}"
        results = _with_line(results, parsed(line, where), where)
    if results is None:
        raise UsageError(f"{path}: is empty; it must be a file of {RESULTS_FORMAT}")
    return results


def _with_line(results: RemoteResults | None, document: Any, where: str) -> RemoteResults:
    if results is None:
        require_format(document, RESULTS_FORMAT, RESULTS_VERSION, where)
        return RemoteResults(decode(MeasuringProvenance, document.get("provenance"), where), ())
    key = next(iter(document)) if isinstance(document, dict) and len(document) == 1 else None
    if key not in LINE_TYPES:
        raise UsageError(f"{where}: found {key!r}, allowed {', '.join(LINE_TYPES)}")
    line: Line = decode(LINE_TYPES[key], document[key], f"{where}: {key}")
    why = _why_impossible(line, results.provenance.machine)
    if why is not None:
        raise UsageError(f"{where}: {why.text}")
    more: dict[str, Any] = {FIELDS[key]: (*getattr(results, FIELDS[key]), line)}
    return replace(results, **more)


def _why_impossible(line: Line, machine: Machine) -> Refusal | None:
    limit = most_flop_per_s(line.problem, machine, 0)
    match line:
        case MeasuredTrial():
            why = None if line.verdict is None else why_no_verdict(line.verdict, line.problem)
            if why is not None or not isinstance(line.outcome, Measurement):
                return why
            return why_impossible(line.outcome, line.problem, limit)
        case FinalTime():
            if isinstance(line.measurement, Failure):
                return None
            return why_impossible(line.measurement, line.problem, limit)
        case NoiseFloor():
            if line.noise < 0:
                return Refusal(f"found a noise of {line.noise:g}, allowed 0 or more")
            return None
        case BaselineTime():
            return why_no_baseline(line.baseline, line.problem, limit)
