"""The checks of the GPU check, their outcomes, and parts of checks, as values."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["passed", "failed", "skipped"]
STATUSES: tuple[Status, ...] = ("passed", "failed", "skipped")
CHECK_LIMIT_S = 60.0


@dataclass(frozen=True)
class CheckOutcome:
    """The outcome of one check."""

    status: Status
    words: str = ""  # one line for people
    facts: dict[str, Any] = field(default_factory=dict)  # for the JSON document

    def __post_init__(self) -> None:
        """Raises ValueError for an unknown status."""
        if self.status not in STATUSES:
            raise ValueError(f"status: found {self.status!r}, allowed {', '.join(STATUSES)}")


@dataclass(frozen=True)
class Check:
    """One check; an exception in it is a failure."""

    name: str
    ask: Callable[[], CheckOutcome]
    limit_s: float = CHECK_LIMIT_S


@dataclass(frozen=True)
class Row:
    """One check that was begun, with its outcome."""

    name: str
    outcome: CheckOutcome
    seconds: float

    def document(self, part: str) -> dict[str, Any]:
        """Returns the row for the results file."""
        outcome = self.outcome
        found = {"status": outcome.status, "words": outcome.words, "seconds": round(self.seconds, 3)}
        return {"part": part, "check": self.name, **found, **outcome.facts}


@dataclass(frozen=True)
class PartResult:
    """One part of the check."""

    name: str
    rows: tuple[Row, ...]
    left_out: tuple[str, ...]  # checks that there was no time for
    seconds: float
    limit_s: float

    @property
    def status(self) -> Status:
        """Returns the worst status of the part's checks; "failed" for a part that had no time for a check."""
        found = {row.outcome.status for row in self.rows}
        if "failed" in found or (self.left_out and not found):
            return "failed"
        return "passed" if "passed" in found else "skipped"

    def count(self, status: Status) -> int:
        """Returns how many checks have a status."""
        return sum(row.outcome.status == status for row in self.rows)

    @property
    def words(self) -> tuple[str, ...]:
        """Returns lines about failed, skipped and omitted checks; equal reasons for skipping once."""
        failed = [f"{row.name}: {row.outcome.words}" for row in self.rows if row.outcome.status == "failed"]
        reasons = [row.outcome.words for row in self.rows if row.outcome.status == "skipped"]
        lines = [f"FAILED  {line}" for line in failed]
        lines += [f"skipped {reasons.count(reason)}: {reason}" for reason in dict.fromkeys(reasons)]
        if self.left_out:
            lines.append(f"no time for {len(self.left_out)}: {', '.join(self.left_out)}")
        return tuple(lines)


def passed(words: str = "", **facts: Any) -> CheckOutcome:
    """Returns the outcome of a check that passed."""
    return CheckOutcome("passed", words, facts)


def failed(words: str, **facts: Any) -> CheckOutcome:
    """Returns the outcome of a check that failed."""
    return CheckOutcome("failed", words, facts)


def skipped(words: str) -> CheckOutcome:
    """Returns the outcome of a check that cannot run here, with the reason."""
    return CheckOutcome("skipped", words)


def evaluated(is_right: bool, words: str, **facts: Any) -> CheckOutcome:
    """Returns an outcome by a verdict."""
    return CheckOutcome("passed" if is_right else "failed", words, facts)
