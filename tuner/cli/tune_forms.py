"""The forms of ``tuner tune``: an operation, a program, a file of problems, a resumed run or campaign.

``form_of`` reads the command line as one of the forms; ``tuner.cli.tuned`` does the work.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, final

import click

from tuner.analysis.row_ranges import RowRange
from tuner.cli.forms import (
    CommandForm,
    FleetOptions,
    ProblemOptions,
    ResultOptions,
    RunOptions,
    TypedOption,
    WarmOptions,
)
from tuner.cli.options import OF_ONE_PROBLEM, SUFFIX, CampaignNumber, is_payload, typed_options
from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError, unknown_strategy
from tuner.core.problem import OPERATIONS
from tuner.core.problem_text import parse_row_range
from tuner.core.text_files import read_text
from tuner.runtime.extensions import extensions
from tuner.search.samplers import require_sampler
from tuner.space.file.shipped import OR_SCRIPT, SCRIPTS, shipped_strategies
from tuner.targets.backends import resolve_target

if TYPE_CHECKING:
    from tuner.targets.backends import Backends

EXAMPLE_SIZES = "512x512x512"


def form_of(context: click.Context) -> "TuneForm":
    """Returns the form of a command line of ``tuner tune``.

    Raises UsageError for an option of another form, and for a value that no run can have; it asks no target.
    """
    params = context.params
    if params["shapes"] is not None:
        return ShapesForm.of(context)
    if isinstance(params["resume"], CampaignNumber):
        return ResumedCampaign.of(context)
    if params["resume"] is not None:
        return ResumedRun.of(context)
    if is_payload(params["operation"]):
        program = ProgramForm.of(context)
        program.require_file()
        return program
    form = OperationForm.of(context)
    form.require_values(context)
    return form


@final
@dataclass(frozen=True)
class OperationForm(CommandForm):
    """``tuner tune matmul 512x512x512``, with or without --strategy, which also takes a user's script."""

    problem: ProblemOptions
    run: RunOptions
    warm: WarmOptions
    fleet: FleetOptions
    result: ResultOptions

    @property
    def row_range(self) -> RowRange:
        """Returns the range of rows of a shape such as 1..4096x512x128.

        ``problem.shape`` must have that form. Raises UsageError for a problem without ranges.
        """
        found = parse_row_range(self.problem.shape or "")
        assert found is not None
        least, greatest_shape = found
        return RowRange(replace(self.problem, shape=greatest_shape).problem, least)

    def require_values(self, context: click.Context) -> None:
        """Raises UsageError for a problem or a setting of the search that no run can have.

        Does nothing for a range of rows, and for an extension's operation: these are checked later.
        """
        if not self._has_one_problem:
            return
        problem = self.problem.required_problem(context, EXAMPLE_SIZES)
        if self.run.sampler is not None:
            require_sampler(self.run.sampler)
        if self.run.space is None:
            _require_strategies(self.run.strategies)
        if self.run.trials != 0:  # 0 searches nothing
            self.run.request(problem)

    def require_target(self, backends: "Backends") -> None:
        """Raises UsageError for a target that this machine lacks, or a baseline that the target cannot use.

        Does nothing with --fleet, for a recording, and for a range of rows: these are checked later.
        """
        is_recording = not TargetName.parse(self.run.target_text).has_machine
        if self.fleet.has_fleet or is_recording or not self._has_one_problem:
            return
        target = resolve_target(self.run.target_text, backends, self.run.chip)
        backends.target(target).require_baseline(self.run.baseline, self.problem.problem)

    @property
    def _has_one_problem(self) -> bool:
        """Returns whether the shape names one problem.

        It is not a range, nor an extension's, which reads it itself.
        """
        name = self.problem.operation
        is_added = name is not None and name not in OPERATIONS and name in extensions("operations")
        return not is_added and parse_row_range(self.problem.shape or "") is None

    @classmethod
    def refusal(cls, others: tuple[TypedOption, ...]) -> UsageError:
        for option in others:
            if option.name == "retime":
                return _needs_run()
        line = f"{others[0].text} needs a program: a file of MLIR in place of an operation and a shape"
        options = typed_options(click.get_current_context(), (*OF_ONE_PROBLEM, "threads"))
        return UsageError(line, f"tuner tune payload.mlir{options}")


def _require_strategies(options: tuple[str, ...]) -> None:
    """Raises UsageError for a value of --strategy that is neither a shipped strategy nor a script."""
    names = shipped_strategies()
    for option in options:
        if option not in names and not option.endswith(SCRIPTS):
            raise unknown_strategy("strategy", option, names, OR_SCRIPT)


