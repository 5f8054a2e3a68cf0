"""How reliable a figure is, as a short label with a reason."""

from dataclasses import dataclass

from tuner.analysis.run_comparison import distrust
from tuner.core.round_quality import NOISE_LIMIT
from tuner.core.runs import Run, StoredTrial


@dataclass(frozen=True)
class Badge:
    """How reliable a figure of a report is: a short label, the label's colour and the reason."""

    kind: str  # good, unknown, warning: the colour
    word: str
    reason: str


def badge_of(run: Run, best: StoredTrial | None = None) -> Badge:
    """Returns how reliable a run's times are, as a badge; ``best``: its best trial, None without times."""
    if not run.settings.target.has_machine:
        return Badge("unknown", "replayed", "Times of a recording: nothing ran here.")
    if run.unreliable:
        return Badge("warning", "unreliable", f"{run.unreliable}.")
    if run.noise is None:
        return Badge("unknown", "noise not measured", "No code was timed twice to see how far times repeat.")
    reason = "" if best is None else distrust(run, best)
    if reason:
        return Badge("warning", "unreliable", f"{reason}.")
    differ = f"Two timings of the same code differ by {run.noise:.1%}"
    if run.noise > NOISE_LIMIT:
        return Badge("warning", "unreliable", f"{differ}: something else was running.")
    return Badge("good", f"noise {run.noise:.1%}", f"{differ}: smaller differences mean nothing.")
