"""Fixtures and settings of all tests: time limits, property-test examples, skips, golden files, a store."""

import gc
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

from tests import entry_points
from tests.default_suite import left_out
from tests.postgres_server import server_or_skip
from tests.statement_cache import share_schema, share_statements
from tests.support.stub_driver import NoCompilerError
from tuner.db.store import Store
from tuner.runtime.timing_lock import FOLDER_VARIABLE

# The same examples in each run; the nightly workflow draws others: pytest --hypothesis-profile=random
hypothesis.settings.register_profile("same", deadline=None, max_examples=25, derandomize=True, database=None)
hypothesis.settings.register_profile("random", deadline=None, max_examples=40)
hypothesis.settings.load_profile("same")

# A shell that starts the tests in the background has interrupts ignored, and so would every child.
signal.signal(signal.SIGINT, signal.default_int_handler)

share_statements()
share_schema()
entry_points.refresh()

# Ten thousand collected tests live to the end: looking through them again and again takes seconds.
gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    usual = (item for item in items if item.get_closest_marker("slow") is None)
    marks = {item.nodeid: item.get_closest_marker("drawn") for item in usual}
    rest = left_out({name: None if mark is None else mark.args[0] for name, mark in marks.items()})
    for item in items:
        if item.nodeid in rest:
            item.add_marker("slow")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files instead of comparing")
    parser.addoption("--all-exports", action="store_true", help="compile every PyTorch module of the corpus")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    try:
        return (yield)
    except NoCompilerError as error:
        pytest.skip(str(error))


pytest_runtest_call = pytest_runtest_setup  # a fixture or the test itself may need the compiler


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each process of the tests, with what it starts, waits for no kernel, and reads no code or history."""
    os.environ[FOLDER_VARIABLE] = str(tmp_path_factory.mktemp("locks"))
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("caches"))
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("histories"))


@pytest.fixture(scope="session", autouse=True)
def _no_helpers() -> Iterator[None]:
    """The tests keep all processors busy: one more process to compile in would only take a second to start.

    A run has one compile worker unless a test asks for more, and fusions are compiled in one child.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tuner.core.requests.WORKERS_LIMIT", 1)
        patch.setattr("tuner.models.children.WORKERS_LIMIT", 1)
        yield


@pytest.fixture(autouse=True)
def _own_processors() -> Iterator[None]:
    """A test that times in this process pins it: the next test has all processors again."""
    allowed = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, allowed)


@pytest.fixture(autouse=True)
def _same_draws() -> None:
    """Numbers that torch draws in a test do not depend on the tests that this process ran before."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Returns ``check(name, text)``: compares with the file ``golden/<name>`` next to the test."""
    folder = Path(str(request.path)).parent / "golden"

    def check(name: str, text: str) -> None:
        if request.config.getoption("--update-golden"):
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        assert (folder / name).read_text() == text, "pytest --update-golden takes the new text for right"

    return check


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Gives an empty database in a file; tests of the database itself use both kinds of database."""
    with Store.open(str(tmp_path / "results.db")) as opened:
        yield opened


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Gives the URL of a server that ends with the tests."""
    with server_or_skip() as url:
        yield url
