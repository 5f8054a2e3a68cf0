"""Forms of a command line: its options as frozen values; a form refuses the options of other forms.

For example, ``tuner tune --resume`` is another form than ``tuner tune matmul``.
"""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Self, TypeVar, final

import click

from tuner.cli.options import is_typed, remote_runners, typed_options
from tuner.core.candidate import AUTO, CPU, TargetName
from tuner.core.dtypes import IEEE, dtype_name, dtype_of_math, narrow_output
from tuner.core.errors import UsageError, unknown_value
from tuner.core.matmul import PACKABLE, SCALABLE, Matmul
from tuner.core.problem import (
    MATMUL,
    NUMPY_ALIGNMENT,
    OPERATIONS,
    SCALED,
    SCALES,
    WARM,
    Problem,
    require_choice,
)
from tuner.core.problem_classes import problem_of_values
from tuner.core.problem_text import example_of, parse_extents, parse_shape
from tuner.core.quantization import CONSTANT
from tuner.core.requests import FleetRequest, RunRequest
from tuner.core.serialization import parse_seconds

T = TypeVar("T")
OF_ALL = ("debug",)  # parameters that every command takes and no form has


@final
@dataclass(frozen=True)
class TypedOption:
    """An option or an argument that the user gave on the command line."""

    name: str  # of click's parameter: output_dtype
    text: str  # --output-dtype; of an argument its value


@dataclass(frozen=True)
class CommandForm(ABC):
    """The options of one form of a command line, such as ``tuner tune --shapes FILE``.

    Fields, and the fields of dataclasses in fields, are named as click's parameters.
    """

    typed: tuple[TypedOption, ...]  # all that was typed, in the order of the command's parameters

    @classmethod
    def of(cls, context: click.Context) -> Self:
        """Returns the form with the options of a command line.

        Raises UsageError for an option that does not belong to the form.
        """
        typed = typed_parameters(context)
        own = option_names(cls)
        others = tuple(option for option in typed if option.name not in own)
        if others:
            raise cls.refusal(others)
        return read_options(cls, context, typed=typed)

    @classmethod
    @abstractmethod
    def refusal(cls, others: tuple[TypedOption, ...]) -> UsageError:
        """Returns the error for one or more options that were typed but do not belong to the form."""

    def flag(self, name: str) -> str:
        """Returns the flag that was typed for the parameter ``name``, such as "--no-warm-start"; else ""."""
        return next((option.text for option in self.typed if option.name == name), "")

    @property
    def warm_flag(self) -> str:
        """Returns the first typed flag of the warm-start options (OF_WARM_START); "" if none was typed."""
        return next(filter(None, map(self.flag, OF_WARM_START)), "")


def typed_parameters(context: click.Context) -> tuple[TypedOption, ...]:
    """Returns the options and arguments that the user typed, in the order of the command's parameters."""
    typed = []
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in OF_ALL and is_typed(context, name):
            is_option = isinstance(parameter, click.Option)
            text = parameter.opts[0] if is_option else str(context.params[name])
            typed.append(TypedOption(name, text))
    return tuple(typed)


def option_names(form: type) -> frozenset[str]:
    """Returns the names of a dataclass's fields, with those of the dataclasses in its fields."""
    names: set[str] = set()
    for field in fields(form):
        if isinstance(field.type, type) and is_dataclass(field.type):
            names |= option_names(field.type)
        else:
            names.add(field.name)
    return frozenset(names)


def read_options(form: type[T], context: click.Context, **values: Any) -> T:
    """Returns a dataclass filled with the parameters of a command line.

    Its fields are named as the parameters, or are dataclasses of some of them. A parameter that the command
    does not have gets the default of its field. ``values``: further fields, which are not parameters.
    """
    for field in fields(form):  # type: ignore[arg-type]  # a dataclass
        if isinstance(field.type, type) and is_dataclass(field.type):
            values[field.name] = read_options(field.type, context)
        elif field.name in context.params:
            values[field.name] = context.params[field.name]
    return form(**values)


