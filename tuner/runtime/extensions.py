"""Entry points that distributions add to tuner, of the groups GROUPS: targets, samplers, commands and others.

The base of tuner imports none of its extensions (``tests/test_layers.py``). It looks for their names here, in
the same way as for those of other distributions, and imports an extension when it is used.

```toml
[project.entry-points."tuner.samplers"]
near_best = "my_samplers:NearBest"
```

``importlib.metadata`` finds the same entry points, but takes 15 ms to import, more than the start of the
command line can spare. So the files are read here; if tuner's own file is not on ``sys.path``,
``importlib.metadata`` is asked.
"""

import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from tuner.core.errors import DISTRIBUTION, FOLDER, TunerError, UsageError, defect_line, unknown_value

PREFIX: Final = "tuner."  # of the groups of entry points
GROUPS: Final = {  # group, after the prefix -> what its objects are
    "baselines": "a ``BaselineLibrary`` of ``tuner.targets.cpu.baseline_libraries``",
    "commands": "a table of commands, as ``SUMMARIES`` of ``tuner.cli``",
    "formats": "an ``ExportFormat`` of ``tuner.models.library.formats``",
    "models": "a ``ModelReader`` of ``tuner.models.commands.payload_text``",
    "operations": "a function that tunes what ``tuner tune NAME`` is asked for",
    "runners": "a ``RemoteRunners`` of ``tuner.cli.options``",
    "samplers": "an ``AbstractMethod`` of ``tuner.search.method``",
    "targets": "a ``Target`` of ``tuner.targets.target``",
}
METADATA_SUFFIXES: Final = (".dist-info", ".egg-info")
FILE: Final = "entry_points.txt"
BYTES_LIMIT: Final = 1 << 20  # that are read of such a file


@dataclass(frozen=True)
class Extension:
    """An entry point: the name of an object, the distribution that adds it, and where it is imported from."""

    name: str
    distribution: str
    entry_point: str  # "module:object", or "module"

    def load(self) -> Any:
        """Imports the module and returns the object.

        Raises TunerError if the import fails or the object is missing; in tuner's own modules, errors other
        than a missing module or object are raised as they are.
        """
        module, _, attribute = self.entry_point.partition(":")
        try:
            loaded = importlib.import_module(module)
            if attribute:
                return getattr(loaded, attribute)
            return loaded
        except TunerError:
            raise
        except Exception as error:
            if self.distribution == DISTRIBUTION:
                if self._is_of_another_commit(error):
                    line = f"{DISTRIBUTION} was installed from another commit, which had {self.entry_point}"
                    raise UsageError(line, f"pip install -e {FOLDER}") from error
                raise
            what = f"{self.distribution}: cannot load {self.name} from {self.entry_point}"
            line = f"{what}: {type(error).__name__}: {error}"
            raise TunerError(line, f"pip uninstall {self.distribution}") from error

    def _is_of_another_commit(self, error: Exception) -> bool:
        # an editable installation keeps the entry points of its day
        module, _, attribute = self.entry_point.partition(":")
        if isinstance(error, ModuleNotFoundError):
            return error.name is not None and f"{module}.".startswith(f"{error.name}.")
        return isinstance(error, AttributeError) and error.name == attribute

    @property
    def defect_hint(self) -> str:
        """Returns the hint for a defect of the extension: how to see it, and how to work without it."""
        return f"--debug shows where; pip uninstall {self.distribution} removes it"


@contextlib.contextmanager
def failing_in(extension: Extension | None, what: str) -> Iterator[None]:
    """Context manager: an exception of an extension's code becomes a TunerError that names the distribution.

    ``what``: the object, such as "sampler 'mine'". If ``extension`` is None or tuner's own, and for a
    TunerError, the exception is raised as it is.
    """
    try:
        yield
    except TunerError:
        raise
    except (Exception, SystemExit) as error:
        if extension is None or extension.distribution == DISTRIBUTION:
            raise
        line = f"{extension.distribution}: {what}: {defect_line(error)}"
        raise TunerError(line, extension.defect_hint) from error


def extension_in(error: BaseException) -> Extension | None:
    """Returns the extension of another distribution whose code raised ``error``; None if tuner's code did.

    The innermost call in the traceback that is in tuner or in an extension decides. Raises UsageError if
    tuner's own entry points are not found.
    """
    others: dict[str, Extension] = {}  # by package
    for added in entry_points().values():
        for extension in added:
            if extension.distribution != DISTRIBUTION:
                others[extension.entry_point.partition(":")[0].partition(".")[0]] = extension
    innermost = None
    for frame, _line in traceback.walk_tb(error.__traceback__):
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package == PREFIX.rstrip(".") or package in others:
            innermost = others.get(package)
    return innermost


