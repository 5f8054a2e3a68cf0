"""Values of a script's header as strangers may have written them, checked one by one."""

import json
from dataclasses import dataclass
from typing import Any, final

from tuner.core.candidate import Value
from tuner.core.errors import UsageError

SECONDS_LIMIT = 1e6  # of one call: eleven days
SHARE_LIMIT = 1e6  # of the noise: two timings of the same code, one of them during a pause of all processes


@final
@dataclass(frozen=True)
class Fields:
    """A JSON object. Each method raises UsageError, naming the key, for what is missing or another kind."""

    place: str  # "best.mlir: its line ..."
    document: dict[str, Any]

    def has(self, key: str) -> bool:
        """Tells whether the key is there, with another value than null."""
        return self.document.get(key) is not None

    def part(self, key: str) -> "Fields":
        """Returns an object."""
        found = self._get(key)
        if not isinstance(found, dict):
            raise self._wrong(key, found, "an object")
        return Fields(f"{self.place}: {key}", found)

    def text(self, key: str) -> str:
        """Returns a string."""
        found = self._get(key)
        if not isinstance(found, str):
            raise self._wrong(key, found, "text")
        return found

    def count(self, key: str, most: int) -> int:
        """Returns a whole number of at least 0."""
        return self._count(key, self._get(key), most)

    def counts(self, key: str, most: int, length: int) -> tuple[int, ...]:
        """Returns several of them."""
        return tuple(self._count(key, each, most) for each in self._list(key, length))

    def seconds(self, key: str) -> float:
        """Returns a duration of more than 0."""
        return self._seconds(key, self._get(key))

    def seconds_of(self, key: str, length: int) -> tuple[float, ...]:
        """Returns several of them."""
        return tuple(self._seconds(key, each) for each in self._list(key, length))

    def share(self, key: str) -> float:
        """Returns a relative difference of at least 0."""
        found = self._get(key)
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        if not is_number or not 0 <= found <= SHARE_LIMIT:
            raise self._wrong(key, found, f"a number from 0 to {SHARE_LIMIT:.0f}")
        return float(found)

    def values(self) -> tuple[tuple[str, Value], ...]:
        """Returns all keys with their values, numbers or texts."""
        for key, found in self.document.items():
            if not isinstance(found, int | str) or isinstance(found, bool):
                raise self._wrong(key, found, "a whole number or text")
        return tuple(self.document.items())

    def _get(self, key: str) -> Any:
        if key not in self.document:
            raise UsageError(f"{self.place}: {key}: found none, allowed what tuner export wrote")
        return self.document[key]

    def _list(self, key: str, length: int) -> list[Any]:
        found = self._get(key)
        if not isinstance(found, list) or len(found) != length:
            raise self._wrong(key, found, f"a list of {length} numbers")
        return found

    def _count(self, key: str, found: Any, most: int) -> int:
        if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= most:
            raise self._wrong(key, found, f"a whole number from 0 to {most}")
        return found

    def _seconds(self, key: str, found: Any) -> float:
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        if not is_number or not 0 < found <= SECONDS_LIMIT:
            raise self._wrong(key, found, f"seconds, more than 0 and up to {SECONDS_LIMIT:.0f}")
        return float(found)

    def _wrong(self, key: str, found: Any, allowed: str) -> UsageError:
        return UsageError(f"{self.place}: {key}: found {json.dumps(found)[:60]}, allowed {allowed}")