@final
@dataclass(frozen=True)
class ProblemOptions:
    """The arguments OPERATION and SHAPE, and the options that describe a problem."""

    operation: str | None = None
    shape: str | None = None
    dtype: str = "f32"
    math: str = IEEE
    layout: str = "nn"
    epilogue: str = "none"
    output_dtype: str = ""
    align: str = NUMPY_ALIGNMENT
    cache: str = WARM
    weights: str = ""
    constant: str = ""
    group_size: str = "128"
    scale_dtype: str = "f16"
    zero_points: bool = False
    activations: str = ""
    scales: str = ""

    @property
    def problem(self) -> Problem:
        """Returns the problem that the options describe.

        Raises UsageError for a value that is not allowed. ``operation`` and ``shape`` must be given.
        """
        assert self.operation is not None
        assert self.shape is not None
        name = dtype_of_math(dtype_name(self.dtype), self.math)
        weights = self._weights()
        if self.scales and self.operation not in SCALABLE:
            raise UsageError(f"--scales cannot be combined with {self.operation}", f"allowed is {MATMUL}")
        if self.scales or weights or self.activations or self.zero_points:
            if self.operation not in PACKABLE:
                line = f"--weights cannot be combined with {self.operation}"
                raise UsageError(line, f"allowed is {MATMUL}")
            return Matmul(
                *parse_shape(self.shape),
                dtype=name,
                layout=self.layout,
                epilogue=self.epilogue,
                output=self.output_dtype,
                align=self.align,
                cache=self.cache,
                weights=weights,
                group_size=self.group_size,
                scale_dtype=self.scale_dtype,
                zero_points=self.zero_points,
                activations=self.activations,
                scales=self.scales,
            )
        if self.operation not in OPERATIONS:
            error = unknown_value("operation", self.operation, OPERATIONS)
            hint = error.hint or "other operations are tuned in a program: tuner tune PROGRAM.mlir"
            if self.operation == SCALED:
                hint = f"{MATMUL} {self.shape} --scales {SCALES}"
            raise UsageError(error.message, hint)
        output = narrow_output(name, dtype_name(self.output_dtype))
        options = {
            "dtype": name,
            "layout": self.layout,
            "epilogue": self.epilogue,
            "output": output,
            "align": self.align,
            "cache": self.cache,
        }
        return problem_of_values(self.operation, parse_extents(self.operation, self.shape), options)

    def _weights(self) -> str:
        if not self.constant:
            return self.weights
        require_choice("constant", self.constant, ("b",))
        if self.weights:
            raise UsageError("--constant cannot be combined with --weights, which are constant")
        return CONSTANT

    def required_problem(self, context: click.Context, sizes: str) -> Problem:
        """Returns the problem that the options describe.

        Raises UsageError if operation or shape is missing, and for a value that is not allowed. ``sizes``:
        the shape in the example of the hint, such as "512x512x512".
        """
        if self.operation is not None and self.shape is not None:
            return self.problem
        example = f"{context.command_path} {example_of(self.operation, sizes)}"
        missing = "the shape is"
        if self.operation is None:
            missing = "the operation and the shape are"
        elif re.fullmatch(r"(?:\d+\.\.)?\d+(?:x\d+)+", self.operation):
            missing = "the operation is"
            example = f"{context.command_path} {MATMUL} {self.operation}"
        elif self.operation not in OPERATIONS:
            if Path(self.operation).is_file():
                raise _not_a_program(context, self.operation)
            raise unknown_value("operation", self.operation, OPERATIONS)
        raise UsageError(f"{context.info_name}: {missing} missing", f"{example}{typed_options(context)}")


def _not_a_program(context: click.Context, file: str) -> UsageError:
    """Returns the UsageError for a file, given in place of an operation, that is not named as a program."""
    command = context.command_path
    suffix = Path(file).suffix
    hint = f"a program: {command} FILE.mlir" if context.info_name == "tune" else ""
    if hint and suffix == ".py":
        hint = f"name the function of a PyTorch model: {command} {file}:FUNCTION"
    elif hint and suffix in (".yaml", ".yml"):
        hint = f"{command} --shapes {file}"
    return UsageError(f"operation: found the file {file}, allowed {', '.join(OPERATIONS)}", hint)


@final
@dataclass(frozen=True)
class WarmOptions:
    """The options of a warm start: which earlier results a run begins with."""

    warm_start: bool = True
    warm_files: tuple[Path, ...] = ()
    seeds: tuple[Path, ...] = ()