def extensions(group: str, built_in: Collection[str] = ()) -> Mapping[str, Extension]:
    """Returns name -> extension for a group of GROUPS ("samplers", ...), tuner's first; imports none.

    ``built_in``: names that tuner's base defines itself. Raises UsageError if two distributions add the same
    name, if one adds a name of ``built_in``, and if tuner's own entry points are not found.
    """
    by_name: dict[str, Extension] = {}
    for extension in entry_points().get(f"{PREFIX}{group}", ()):
        other = DISTRIBUTION if extension.name in built_in else ""
        if extension.name in by_name:
            other = by_name[extension.name].distribution
        if other:
            line = f"{PREFIX}{group}: {other} and {extension.distribution} both have {extension.name!r}"
            raise UsageError(line, f"pip uninstall {extension.distribution}")
        by_name[extension.name] = extension
    return by_name


def load(group: str, name: str, built_in: Collection[str] = ()) -> Any:
    """Imports and returns the object of the extension ``name`` of a group of GROUPS ("samplers", ...).

    ``built_in``: names that tuner's base defines itself, which are listed in the error. Raises UsageError for
    an unknown name, and if two distributions add the same name; TunerError if the import fails.
    """
    added = extensions(group, built_in)
    if name not in added:
        raise unknown_value(group.removesuffix("s"), name, (*built_in, *added))
    return added[name].load()


@cache
def entry_points() -> Mapping[str, tuple[Extension, ...]]:
    """Returns {group: extensions of the group}; extensions of tuner's own distribution come first.

    Raises UsageError if tuner's own entry points are not found.
    """
    texts = _texts()
    by_group = _parsed(texts) if DISTRIBUTION in texts else _by_importlib()
    if not any(extension.distribution == DISTRIBUTION for added in by_group.values() for extension in added):
        line = f"{DISTRIBUTION} is not installed: {FOLDER} is on the path, and its entry points are not"
        raise UsageError(line, f"pip install -e {FOLDER}")
    return {
        group: tuple(
            sorted(added, key=lambda extension: (extension.distribution != DISTRIBUTION, extension.name))
        )
        for group, added in by_group.items()
    }


def _texts() -> dict[str, str]:
    """Returns {distribution: text of its entry points}; the first on the path counts if it is there twice."""
    texts: dict[str, str] = {}
    for folder in sys.path:
        for name in _metadata_folders(folder or "."):
            distribution = _normal(name.rpartition(".")[0].partition("-")[0])
            if distribution not in texts:
                texts[distribution] = _text(f"{folder or '.'}/{name}/{FILE}")
    return texts


def _metadata_folders(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as files:
            return sorted(file.name for file in files if file.name.endswith(METADATA_SUFFIXES))
    except OSError:  # not a folder, or not there
        return []


def _normal(distribution: str) -> str:
    return distribution.replace("_", "-").replace(".", "-").lower()


def _text(file: str) -> str:
    """Returns the text of a file of entry points; "" if the file is missing or names no group of tuner."""
    try:
        descriptor = os.open(file, os.O_RDONLY)  # a fifth of the time of ``read_text``, for a hundred files
    except OSError:
        return ""
    try:
        content = os.read(descriptor, BYTES_LIMIT)
    finally:
        os.close(descriptor)
    if PREFIX.encode() in content:
        return content.decode(errors="replace")
    return ""


def _parsed(texts: Mapping[str, str]) -> dict[str, list[Extension]]:
    by_group: dict[str, list[Extension]] = {}
    for distribution, text in texts.items():
        if f"[{PREFIX}" in text:
            _add(by_group, distribution, text)
    return by_group


def _add(by_group: dict[str, list[Extension]], distribution: str, text: str) -> None:
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[]")
        elif group.startswith(PREFIX) and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            entry_point = value.partition("[")[0].strip()  # without extras
            by_group.setdefault(group, []).append(Extension(name.strip(), distribution, entry_point))


def _by_importlib() -> dict[str, list[Extension]]:
    import importlib.metadata

    by_group: dict[str, list[Extension]] = {}
    for group in GROUPS:
        for entry in importlib.metadata.entry_points(group=f"{PREFIX}{group}"):
            distribution = "" if entry.dist is None else _normal(entry.dist.name)
            extension = Extension(entry.name, distribution, entry.value)
            by_group.setdefault(f"{PREFIX}{group}", []).append(extension)
    return by_group
