"""Entry points: as importlib.metadata finds them; refused where two claim a name; one error without any."""

import importlib
import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tuner
from tuner import cli
from tuner.core.errors import DISTRIBUTION, TunerError, UsageError
from tuner.runtime import extensions
from tuner.runtime.extensions import GROUPS, load
from tuner.search.samplers import SAMPLERS, make_sampler, require_sampler, sampler_names
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace

SOURCES = Path(tuner.__file__).parents[1]  # of the repository, or where the wheel is installed
SAMPLER = "import tuner.search.simple_methods as methods\nclass Mine(methods.RandomRows): pass\n"


@pytest.fixture(autouse=True)
def _entry_points_of_each_test() -> Iterator[None]:
    extensions.entry_points.cache_clear()
    yield
    extensions.entry_points.cache_clear()


def install(folder: Path, name: str, entry_points: str) -> None:
    """Makes what an installation of a distribution leaves in a folder: its metadata."""
    metadata = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(entry_points)


def found(group: str) -> dict[str, tuple[str, str]]:
    return {
        each.name: (each.distribution, each.entry_point) for each in extensions.extensions(group).values()
    }


def test_entry_points_are_those_that_importlib_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(
        tmp_path / "a",
        "Many.Things",
        "[tuner.samplers]\nmine=things:Mine [extra]\n# no = line\n\n[other]\nx = y\n",
    )
    install(tmp_path / "b", "many-things", "[tuner.samplers]\nhidden = things:Hidden\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "a"), str(tmp_path / "b"), "/no/such/folder", *sys.path])
    for group in GROUPS:
        entries = importlib.metadata.entry_points(group=f"tuner.{group}")
        assert {each.name: each.value.partition(" [")[0] for each in entries} == {
            name: entry_point for name, (_, entry_point) in found(group).items()
        }
    assert found("samplers") == {"mine": ("many-things", "things:Mine")}
    assert found("targets")["simulator"][0] == DISTRIBUTION


def test_a_sampler_of_another_distribution_is_imported_when_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "things_of_test.py").write_text(SAMPLER)
    install(tmp_path, "things", "[tuner.samplers]\nmine = things_of_test:Mine\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    require_sampler("mine")
    assert "mine" in sampler_names()
    assert "things_of_test" not in sys.modules
    assert load("samplers", "mine", SAMPLERS).__name__ == "Mine"
    with pytest.raises(UsageError, match=r"^sampler: found 'mime', allowed tpe, .*, mine"):
        load("samplers", "mime", SAMPLERS)


SAMPLERS_OF_TEST = """
import sys
from tuner.search.method import AbstractMethod
class Bad(AbstractMethod):
    def choose(self, rng):
        return self.late() if self.task.pool.order else 0
class Twice(Bad):
    late = lambda self: 0
class Outside(Bad):
    late = lambda self: 99
class Below(Bad):
    late = lambda self: -1
class Nothing(Bad):
    late = lambda self: None
class Text(Bad):
    late = lambda self: "row"
class Raises(Bad):
    late = lambda self: {}["x"]
class Exits(Bad):
    late = lambda self: sys.exit(0)
class Needs(Bad):
    def __init__(self, task, more): pass
def number(task):
    return 3
"""
WRONG_SAMPLERS = {
    "Twice": "ValueError: row 0 was proposed before",
    "Outside": r"ValueError: row: found 99, allowed 0\.\.",
    "Below": r"ValueError: row: found -1, allowed 0\.\.",
    "Nothing": "ValueError: row: found None, allowed an integer",
    "Text": "ValueError: row: found 'row', allowed an integer",
    "Raises": "KeyError: 'x'",
    "Exits": "SystemExit: 0",
    "Needs": "TypeError: .*missing 1 required positional argument",
    "number": "AttributeError: 'int' object has no attribute 'task'",
}


def ask_twice(space: SearchSpace) -> None:
    sampler = make_sampler("mine", FeasibleSet.of((space,)), 0)
    sampler.ask(0)
    sampler.ask(1)


@pytest.mark.parametrize("name", WRONG_SAMPLERS)
def test_a_sampler_that_breaks_its_contract_is_named_with_its_distribution(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wrong_things_of_test.py").write_text(SAMPLERS_OF_TEST)
    install(tmp_path, "things", f"[tuner.samplers]\nmine = wrong_things_of_test:{name}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    knob = Knob("a", (1, 2, 3, 4))
    for space in (SearchSpace("s", (knob,)), SearchSpace("s", (knob,), preferences=(parse("a < 4", "x"),))):
        with pytest.raises(TunerError, match=f"^things: sampler 'mine': {WRONG_SAMPLERS[name]}") as error:
            ask_twice(space)
        assert error.value.hint == "--debug shows where; pip uninstall things removes it"


OPERATION = """
class Wrong:
    @staticmethod
    def tune(form, backends):
        return form.no_such_field
"""


def test_an_operation_that_raises_is_one_line_with_its_distribution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "operation_of_test.py").write_text(OPERATION)
    install(tmp_path, "things", "[tuner.operations]\nwrong = operation_of_test:Wrong\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SystemExit, match="1"):
        cli.main(["tune", "wrong", "3"])
    assert capsys.readouterr().err.split("\n") == [
        "error: things: AttributeError: 'OperationForm' object has no attribute 'no_such_field'",
        "hint: --debug shows where; pip uninstall things removes it",
        "",
    ]


def test_the_innermost_call_says_whose_defect_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import tuner.core.serialization as s\ndef calls(): s.parse_seconds(3)\ndef divides(): 1 // 0\n"
    (tmp_path / "called_of_test.py").write_text(text)
    install(tmp_path, "things", "[tuner.samplers]\nmine = called_of_test:X\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("called_of_test")
    with pytest.raises(ZeroDivisionError, match="by zero") as error:
        module.divides()
    found = extensions.extension_in(error.value)
    assert found is not None
    assert found.distribution == "things"
    with pytest.raises(TypeError, match="expected string") as error_of_tuner:
        module.calls()
    assert extensions.extension_in(error_of_tuner.value) is None


def test_a_name_that_is_there_already_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "first", "[tuner.samplers]\nmine = a:A\n[tuner.targets]\nsimulator = a:A\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(
        UsageError, match=r"^tuner\.targets: mlir-tuner and first both have 'simulator';"
    ) as error:
        extensions.extensions("targets")
    assert error.value.hint == "pip uninstall first"
    with pytest.raises(UsageError, match=r"^tuner\.samplers: mlir-tuner and first both have 'mine';"):
        extensions.extensions("samplers", ("mine",))
    install(tmp_path, "second", "[tuner.samplers]\nmine = b:B\n")
    extensions.entry_points.cache_clear()
    with pytest.raises(UsageError, match=r"^tuner\.samplers: first and second both have 'mine';"):
        extensions.extensions("samplers")


@pytest.mark.parametrize("value", ["no_such_module_of_test:X", "tuner.version:X"])
def test_what_cannot_be_imported_names_its_distribution(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "broken", f"[tuner.samplers]\nmine = {value}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(TunerError, match=rf"^broken: cannot load mine from {value}: ") as error:
        load("samplers", "mine")
    assert error.value.hint == "pip uninstall broken"


@pytest.mark.parametrize("entry_point", ["tuner.targets.registry:GONE", "tuner.no_such_package.module:X"])
def test_entry_points_of_another_commit_are_one_error(entry_point: str) -> None:
    stale = extensions.Extension("old", DISTRIBUTION, entry_point)
    with pytest.raises(
        UsageError, match=f"^mlir-tuner was installed from another commit, which had {entry_point}"
    ):
        stale.load()
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        extensions.Extension("new", DISTRIBUTION, "tests.runtime.needing:X").load()


def test_where_the_path_has_no_metadata_importlib_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = found("targets")
    monkeypatch.setattr(extensions, "_texts", lambda: {"other": "[tuner.targets]\nx = y\n"})
    extensions.entry_points.cache_clear()
    assert found("targets") == expected


UNINSTALLED = """
import sys
from tuner.runtime import extensions
texts = extensions._texts
extensions._texts = lambda: {name: text for name, text in texts().items() if name != "mlir-tuner"}
import importlib.metadata
importlib.metadata.entry_points = lambda group: ()
from tuner.cli import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("command", "is_of_base"),
    [
        ("--help", False),
        pytest.param("run x.mlir", False, marks=pytest.mark.slow),
        pytest.param("targets", False, marks=pytest.mark.slow),
        ("history", True),
        pytest.param("history --bogus", True, marks=pytest.mark.slow),
    ],
)
def test_a_checkout_that_is_not_installed_gives_one_error(
    command: str, is_of_base: bool, tmp_path: Path
) -> None:
    variables = {**os.environ, "PYTHONPATH": str(SOURCES), "XDG_DATA_HOME": str(tmp_path)}
    words = [sys.executable, "-c", UNINSTALLED, *command.split()]
    done = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
    if is_of_base:
        assert "not installed" not in done.stderr
        assert "Traceback" not in done.stderr
        return
    line = f"error: mlir-tuner is not installed: {SOURCES} is on the path, and its entry points are not"
    assert " ".join(done.stderr.split()) == f"{line} hint: pip install -e {SOURCES}"
    assert done.returncode == 2
