"""The shipped search-space file: its path and names, without the YAML reader, which takes long to load."""

import re
from pathlib import Path

SHIPPED_FILE = Path(__file__).parents[2] / "search_space.yaml"
PLAIN_SUFFIX = ".mlir"  # of a script whose knobs are transform.tune ops
TEMPLATE_SUFFIX = ".mlir.j2"
# Files of a strategy in the folder of its name: its template, and its entry as a search-space file
STRATEGY_SCRIPT = f"script{TEMPLATE_SUFFIX}"
STRATEGY_SPACE = "space.yaml"
SCRIPTS = (PLAIN_SUFFIX, TEMPLATE_SUFFIX)  # which --strategy takes in place of a name
OR_SCRIPT = "or the path of a .mlir script"
STRATEGIES = "\nstrategies:\n"  # the line above them
STRATEGY = re.compile(r"^  (\w+):$", re.MULTILINE)


def shipped_strategies() -> tuple[str, ...]:
    """Returns the names of the strategies of the shipped search-space file, in order."""
    _, _, strategies = SHIPPED_FILE.read_text(encoding="utf-8").partition(STRATEGIES)
    return tuple(STRATEGY.findall(strategies))
