"""The folder of code that travels to the GPU: machine code of every candidate, and a manifest.

Cubins and inputs are compressed, each in a file named by the hash of its content. The manifest says what each
program is: problem and configuration, launches, buffers, registers, what the cost models predict, the hash of
its PTX. Reading a folder needs no compiler.
"""

import hashlib
import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tuner.core.candidate import Candidate
from tuner.core.compiled_code import KernelBuffer, KernelCode, Launch, Resources
from tuner.core.errors import UsageError
from tuner.core.problem import Problem
from tuner.core.problem_documents import ProblemDocument
from tuner.core.serialization import decode, encode, form, parsed
from tuner.core.text_files import read_text, replace_file

FOLDER = Path(__file__).parents[2] / "build" / "gpu_visit"  # git ignores build/
MANIFEST = "manifest.json"
LIMIT_BYTES = 30 * 2**20  # of what travels
MANIFEST_LIMIT_BYTES = 64 * 2**20
LEVEL = 9  # of compression: once here, to be sent often
PREPARE = "make gpu-visit-prepare"
# Sections of the manifest that are none of a visit's: kernels that compare, points for the sanitizer
COMPARISON, SANITIZED = "comparison", "sanitized"


OPTIONAL_PROBLEM = form(
    ProblemDocument | None,
    lambda problem: None if problem is None else ProblemDocument.of(problem),
    lambda document: None if document is None else document.problem,
)


@dataclass(frozen=True)
class CodeEntry:
    """One program of the folder, or why there is none."""

    section: str
    name: str  # of its check, unique in its section
    key: str  # hash of all that its code is made from
    failure: str = ""
    problem: Problem | None = field(default=None, metadata=OPTIONAL_PROBLEM)
    candidate: Candidate | None = None
    launches: tuple[Launch, ...] = ()
    buffers: tuple[KernelBuffer, ...] = ()
    resources: tuple[Resources, ...] = ()
    code: str = ""  # name of its file
    ptx_sha256: str = ""
    by_knobs: float | None = None  # predicted cycles; None: no model
    by_machine_code: float | None = None
    inputs: tuple[tuple[str, str], ...] = ()  # of a micro-kernel: (buffer, name of its file)
    unit: str = ""  # what a micro-kernel counts
    operations: int = 0  # of that unit


@dataclass(frozen=True)
class Manifest:
    """What a folder contains."""

    chip: str
    ptxas: str
    entries: tuple[CodeEntry, ...]


@dataclass(frozen=True)
class CodeFolder:
    """A folder of compiled code."""

    path: Path
    manifest: Manifest

    @classmethod
    def read(cls, path: Path) -> "CodeFolder":
        """Reads the manifest. Raises UsageError for a folder without one, or with another's."""
        text = read_text(path / MANIFEST, "a folder of compiled code", MANIFEST_LIMIT_BYTES, PREPARE)
        return cls(path, decode(Manifest, parsed(text, MANIFEST), f"{MANIFEST}: "))

    def write(self) -> None:
        """Writes the manifest, whole or not at all."""
        text = json.dumps(encode(self.manifest), indent=0)
        replace_file(self.path / MANIFEST, text.encode())

    def of(self, section: str) -> tuple[CodeEntry, ...]:
        """Returns the entries of a section that have code, in order."""
        return tuple(entry for entry in self.manifest.entries if entry.section == section and entry.code)

    def failures(self, section: str) -> tuple[CodeEntry, ...]:
        """Returns the entries of a section that could not be compiled."""
        return tuple(entry for entry in self.manifest.entries if entry.section == section and entry.failure)

    def named(self, section: str, name: str) -> CodeEntry:
        """Returns an entry with code. Raises UsageError where there is none."""
        for entry in self.of(section):
            if entry.name == name:
                return entry
        raise UsageError(f"{self.path}: found no {name} in {section}", PREPARE)

    def program(self, entry: CodeEntry) -> KernelCode:
        """Returns an entry's program, without its PTX."""
        cubin = self._content(entry.code)
        return KernelCode(self.manifest.chip, "", cubin, entry.launches, entry.buffers, entry.resources)

    def input_words(self, entry: CodeEntry) -> dict[str, "np.typing.NDArray[np.uint32]"]:
        """Returns the inputs of a micro-kernel by the names of their buffers."""
        return {name: np.frombuffer(self._content(file), np.uint32) for name, file in entry.inputs}

    @property
    def files(self) -> tuple[tuple[str, int], ...]:
        """Returns (name, bytes) of each file that travels, the manifest first."""
        names = [MANIFEST]
        for entry in self.manifest.entries:
            names += [entry.code] if entry.code else []
            names += [file for _, file in entry.inputs]
        return tuple((name, (self.path / name).stat().st_size) for name in dict.fromkeys(names))

    @property
    def size_bytes(self) -> int:
        """Returns the bytes of all that travels."""
        return sum(size for _, size in self.files)

    def _content(self, name: str) -> bytes:
        return zlib.decompress((self.path / name).read_bytes())


def store(folder: Path, content: bytes) -> str:
    """Writes content, compressed, to the file of its hash; returns the file's name."""
    name = f"{hashlib.sha256(content).hexdigest()[:24]}.z"
    if not (folder / name).exists():
        replace_file(folder / name, zlib.compress(content, LEVEL))
    return name
