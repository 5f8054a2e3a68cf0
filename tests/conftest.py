"""What all tests share: property tests without a deadline, golden files."""

from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("shared_machine", deadline=None)
hypothesis.settings.load_profile("shared_machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files instead of comparing")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Returns ``check(name, text)``: compares with the file ``golden/<name>`` beside the test."""
    folder = Path(str(request.path)).parent / "golden"

    def check(name: str, text: str) -> None:
        if request.config.getoption("--update-golden"):
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        assert (folder / name).read_text() == text, "pytest --update-golden takes the new text for right"

    return check
