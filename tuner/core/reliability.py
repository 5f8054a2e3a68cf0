"""Whether a stored time can be relied on: printed or returned next to every time.

``tuner.core.round_quality`` has the rules by which this is decided.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from tuner.core.serialization import form


class Trust(enum.Enum):
    """Whether a time was taken on a quiet machine, on a disturbed one, or without evidence of either."""

    RELIABLE = "reliable"
    UNRELIABLE = "unreliable"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Reliability:
    """Whether a time can be relied on, and the reason if it cannot.

    Raises ValueError for a reliable time with a reason, and for another time without one.
    """

    trust: Trust
    reason: str = ""  # one clause; "" for a reliable time

    def __post_init__(self) -> None:
        if bool(self.reason) != (self.trust is not Trust.RELIABLE):
            raise ValueError(f"reliability: found {self.trust.value} with the reason {self.reason!r}")

    @classmethod
    def of_text(cls, text: str) -> "Reliability":
        """Returns the reliability that ``Reliability.text`` was written from.

        ``NOT_RECORDED`` for any other text.
        """
        word, _, reason = text.partition(": ")
        if word in (Trust.UNRELIABLE.value, Trust.UNKNOWN.value) and reason:
            return cls(Trust(word), reason)
        if text == Trust.RELIABLE.value:
            return RELIABLE
        return NOT_RECORDED

    @property
    def word(self) -> str:
        """Returns 'reliable', 'unreliable' or 'unknown', for the cell of a table."""
        return self.trust.value

    @property
    def text(self) -> str:
        """Returns the word, and the reason where there is one: 'unreliable: the baseline drifted by 34%'."""
        if self.reason:
            return f"{self.word}: {self.reason}"
        return self.word

    @property
    def answer(self) -> str:
        """Returns an answer to "reliable?": 'yes', 'no: the baseline drifted by 34%', or 'unknown: ...'."""
        if not self.reason:
            return "yes"
        return f"{'no' if self.unreliable else 'unknown'}: {self.reason}"

    @property
    def is_reliable(self) -> bool:
        return self.trust is Trust.RELIABLE

    @property
    def unreliable(self) -> str:
        """Returns why the time is unreliable.

        "" for a reliable time, and for one whose reliability is unknown.
        """
        if self.trust is Trust.UNRELIABLE:
            return self.reason
        return ""


RELIABLE = Reliability(Trust.RELIABLE)
AS_TEXT = form(str, lambda reliability: reliability.text, Reliability.of_text)  # how JSON stores it


def reliable_unless(reason: str) -> Reliability:
    """Returns RELIABLE for "", else the reliability of an unreliable time, for ``reason``."""
    if reason:
        return unreliable(reason)
    return RELIABLE


def unreliable(reason: str) -> Reliability:
    """Returns the reliability of an unreliable time; ``reason``: such as what disturbed the machine."""
    return Reliability(Trust.UNRELIABLE, reason)


def unknown(reason: str) -> Reliability:
    """Returns the reliability "unknown"; ``reason``: such as which evidence of a quiet machine is missing."""
    return Reliability(Trust.UNKNOWN, reason)


NOT_RECORDED = unknown("it was not recorded")


def reliability_of_all(times: Sequence[Reliability]) -> Reliability:
    """Returns the reliability of a result of several times, such as a sum.

    The reliability of the least reliable. Unknown if ``times`` is empty.
    """
    for trust in (Trust.UNRELIABLE, Trust.UNKNOWN):
        found = [time for time in times if time.trust is trust]
        if found:
            return Reliability(trust, f"{len(found)} of {len(times)} times, {found[0].reason}")
    if times:
        return RELIABLE
    return unknown("nothing was timed")
