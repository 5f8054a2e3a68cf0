from collections.abc import Iterator
from pathlib import Path

import pytest

from tuner.db.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "results.db")) as opened:
        yield opened
