"""What the distribution ships, checked in the working tree; CI installs the real wheel outside it."""

import importlib.metadata
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import tuner
from tests.source_files import imports, tree_of
from tuner.core.errors import install_extra
from tuner.models.library.iree.writer import INSTALL
from tuner.models.model_files import NO_TORCH

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRA_PROVIDERS = {"iree": ["iree-base-compiler"], "optuna_dashboard": ["optuna-dashboard"]}
PROVIDERS = EXTRA_PROVIDERS | {
    **{
        name: [name] for name in ("onnx", "onnxruntime", "openvino", "torch", "pandas")
    },  # need not be installed
}
NAME = re.compile(r"[\w.-]+")
EXTRAS = {"": PROJECT["project"]["dependencies"], **PROJECT["project"]["optional-dependencies"]}
REQUIRED = {(extra, NAME.findall(text)[0]) for extra, texts in EXTRAS.items() for text in texts}
GLOBS = PROJECT["tool"]["setuptools"]["package-data"]["tuner"]


@pytest.mark.parametrize("name", ["db", "strategies", "search_space.yaml"])
def test_link_in_the_package_leads_to_the_top_of_the_repository(name: str) -> None:
    link = ROOT / "tuner" / name
    assert link.is_symlink()
    assert str(link.readlink()) == f"../{name}"
    assert link.resolve() == ROOT / name
    assert link.exists()


def test_every_file_that_is_not_python_is_shipped() -> None:
    package = ROOT / "tuner"
    shipped = {path for glob in GLOBS for path in package.glob(glob)}
    folders = [package, *(path for path in package.rglob("*") if path.is_dir()), *_linked_folders(package)]
    files = {path for folder in folders for path in folder.iterdir() if path.is_file()}
    compiled = {path for path in files if path.parent.name == "__pycache__"}  # modules and templates
    assert {path for path in files - compiled if path.suffix != ".py"} == shipped


def _linked_folders(package: Path) -> set[Path]:
    links = [path for path in package.iterdir() if path.is_symlink() and path.is_dir()]
    below = {link / path.relative_to(link.resolve()) for link in links for path in link.resolve().rglob("*")}
    return {*links, *(path for path in below if path.is_dir())}


def test_installed_version_and_command_are_those_of_the_source_and_hints_install_the_extras() -> None:
    assert importlib.metadata.version("mlir-tuner") == tuner.__version__
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="tuner")
    assert command.value == PROJECT["project"]["scripts"]["tuner"]
    assert callable(command.load())
    for extra, hint in (("torch", NO_TORCH), ("iree", INSTALL)):
        assert shlex.split(hint) == ["pip", "install", *EXTRAS[extra]]
    assert f'"{NO_TORCH}"' in (ROOT / "tuner" / "models" / "torch" / "__init__.py").read_text()


def test_an_extra_is_installed_from_the_clone_or_by_its_packages_and_by_no_name_of_the_index(
    tmp_path: Path,
) -> None:
    assert install_extra("cuda") == f"pip install -e '{ROOT}[cuda]'"
    spaced = tmp_path / "a clone"
    spaced.mkdir()
    (spaced / "pyproject.toml").touch()
    assert shlex.split(install_extra("arm", spaced)) == ["pip", "install", "-e", f"{spaced}[arm]"]
    for extra in ("cuda", "fleet", "formats", "arm"):
        packages = shlex.split(install_extra(extra, tmp_path))[2:]
        wanted = [package.partition(";")[0] for package in EXTRAS[extra]]
        assert sorted(map(_name_of, packages)) == sorted(map(_name_of, wanted))
    shown = (*(ROOT / "tuner").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md")
    named = [path for path in shown if re.search(r"pip install[^\n]*\bmlir-tuner\[", path.read_text())]
    assert named == [], "nobody owns that name on the index"


def _name_of(requirement: str) -> str:
    return _normal(re.split(r"[<>=~! \[]", requirement)[0])


def test_every_package_that_is_imported_is_declared_with_its_reason() -> None:
    imported = {
        name.split(".")[0]
        for path in (*(ROOT / "tuner").rglob("*.py"), *(ROOT / "db").rglob("*.py"))
        for name in imports(tree_of(path))
    }
    foreign = imported - sys.stdlib_module_names - {"tuner"}
    declared = {_normal(name) for _extra, name in REQUIRED}
    providers = {**importlib.metadata.packages_distributions(), **PROVIDERS}
    missing = {name for name in foreign if not declared & {_normal(found) for found in providers[name]}}
    assert missing == set()
    reasons = (ROOT / "docs" / "reference" / "dependencies.md").read_text()
    rows = set(re.findall(r"^\| (?:`([\w-]+)` \| )?`([\w-]+)` \| \S", reasons, re.MULTILINE))
    assert rows == REQUIRED


# A clone is called tuner as well, and so is a folder in which others look for a module of that name.

IGNORED = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "tests", "results")
NO_INDEX = re.compile("No matching distribution|Could not find a version|Connection|Temporary failure")


@pytest.mark.slow
@pytest.mark.parametrize("options", [("-e", "."), (".",)], ids=["editable", "wheel"])
def test_the_folder_above_a_clone_called_tuner_does_not_hide_the_package(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """README's command and the Makefile's: an import hook of setuptools came after that folder."""
    for page in ("README.md", "Makefile"):
        assert "pip install -e ." in (ROOT / page).read_text()
    clone, environment = tmp_path / "tuner", tmp_path / "environment"
    shutil.copytree(ROOT, clone, symlinks=True, ignore=IGNORED)
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", *options]
    done = subprocess.run(install, cwd=clone, capture_output=True, text=True, check=False)
    if NO_INDEX.search(done.stderr):
        pytest.skip(f"no index to install setuptools from: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    if options == (".",):
        shutil.rmtree(clone / "tuner")
    extensions = "from tuner.runtime.extensions import extensions; print(*extensions('commands'))"
    program = f"import tuner; print(tuner.Matmul(8, 16, 32).key); {extensions}"
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for folder in (tmp_path, Path("/")):
        done = subprocess.run(
            [python, "-c", program], cwd=folder, env=variables, capture_output=True, text=True, check=False
        )
        assert (done.stdout, done.stderr) == ("matmul 8x16x32 f32 nn none\nfleet library programs\n", "")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
