"""A strategy, which is a transform script with open knobs, and the binding of candidates to scripts.

``load_strategy`` reads a template or a script; a ``Binder`` fills in the knobs of a candidate.
"""

import contextlib
import functools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, final

import jinja2
import jinja2.sandbox
from jinja2.bccache import Bucket

from tuner.core.candidate import Candidate, Value
from tuner.core.errors import CandidateError, Stage, defect_line, reason_of
from tuner.core.interfaces import Partition, Script
from tuner.core.packings import threads_comment
from tuner.core.problem import Problem
from tuner.core.problem_classes import TextProblem
from tuner.core.runs import ChosenStrategy
from tuner.core.text_files import read_text, replace_file
from tuner.payload.cpu import has_epilogue, zero
from tuner.payload.partitions import partition, partitions_comment
from tuner.space.file.shipped import STRATEGY_SCRIPT, TEMPLATE_SUFFIX
from tuner.space.scripts.guard import guard, guard_name
from tuner.space.scripts.header import within_columns

if TYPE_CHECKING:
    from tuner.space.scripts.schedule import Schedule
AMX_TILE = 16  # rows and columns of an accumulator tile
SCRIPT_LIMIT = 4 * 2**20  # characters of a bound script; a template that writes more is broken
# The selected value of a knob with options: ``transform.tune.knob<"tile_m"> = 4 from options = [2, 4]``
SELECTED = re.compile(r'(transform\.tune\.knob<"[^"]*">) = [^\n]*? from(?= options)')
COMMENTS = re.compile(r"^( +)//(.*)\n(?: +//.*\n)*", re.MULTILINE)  # inside the module, with all their lines
SENTENCE_END = re.compile(r"(?<=\.)\s+")


@dataclass(frozen=True)
class Strategy:
    """A transform script with open knobs: a Jinja2 template, or plain MLIR with ``transform.tune`` ops."""

    name: str
    path: Path
    text: str

    @property
    def is_template(self) -> bool:
        """True if the script is a Jinja2 template; False if its knobs are ``transform.tune`` ops."""
        return self.path.name.endswith(TEMPLATE_SUFFIX)

    @property
    def file_name(self) -> str:
        """Returns the file's name for messages, with the folder that the strategy is named after, if any."""
        if self.path.name == STRATEGY_SCRIPT:
            return f"{self.path.parent.name}/{STRATEGY_SCRIPT}"
        return self.path.name

    @property
    def folder(self) -> Path:
        """Returns the folder whose templates the script can import; shipped strategies share theirs."""
        own = self.path.parent
        if own.parent == strategy_folder():
            return own.parent
        return own


def strategy_folder() -> Path:
    """Returns the folder of the shipped strategies inside the installed package.

    Each has a folder of its name in it; templates that they share lie next to these.
    """
    return Path(str(files("tuner") / "strategies"))


def load_strategy(name: str, path: Path | None = None, *, reopens: bool = False) -> Strategy:
    """Reads the shipped template ``name``, or the script at ``path``. Raises UsageError if it cannot be read.

    ``reopens``: knobs whose value the script selects get all their options again; sentences with numbers are
    removed from its comments.
    """
    source = path or strategy_folder() / name / STRATEGY_SCRIPT
    text = read_text(source, f"the script of strategy {name}", hint="tuner new-strategy NAME writes one")
    if reopens:
        text = COMMENTS.sub(_without_numbers, SELECTED.sub(r"\1", text))
    return Strategy(name, source, text)


def _without_numbers(comments: re.Match[str]) -> str:
    """Returns comment lines without their sentences that have a number: another value may make them wrong."""
    text = " ".join(line.strip().removeprefix("//").strip() for line in comments[0].splitlines())
    kept = [sentence for sentence in SENTENCE_END.split(text) if sentence and not re.search(r"\d", sentence)]
    if kept:
        return f"{comments[1]}// {' '.join(kept)}\n"
    return ""


def load_chosen(chosen: ChosenStrategy) -> Strategy:
    """Reads the script of a strategy that a run tries, linked with its libraries.

    Raises UsageError for a file that cannot be read or linked.
    """
    strategy = load_strategy(chosen.name, chosen.path, reopens=chosen.reopens)
    return replace(strategy, text=linked_text(strategy.text, strategy.path.name, chosen.libraries))


def linked_text(text: str, name: str, libraries: tuple[Path, ...]) -> str:
    """Returns the script ``name`` linked with ``libraries``, so that it needs none of these files.

    Raises UsageError for a file that cannot be read or parsed, and for two sequences of one name.
    """
    if not libraries:
        return text
    linked: str = _schedule_module().with_libraries(text, name, libraries)
    return linked


def _schedule_module() -> ModuleType:
    from tuner.space.scripts import schedule  # loads MLIR

    return schedule


