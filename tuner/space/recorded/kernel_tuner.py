"""Kernel Tuner's cache files to recorded spaces. Times in the files are in milliseconds.

The format: https://github.com/KernelTuner/kernel_tuner/tree/master/kernel_tuner/schema/cache
"""

import math
from typing import Any, TypeGuard

from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.machine import Compiler, Machine
from tuner.space.recorded.file import RecordedFile, printable
from tuner.space.recorded.points import Points, feasible_set_of
from tuner.space.recorded.space import RecordedSpace, RecordedTime

MS = 1e-3
FORBIDDEN = "InvalidConfig"  # a restriction or a limit of the device rejects it
FAILED = {
    "CompilationFailedConfig": Failure(Stage.COMPILE, "CompilationFailedConfig"),
    "RuntimeFailedConfig": Failure(Stage.RUN, "RuntimeFailedConfig"),
}
UNTIMED = Failure(Stage.MEASURE, "recorded without a time")
FAILED_VALUE = 1e20  # an older notation of a failure
SMALLEST = 1e-12  # in any unit: below the resolution of clocks; keeps speeds finite


def is_kernel_tuner(document: dict[str, Any]) -> bool:
    """Returns whether a JSON document has the form of a Kernel Tuner cache: an object under "cache"."""
    return isinstance(document.get("cache"), dict)


def kernel_tuner_space(file: RecordedFile) -> RecordedSpace:
    """Returns the recorded space of a Kernel Tuner cache; times are converted from milliseconds to seconds.

    Raises UsageError where no configuration was tried or times do not fit their samples. A document of
    another form raises what reading it gives: KeyError, TypeError, ValueError or AttributeError.
    """
    document = file.document
    tried = [entry for entry in document["cache"].values() if entry.get("time") != FORBIDDEN]
    if not tried:
        raise UsageError("no point was tried")
    names = tuple(document["tune_params_keys"])
    points = Points(
        strategy=str(document.get("kernel_name") or file.name),
        names=names,
        listed=tuple(tuple(document["tune_params"].get(name, ())) for name in names),
        values=[tuple(entry[name] for name in names) for entry in tried],
        entries=list(range(len(tried))),
    )
    feasible, entries = feasible_set_of((points,))
    device = str(document.get("device_name") or "unknown device")
    return RecordedSpace(
        name=file.name,
        sha256=file.sha256,
        feasible=feasible,
        outcomes=tuple(_outcome(tried[entry]) for entry in entries),
        codes=tuple(range(len(entries))),
        machine=foreign_machine(device),
        compiler=Compiler("not MLIR: Kernel Tuner", (), ""),
        forbidden=len(document["cache"]) - len(tried),
    )


def foreign_machine(device: str) -> Machine:
    """Returns a machine of which only the name is known: all its sizes are 0."""
    name = printable(device)
    return Machine(name, name, "none", False, 0, 0, 0, 0, 0, 0)


def _outcome(entry: dict[str, Any]) -> RecordedTime | Failure:
    time_ms = entry.get("time")
    if isinstance(time_ms, str):
        return FAILED.get(time_ms, Failure(Stage.RUN, printable(time_ms)))
    if not is_time(time_ms):
        return UNTIMED
    return RecordedTime(time_ms * MS, samples_of(entry.get("times", ()), MS))


def is_time(value: object) -> TypeGuard[int | float]:
    """Returns whether a JSON value is a valid time in any unit: a number of at least 1e-12 and below 1e20."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return SMALLEST <= value < FAILED_VALUE


def samples_of(values: list[float], unit_s: float) -> tuple[float, ...]:
    """Returns times converted to seconds; () where one of them is no valid time.

    ``unit_s`` is the length of the times' unit in seconds.
    """
    try:
        # three passes in C: a file may hold millions
        are_times = (
            min(values, default=0) >= SMALLEST and max(values) < FAILED_VALUE and math.isfinite(sum(values))
        )
    except TypeError:
        return ()
    return tuple([value * unit_s for value in values]) if are_times else ()
