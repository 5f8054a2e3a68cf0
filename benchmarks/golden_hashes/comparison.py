"""The differences between two reports of hashes."""

from collections.abc import Mapping

Hashes = Mapping[str, Mapping[str, str]]  # item -> part -> sha256


def differences(then: Hashes, now: Hashes) -> list[str]:
    """Returns a line for each item that differs: its name and the parts that differ."""
    lines = []
    for item in dict.fromkeys((*then, *now)):
        parts = _different_parts(then.get(item, {}), now.get(item, {}))
        if parts:
            lines.append(f"{item}: {', '.join(parts)}")
    return lines


def _different_parts(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Returns the parts that differ, each with how it differs."""
    options = []
    for part in dict.fromkeys((*then, *now)):
        if part not in now:
            options.append(f"{part} (missing)")
        elif part not in then:
            options.append(f"{part} (new)")
        elif then[part] != now[part]:
            options.append(part)
    return options