@dataclass(frozen=True)
class Binder:
    """Fills the knob values of candidates into scripts, for one problem, machine and number of threads."""

    strategies: tuple[Strategy, ...]
    problem: Problem
    variables: tuple[tuple[str, Value], ...]  # (name, value) of sizes and device limits, as in constraints
    threads: int

    def bind(self, candidate: Candidate) -> Script:
        """Returns the script of a candidate's strategy with the candidate's knob values filled in.

        Raises CandidateError(BIND) for an unknown strategy, a failing template or a value that the script
        rejects, and UsageError for a plain script that cannot be parsed.
        """
        strategy = next((s for s in self.strategies if s.name == candidate.strategy), None)
        if strategy is None:
            raise CandidateError(Stage.BIND, f"no strategy {candidate.strategy!r} in this run")
        if strategy.is_template:
            text = self._render(strategy, candidate)
        else:
            text = self._schedules[strategy.name].select(candidate)
        threads = self.threads if isinstance(self.problem, TextProblem) else 1
        return Script.of(threads_comment(threads) + text)

    @cached_property
    def _schedules(self) -> "dict[str, Schedule]":
        plain = (strategy for strategy in self.strategies if not strategy.is_template)
        return {
            strategy.name: _schedule_module().Schedule(strategy.text, strategy.path.name)
            for strategy in plain
        }

    def names_for(self, candidate: Candidate) -> dict[str, Any]:
        """Returns the variables of a template for a candidate, name -> value: docs/reference/templates.md.

        ``panels`` describes each function of a partition of C, and the sequence that finds its matmul;
        ``sequences`` and ``sums_sequences`` are the text of these sequences, for a kernel with its epilogue
        and for one that adds up a part of K.
        """
        # threads whose partitions have equal sizes call one function
        partition_of_entry = {part.entry: part for part in self._partitions(candidate)}
        functions = tuple(partition_of_entry.values())
        panels = [
            {"name": part.entry, "m": part.m, "n": part.n, "matmul": guard_name(part)} for part in functions
        ]
        variables = dict(self.variables)
        scheduled = self.problem.scheduled_as
        names: dict[str, Any] = variables | _element_names(scheduled, variables) | dict(candidate.choices)
        if isinstance(self.problem, TextProblem):
            facts = self.problem.facts
            names |= {"extents": list(facts.loops), "rows": list(facts.rows), "reduced": facts.reduced}
        return names | {
            "panels": panels,
            "sequences": "\n".join(guard(scheduled, part) for part in functions),
            "sums_sequences": "\n".join(guard(scheduled, part, has_second_kernel=True) for part in functions),
        }

    def _partitions(self, candidate: Candidate) -> tuple[Partition, ...]:
        """Returns the partitions of C, one per thread; () for a problem that is not scheduled as a matmul."""
        if isinstance(self.problem, TextProblem):
            scheduled = self.problem.scheduled_as
            return () if isinstance(scheduled, TextProblem) else partition(scheduled, 1, "none", 1)
        knobs = dict(candidate.choices)
        return partition(self.problem, self.threads, str(knobs.get("split", "none")), _multiple(knobs))

    def _render(self, strategy: Strategy, candidate: Candidate) -> str:
        try:
            partitions = self._partitions(candidate)
            body = _join(_template(strategy.folder, strategy.text).generate(**self.names_for(candidate)))
        except Exception as error:  # a template is a program: it may raise anything
            said = reason_of(defect_line(error) if isinstance(error, MemoryError) else error)
            reason = said or type(error).__name__
            raise CandidateError(Stage.BIND, f"{strategy.file_name}: {reason}") from error
        header = partitions_comment(partitions) + "\n" if len(partitions) > 1 else ""
        return header + within_columns(body.strip()) + "\n"


def _join(parts: Iterator[str]) -> str:
    body = []
    size = 0
    for part in parts:
        body.append(part)
        size += len(part)
        if size > SCRIPT_LIMIT:
            raise ValueError(f"script of more than {SCRIPT_LIMIT} characters")
    return "".join(body)


def _multiple(knobs: dict[str, Value]) -> int:
    """Returns a number that divides the extents of all partitions but the last, so that no tile is cut.

    Knobs of AMX strategies count accumulator tiles of 16 x 16; knobs of other strategies rows and columns. 1
    for a strategy without such knobs.
    """
    axis = "n" if knobs.get("split") == "n" else "m"
    knob = knobs.get(f"tile_{axis}")
    tiles = knobs.get(f"tiles_{axis}")
    if isinstance(tiles, int):
        return AMX_TILE * tiles
    if isinstance(knob, int):
        return knob
    return 1


def _element_names(problem: Problem, variables: dict[str, Value]) -> dict[str, Value]:
    return {
        "dtype": problem.dtype,
        "accumulator": problem.accumulator,
        "zero_in": zero(problem.stored_dtype),
        "zero_out": zero(problem.accumulator),
        "lanes": int(variables.get("vector_bytes", 16)) // problem.accumulator_bytes,
        "has_epilogue": has_epilogue(problem),
        "output_argument": len(problem.arguments) - 1,
    }


@functools.lru_cache(maxsize=64)
def _template(folder: Path, text: str) -> jinja2.Template:
    return _environment(folder).from_string(text)


@functools.lru_cache(maxsize=8)
def _environment(folder: Path) -> jinja2.Environment:
    """Returns the Jinja2 sandbox of a folder, cached; the folder's strategies share compiled imports.

    An untrusted template has access neither to Python's internals nor to files outside the folder and the
    shipped strategies.
    """
    shipped = strategy_folder()
    kept = None
    if folder == shipped:
        kept = CompiledTemplates(shipped / "__pycache__")
    return jinja2.sandbox.SandboxedEnvironment(
        loader=jinja2.FileSystemLoader([folder, shipped]),
        bytecode_cache=kept,
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # MLIR, not HTML
    )


@final
class CompiledTemplates(jinja2.BytecodeCache):
    """Keeps templates compiled to Python's byte code in a folder: to compile some takes 0.2 s.

    A file holds for one text of a template, one version of Python and of Jinja2. Where files cannot be
    written, or Python is not to write byte code, templates are compiled in each process.
    """

    def __init__(self, folder: Path) -> None:
        """``folder``: next to the templates, where nobody writes who may not change these."""
        self._folder = folder

    def load_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            # of another text, or damaged: the bucket stays empty
            bucket.bytecode_from_string(self._file(bucket).read_bytes())

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        with contextlib.suppress(OSError):
            replace_file(self._file(bucket), bucket.bytecode_to_string())

    def _file(self, bucket: Bucket) -> Path:
        return self._folder / f"{bucket.key}.jinja2-{jinja2.__version__}"
