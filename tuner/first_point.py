"""A point that a run proposes before its sampler chooses, and what speaks for it."""

from dataclasses import dataclass

from tuner.space import Candidate

WARM_START = "warm start"  # it was among the best of a problem like this one
SPACE_FILE = "space file"  # the file lists it under ``first``
SEED = "seed"  # what is known of the machine speaks for it
ORIGINS = (WARM_START, SPACE_FILE, SEED)


@dataclass(frozen=True)
class FirstPoint:
    """A feasible candidate and where it comes from."""

    candidate: Candidate
    origin: str  # one of ORIGINS
    source: str = ""  # of a warm start: "512x512x512 (run 3)"

    def __post_init__(self) -> None:
        """Raises ValueError for another origin."""
        if self.origin not in ORIGINS:
            raise ValueError(f"origin: found {self.origin!r}, allowed {', '.join(ORIGINS)}")
