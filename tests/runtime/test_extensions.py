"""Entry points: as importlib.metadata finds them; refused where two claim a name; one error without any."""

import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tuner
from tuner.core.errors import TunerError, UsageError
from tuner.runtime import extensions
from tuner.runtime.extensions import DISTRIBUTION, GROUPS, load
from tuner.search.samplers import SAMPLERS, require_sampler, sampler_names

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
