"""A results file: JSON lines, one for the measuring, then one for each thing found out. docs/bundle.md."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, final

from tuner.bundle.archive import require_format
from tuner.core.dataclass_json import decode, encode
from tuner.core.errors import Failure, UsageError
from tuner.core.measured_elsewhere import (
    BaselineTime,
    ElsewhereResults,
    FinalTime,
    MeasuredTrial,
    MeasuringProvenance,
    NoiseFloor,
)
from tuner.core.record import Measurement

FORMAT: Final = "tuner-results"
VERSION: Final = 3  # since the library that is compared with is the baseline
KINDS: Final[dict[str, type[Any]]] = {
    "trial": MeasuredTrial,
    "final": FinalTime,
    "noise": NoiseFloor,
    "baseline": BaselineTime,
}
Line = MeasuredTrial | FinalTime | NoiseFloor | BaselineTime


@final
class ResultsFile:
    """Appends lines; each is on the disk when the call returns."""

    def __init__(self, path: Path, provenance: MeasuringProvenance) -> None:
        """Begins a file, or goes on with one of the same measuring. Raises UsageError."""
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
        """Writes what was found out."""
        kind = next(name for name, class_ in KINDS.items() if isinstance(line, class_))
        self._write({kind: encode(line)})

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _write(self, document: Any) -> None:
        self._file.write(json.dumps(document, allow_nan=False) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def read_results(path: Path) -> ElsewhereResults:
    """Reads a file; a last line that was cut off is left out. Raises UsageError for anything else wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: found no text, allowed a file of {FORMAT}") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    whole = text[: text.rfind("\n") + 1]  # what follows was being written when its process ended
    results: ElsewhereResults | None = None
    for number, line in enumerate(whole.splitlines(), 1):
        document = _document(line, f"{path}: line {number}")
        results = _with_line(results, document, f"{path}: line {number}")
    if results is None:
        raise UsageError(f"{path}: found no line, allowed a file of {FORMAT}")
    return results


def _with_line(results: ElsewhereResults | None, document: Any, place: str) -> ElsewhereResults:
    if results is None:
        require_format(document, FORMAT, VERSION, place)
        return ElsewhereResults(decode(MeasuringProvenance, document.get("provenance"), place), ())
    kind = next(iter(document)) if isinstance(document, dict) and len(document) == 1 else None
    if kind not in KINDS:
        raise UsageError(f"{place}: found {kind!r}, allowed {', '.join(KINDS)}")
    line = decode(KINDS[kind], document[kind], f"{place}: {kind}")
    match line:
        case MeasuredTrial():
            _require_time(line.outcome, place)
            return replace(results, trials=(*results.trials, line))
        case FinalTime():
            _require_time(line.measurement, place)
            return replace(results, finals=(*results.finals, line))
        case NoiseFloor():
            return replace(results, noises=(*results.noises, line))
        case BaselineTime():
            _require_time(line.baseline.measurement, place)
            return replace(results, baselines=(*results.baselines, line))
    raise AssertionError(f"{kind}: not taken in")


def _require_time(outcome: Measurement | Failure, place: str) -> None:
    if isinstance(outcome, Failure):
        return
    if not outcome.samples_s or not min(*outcome.samples_s, outcome.median_s, outcome.interval_s[0]) > 0:
        raise UsageError(f"{place}: found a time of {outcome.median_s:g} s, allowed samples above 0 s")


def _document(line: str, place: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place}: found no JSON: {error}") from error


def _forget_cut_line(path: Path) -> None:
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
