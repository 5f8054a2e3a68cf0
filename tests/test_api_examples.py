"""The public API is documented in four parts: arguments, result, errors, an example that runs as printed."""

import builtins
import doctest
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tuner
from docs.generators.python_api import RETURNED
from tests.cli.real import brief_remeasurement, real_campaign, real_candidates
from tuner.db.store import Store

FUNCTIONS = {name: found for name in tuner.__all__ if inspect.isfunction(found := getattr(tuner, name))}
CLASSES = {name: found for name in tuner.__all__ if inspect.isclass(found := getattr(tuner, name))}
EXCEPTIONS = {name: found for name, found in CLASSES.items() if issubclass(found, Exception)}
VALUES = {name: found for name, found in CLASSES.items() if name not in EXCEPTIONS}
METHODS = {
    f"{kind.__name__}.{name}": found
    for kind in RETURNED
    for name, found in vars(kind).items()
    if inspect.isfunction(found) and (name == "__call__" or not name.startswith("_"))
}
DOCUMENTED: dict[str, Any] = FUNCTIONS | METHODS | EXCEPTIONS | VALUES


def section(documented: Any, title: str) -> str:
    """Returns the lines below a title of a docstring; "" where there is no such title."""
    text = inspect.getdoc(documented) or ""
    found = re.search(rf"^{title}:\n((?:(?: +.*)?\n)*)", f"{text}\n", re.MULTILINE)
    return "" if found is None else found.group(1).strip("\n")


def parameters(documented: Callable[..., object]) -> list[str]:
    """Returns the names of a function's parameters, without ``self``."""
    return [name for name in inspect.signature(documented).parameters if name != "self"]


def failures_of(name: str) -> str:
    """Runs the example of a public name; returns what was printed in another way than the docstring says."""
    source = inspect.cleandoc(section(DOCUMENTED[name], "Example")) + "\n"
    test = doctest.DocTestParser().get_doctest(source, {}, name, None, 0)
    report = StringIO()
    with redirect_stderr(StringIO()):
        done = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.write)
    assert done.attempted > 0, name
    return report.getvalue()


@pytest.fixture(scope="module")
def failures_of_tune(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Runs the example of ``tune`` on a new database, which the other examples read; gives its failures."""
    backends = real_candidates()
    with pytest.MonkeyPatch.context() as patch, brief_remeasurement():
        patch.setattr("tuner.targets.registry.real_backends", lambda: backends)
        patch.chdir(tmp_path_factory.mktemp("examples"))
        patch.setenv("TUNER_DB", str(Path.cwd() / "results.db"))
        patch.setenv("XDG_CACHE_HOME", str(Path.cwd()))  # of first uses
        frame = SimpleNamespace(DataFrame=lambda columns: [*zip(*columns.values(), strict=True)])
        patch.setitem(sys.modules, "pandas", frame)  # which is optional
        failures = failures_of("tune")
        with Store.open(str(Path.cwd() / "results.db")) as store:
            real_campaign(store, backends, (tuner.Matmul(8, 32, 16), tuner.Matmul(32, 32, 16)))
        yield failures


def test_every_public_name_is_documented_here() -> None:
    problems = {"Matmul", "BatchMatmul"}
    assert problems <= FUNCTIONS.keys()
    assert FUNCTIONS.keys() | EXCEPTIONS.keys() | VALUES.keys() | {"__version__", "matmul"} == set(
        tuner.__all__
    )
    assert type(tuner.matmul) in RETURNED  # whose methods are documented here


@pytest.mark.parametrize("name", [*FUNCTIONS, *METHODS])
def test_a_public_function_has_all_four_parts_and_raises_public_errors(name: str) -> None:
    documented = DOCUMENTED[name]
    named = re.findall(r"^    (\w+): ", section(documented, "Args"), re.MULTILINE)
    assert named == parameters(documented)
    for title in ("Returns", "Raises", "Example"):
        assert section(documented, title), title
    raised = re.findall(r"^    (\w+Error): ", section(documented, "Raises"), re.MULTILINE)
    assert [each for each in raised if each not in EXCEPTIONS and not hasattr(builtins, each)] == []


@pytest.mark.parametrize("name", [*EXCEPTIONS, *VALUES])
def test_a_public_class_has_arguments_and_an_example(name: str) -> None:
    documented = CLASSES[name]
    named = re.findall(r"^    (\w+): ", section(documented, "Args"), re.MULTILINE)
    assert named == parameters(documented.__init__)
    assert section(documented, "Example")


@pytest.mark.parametrize("kind", RETURNED)
def test_a_property_of_what_is_returned_says_what_it_is(kind: type) -> None:
    properties = {name: each.__doc__ for name, each in vars(kind).items() if isinstance(each, property)}
    assert [name for name, doc in properties.items() if not re.match("Returns |True if", doc or "")] == []


def test_an_example_that_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong() -> None:
        """Returns nothing.

        Example:
            >>> 1 + 1
            3
        """

    monkeypatch.setitem(DOCUMENTED, "wrong", wrong)
    assert "Expected:\n    3\nGot:\n    2\n" in failures_of("wrong")


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.parametrize("name", DOCUMENTED)
def test_an_example_runs_as_printed(name: str, failures_of_tune: str) -> None:
    assert (failures_of_tune if name == "tune" else failures_of(name)) == ""
