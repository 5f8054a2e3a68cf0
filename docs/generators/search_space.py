"""``search_space.yaml``, the search space that users edit and copy, from the files of the shipped strategies.

``strategies/NAME/space.yaml`` has a strategy's entry, and is a search-space file itself.
"""

from pathlib import Path
from typing import Final

from tuner.space.file.shipped import STRATEGIES, STRATEGY, STRATEGY_SPACE

KEY: Final = STRATEGIES.lstrip()  # the first line of a strategy's file


def search_space(written: str, folder: Path) -> str:
    """Returns the text of ``search_space.yaml``: the head of ``written``, and the entry of each strategy.

    ``written``: the file as it is; its strategies keep their order, and new ones come last. ``folder``: of
    the shipped strategies. Raises ValueError for a strategy's file that does not begin with its entry.
    """
    head, _, listed = written.partition(STRATEGIES)
    names = {path.parent.name for path in folder.glob(f"*/{STRATEGY_SPACE}")}
    known = [name for name in STRATEGY.findall(listed) if name in names]
    entries = [_entry(name, folder) for name in (*known, *sorted(names.difference(known)))]
    return f"{head}{STRATEGIES}" + "\n".join(entries)


def _entry(name: str, folder: Path) -> str:
    text = (folder / name / STRATEGY_SPACE).read_text()
    if not text.startswith(f"{KEY}  {name}:\n"):
        raise ValueError(f"strategies/{name}/{STRATEGY_SPACE}: does not begin with strategies.{name}")
    return text.removeprefix(KEY)
