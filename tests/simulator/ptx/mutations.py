"""Edits that break kernels, and what a run of a broken kernel shows."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuner.simulator.launch import Simulation
from tuner.simulator.ptx.defects import Defect, SimulationError

Array = NDArray[Any]
Edit = Callable[[str], str]
Run = Callable[[str], tuple[Simulation, Array, Array]]  # PTX -> simulation, result, what it should be


def change(pattern: str, text: str | Callable[["re.Match[str]"], str], count: int = 0) -> Edit:
    """Returns the edit that replaces what matches, all of it or the first few."""
    return lambda ptx: re.sub(pattern, text, ptx, count=count)


def drop(pattern: str, count: int = 0) -> Edit:
    return change(pattern, "", count)


def drop_last(word: str) -> Edit:
    """Returns the edit that deletes the last line with a word."""
    return lambda ptx: re.sub(rf"(?s)(.*\n)[^\n]*{re.escape(word)}[^\n]*\n", r"\1", ptx, count=1)


def outcome(run: Run, ptx: str, tolerance: float) -> tuple[set[Defect], bool]:
    """Returns the kinds of everything found, and whether the result is right."""
    try:
        simulation, result, expected = run(ptx)
    except SimulationError as error:
        return {error.kind}, False
    kinds = {hazard.kind for hazard in simulation.races}
    return kinds, bool(np.allclose(result.astype(np.float64), expected, rtol=0, atol=tolerance))
