"""The time budget of the GPU check: seconds that one part leaves are shared by later parts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

TOTAL_S = 450.0  # of the 8 minutes that it may take, the rest for processes to end and the file to be written
# Part -> its share while all are to come. Tuning is last, because more time always helps it.
WEIGHTS = {
    "environment": 3.0,
    "strategies": 20.0,
    "sanitizer": 13.0,
    "programs": 13.0,
    "timing": 9.0,
    "ranking": 12.0,
    "tuning": 45.0,
}


@dataclass(frozen=True)
class Budget:
    """Seconds for several parts, which run one after another."""

    parts: tuple[str, ...]  # in their order
    total_s: float = TOTAL_S
    weights: Mapping[str, float] = field(default_factory=lambda: WEIGHTS)  # part -> its share

    def __post_init__(self) -> None:
        """Raises ValueError for a part without a weight, and for no seconds."""
        for part in self.parts:
            if part not in self.weights:
                raise ValueError(f"part: found {part!r}, allowed {', '.join(self.weights)}")
        if self.total_s <= 0:
            raise ValueError(f"seconds: found {self.total_s:g}, allowed more than 0")

    def limit_s(self, part: str, spent_s: float) -> float:
        """Returns the seconds of a part that begins after ``spent_s``: its share of what remains."""
        coming = self.parts[self.parts.index(part) :]
        left_s = max(0.0, self.total_s - spent_s)
        return left_s * self.weights[part] / sum(self.weights[other] for other in coming)