COLD_START = WarmOptions(warm_start=False)
OF_WARM_START = tuple(field.name for field in fields(WarmOptions))


@final
@dataclass(frozen=True)
class RunOptions:
    """The options of a run, without those of its problem: target, strategies, search, limits."""

    target: str = AUTO
    chip: str = ""
    cpu: str = ""
    threads: int = 1
    strategies: tuple[str, ...] = ()
    reopen: bool = False
    libraries: tuple[Path, ...] = ()
    space: Path | None = None
    sampler: str | None = None
    seed: int = 0
    trials: int | None = None
    budget: str | None = None  # "60s"
    workers: int | None = None
    fresh: bool = False
    baseline: str = ""

    def __post_init__(self) -> None:
        named_target(self.target, self.cpu)

    @property
    def target_text(self) -> str:
        """Returns the target: --target, or with --cpu NAME "cpu:NAME".

        Raises UsageError if they contradict.
        """
        return named_target(self.target, self.cpu)

    def request(self, problem: Problem, warm: WarmOptions = WarmOptions()) -> RunRequest:
        """Returns the request of a new run for a problem.

        Raises UsageError for a budget that is not a time, and for a number that is not allowed.
        """
        same = {name: getattr(self, name) for name in option_names(RunOptions) - {"target", "cpu", "budget"}}
        budget_s = None if self.budget is None else parse_seconds(self.budget)
        return RunRequest(
            problem,
            target=self.target_text,
            budget_s=budget_s,
            warm_start=warm.warm_start,
            warm_files=warm.warm_files,
            seeds=warm.seeds,
            **same,
        )


def named_target(target: str, cpu: str) -> str:
    """Returns the target of the options --target and --cpu: "cpu:NAME" with --cpu.

    Raises UsageError if they name different targets.
    """
    if not cpu:
        return target
    named = TargetName(CPU, cpu)
    parsed = TargetName.parse(target)
    if target != AUTO and not (parsed.is_on_cpu and parsed.detail in ("", cpu)):
        line = f"--cpu {cpu} cannot be combined with --target {target}"
        raise UsageError(line, f"--target {named}")
    return named.text


@final
@dataclass(frozen=True)
class FleetOptions:
    """The options of a fleet.

    Raises UsageError for any other of these options without --fleet, for a single class of --on, and for --on
    with --machine.
    """

    has_fleet: bool = False
    on: str | None = None  # classes of machines: "h200,a100"
    fleet_machine: str | None = None
    devices: int | None = None
    priority: int | None = None

    def __post_init__(self) -> None:
        flags = {"fleet_machine": "--machine", "on": "--on", "devices": "--devices", "priority": "--priority"}
        for name, flag in flags.items():
            if getattr(self, name) is not None and not self.has_fleet:
                raise UsageError(f"{flag} needs --fleet")
        if self.on is not None and len(self.classes) < 2:
            raise UsageError(f"--on: found {self.on!r}, allowed two or more classes of machines: h200,a100")
        if self.on is not None and self.fleet_machine is not None:
            raise UsageError("--machine and --on cannot be combined")

    @property
    def classes(self) -> tuple[str, ...]:
        """Returns the classes of machines that --on names, each once; () without --on."""
        named = (text.strip() for text in (self.on or "").split(","))
        return tuple(dict.fromkeys(filter(None, named)))

    def request(self, database: str | None) -> FleetRequest | None:
        """Returns the request to a fleet; None without --fleet.

        Raises UsageError for a database that is not on a server, and if a package is missing.
        """
        if not self.has_fleet:
            return None
        from tuner.results.database_name import which_database  # not at start-up

        url = which_database(database)
        remote_runners().require_server(url)
        devices = 1 if self.devices is None else self.devices
        machine = self.fleet_machine or ""
        if self.classes:
            machine = self.classes[0]
        return FleetRequest(url, devices, self.priority or 0, self.classes, machine)


@final
@dataclass(frozen=True)
class ResultOptions:
    """The options that say in which database results are stored, and whether they are printed as JSON."""

    database: str | None = None
    as_json: bool = False
