"""``python -m tuner`` is the command ``tuner``; ``measure --bundle`` runs where only numpy is installed."""

import importlib.util
import sys


def run(words: list[str]) -> None:
    """Runs a command and exits with its code."""
    has_bundle = any(word.split("=")[0] == "--bundle" for word in words)
    if words[:1] == ["measure"] and (has_bundle or importlib.util.find_spec("click") is None):
        from tuner.bundle.measure.command import main as measure

        sys.exit(measure(words[1:]))
    from tuner.cli import main

    main(prog_name="tuner")


if __name__ == "__main__":
    run(sys.argv[1:])