@final
@dataclass(frozen=True)
class ProgramForm(CommandForm):
    """``tuner tune program.mlir``: the types of its problems come from the file."""

    operation: str  # path of the file, or model.py:function
    math: str
    cache: str
    entry: str | None
    arguments: tuple[str, ...]
    sizes: str | None  # the range of the program's dynamic size: 1..4096
    run: RunOptions
    warm: WarmOptions
    fleet: FleetOptions
    result: ResultOptions

    def __post_init__(self) -> None:
        if self.fleet.has_fleet:
            raise UsageError(
                f"--fleet cannot be combined with {self.operation}: programs run on this machine"
            )

    def require_file(self) -> None:
        """Raises UsageError if an MLIR file is missing. A PyTorch model is not checked here."""
        file = Path(self.operation)
        if file.suffix == SUFFIX and not file.exists():
            read_text(file, "MLIR text")

    @classmethod
    def refusal(cls, others: tuple[TypedOption, ...]) -> UsageError:
        for option in others:
            if option.name == "retime":
                return _needs_run()
        return cls.of_types(others[0].text)

    @staticmethod
    def of_types(typed: str) -> UsageError:
        """Returns the error for an option that gives a type or size, which the program's file determines."""
        return UsageError(f"tune: {typed} cannot be combined with a program: its types come from the file")


@final
@dataclass(frozen=True)
class ShapesForm(CommandForm):
    """``tuner tune --shapes FILE``: a campaign, many problems under one budget."""

    shapes: Path
    run: RunOptions
    fleet: FleetOptions
    result: ResultOptions

    def __post_init__(self) -> None:
        require_one_class("--shapes", self.fleet)

    @classmethod
    def refusal(cls, others: tuple[TypedOption, ...]) -> UsageError:
        names = tuple(option.name for option in others)
        if "resume" in names:
            line = "--resume cannot be combined with --shapes: a campaign has its stored problems"
            return UsageError(line)
        if "retime" in names:
            return _not_retimed("--shapes")
        if "operation" in names:
            operation = others[names.index("operation")].text
            return UsageError(f"--shapes cannot be combined with {operation}: the file has the problems")
        why = ": each problem of the file has its own" if names[0] in OF_ONE_PROBLEM else ""
        typed = ", ".join(option.text for option in others)
        return UsageError(f"--shapes cannot be combined with {typed}{why}")


@final
@dataclass(frozen=True)
class ResumedRun(CommandForm):
    """``tuner tune --resume 3``: a run goes on by its stored settings."""

    resume: int
    retime: bool
    trials: int | None
    budget: str | None
    fleet: FleetOptions
    result: ResultOptions

    @classmethod
    def refusal(cls, others: tuple[TypedOption, ...]) -> UsageError:
        return resumed_refusal(others)


@final
@dataclass(frozen=True)
class ResumedCampaign(CommandForm):
    """``tuner tune --resume campaign:3``: a campaign goes on by its stored settings."""

    resume: int
    trials: int | None
    budget: str | None
    fleet: FleetOptions
    result: ResultOptions

    def __post_init__(self) -> None:
        require_one_class(f"--resume campaign:{self.resume}", self.fleet)

    @classmethod
    def refusal(cls, others: tuple[TypedOption, ...]) -> UsageError:
        for option in others:
            if option.name == "retime":
                campaign = click.get_current_context().params["resume"]
                return _not_retimed(f"--resume campaign:{campaign}")
        return resumed_refusal(others)


TuneForm = OperationForm | ProgramForm | ShapesForm | ResumedRun | ResumedCampaign


def resumed_refusal(others: tuple[TypedOption, ...]) -> UsageError:
    """Returns the error for options that cannot be combined with --resume."""
    flags = [option.text for option in others if option.text.startswith("--")]
    typed = ", ".join(flags) or others[0].text
    return UsageError(f"--resume cannot be combined with {typed}: the run has its stored settings")


def _needs_run() -> UsageError:
    return UsageError("--retime needs a run", "--resume RUN")


def require_one_class(campaign: str, fleet: FleetOptions) -> None:
    """Raises UsageError for --on with a campaign, which is measured on one class of machine.

    ``campaign``: the option or argument that makes the command a campaign; the message begins with this text.
    """
    if fleet.on is not None:
        line = f"{campaign} cannot be combined with --on: a campaign is measured on one class of machine"
        raise UsageError(line, "tuner tune --shapes FILE --fleet --machine NAME")


def _not_retimed(campaign: str) -> UsageError:
    line = f"{campaign} cannot be combined with --retime, which times one run again"
    return UsageError(line, "tuner tune --resume RUN --retime")
