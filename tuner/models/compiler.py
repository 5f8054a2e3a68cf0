"""Compiles a payload, as fusions or as a whole, for GPU, simulator or host, and counts its device work.

A ``ProgramCompiler`` compiles for one target and returns a CompiledProgram. Children of
``tuner.models.compile`` call it; nothing here starts a process.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self, cast

from tuner.core.candidate import TargetName
from tuner.core.device_programs import (
    DEFAULTS,
    DEVICE_ATTRIBUTE,
    DeviceOptions,
    DeviceProgram,
    DeviceWork,
    MatmulKernel,
)
from tuner.core.dtypes import IEEE
from tuner.core.errors import CandidateError, Refusal, Stage, UsageError
from tuner.core.fusions import NEW_VALUE
from tuner.core.gpu import chip_of
from tuner.core.interfaces import Script
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.programs import FusionSchedule, Schedules, TunedKernel, no_schedules
from tuner.core.progress import CompileObserver, ignore_compile_event
from tuner.core.text_files import read_text
from tuner.mlir import bindings, transform
from tuner.mlir.effects.runner_signatures import C_INTERFACE
from tuner.mlir.ir.resources import Data, split_payload, without_data
from tuner.mlir.programs.matmuls import problems_of
from tuner.mlir.programs.payload import ProgramPayload
from tuner.models import linked_programs
from tuner.models.fusions.payload import Constants, NotFused, Weight
from tuner.models.fusions.pipeline import FormedText, form_text
from tuner.models.linked_programs import CompileTask, LinkedProgram, PackedWeights
from tuner.models.lowering.constants import attach_data, resident_buffers, take_constants
from tuner.models.lowering.host import lower_host_program
from tuner.models.lowering.read_program import read_program
from tuner.models.request import program_support
from tuner.models.run.program_weights import unpacked_weights
from tuner.models.weight_code import InitCode, InitTask, initialized_parts
from tuner.runtime.compiled_files import LIMIT_BYTES, CompiledFiles, compiled_files
from tuner.runtime.programs.devices import DeviceTarget, device_compiler, device_operations
from tuner.runtime.programs.machine_code import check_host_code
from tuner.targets.backends import Backends
from tuner.targets.cpu.compiler import object_code
from tuner.targets.target import ProgramSupport

if TYPE_CHECKING:
    from tuner.core.problem_classes import TextProblem
    from tuner.models.run.fused_code import FusedImage

# Operations that compute nothing: a program of these alone needs no device
MOVING = frozenset({"linalg.copy", "linalg.fill", "linalg.transpose"})
TOO_DEEP = "its operations depend on each other in a chain that is too long"
MARKS = ("\n", "{")  # substrings of MLIR text that no path contains
# Of a program as a whole, its text and its machine code, both with its constants: an eighth of the folder.
WHOLE_LIMIT_BYTES = LIMIT_BYTES // 8


@dataclass(frozen=True)
class CompiledProgram:
    """A payload with its compiled code.

    A program of fusions on the host has its code in ``image``; ``code`` then has only its types.
    """

    code: DeviceProgram
    problems: tuple[Problem, ...]  # distinct matmuls that a script implements
    image: "FusedImage | None" = None  # the program as fusions, on the host
    why_no_fusions: str = ""  # why a program is not compiled as fusions; "" where that was not asked
    # machine code of a program on the host as a whole; b"": compiled when the program is loaded
    object_code: bytes = b""
    # constants whose data the code's resident memory has, and the code that computes that memory from them
    weights: tuple[Weight, ...] = ()
    init: tuple[InitCode, ...] = ()
    tuned: tuple[TunedKernel, ...] = ()  # matmuls on a device whose scripts stored trials suggest
    given_up: str = ""  # why the scripts of stored trials are not used, where they failed to compile

    @classmethod
    def of_image(cls, image: "FusedImage") -> Self:
        """Returns a program of fusions on the host."""
        return cls(image.code.program, (), image)

    def with_data(self, resources: Mapping[str, Data]) -> Self:
        """Returns the program with the data of its constants, of which it was compiled without any.

        ``resources`` has the data by name. Raises CandidateError where data are missing or do not fit.
        """
        resident = self.code.resident
        numbers = [buffer.weight for buffer in resident if buffer.weight is not None]
        if not numbers:
            return self
        parts = initialized_parts(self.init, Constants(self.weights, resources))
        contents = dict(zip(numbers, unpacked_weights(numbers, parts), strict=True))
        filled = tuple(
            buffer if buffer.weight is None else replace(buffer, content=contents[buffer.weight])
            for buffer in resident
        )
        return replace(self, code=replace(self.code, resident=filled))


@dataclass(frozen=True)
class KernelsInHost:
    """A program in the current MLIR context in which kernel launches compute everything, not lowered yet."""

    payload: "ProgramPayload"
    problems: tuple[Problem, ...]  # distinct matmuls that a script implements
    matmuls: tuple[MatmulKernel, ...]  # matmuls that a single launch computes completely
    tuned: tuple[TunedKernel, ...] = ()  # those whose scripts stored trials suggest
    given_up: str = ""  # why the scripts of stored trials are not used, where they failed
    constants: tuple[Weight, ...] = ()  # the last arguments of the function, whose data the program keeps


@dataclass(frozen=True)
class ProgramCompiler:
    """Compiles MLIR payloads for one machine.

    On a device a matmul without a script gets the best of ``schedules``. Without one it gets an initial
    configuration of a strategy, or becomes loops if no strategy supports it.
    """

    machine: Machine
    support: ProgramSupport
    schedules: Schedules = no_schedules  # of the host's fusions, of a device's matmuls
    math: str = IEEE  # how a device multiplies f32, a key of ``MATH``

    @classmethod
    def of(cls, target: TargetName, backends: Backends) -> Self:
        """Returns the compiler for a target. Raises UsageError if the target cannot run whole programs."""
        support = program_support(target, backends)
        return cls(backends.target(target).machine(target), support)

    def compile(
        self,
        text: str,
        entry: str | None = None,
        scripts: Mapping[Problem, Script] | None = MappingProxyType({}),
        options: DeviceOptions = DEFAULTS,
        *,
        keeps_kernels: bool = False,
        is_checked: bool = False,
        as_fusions: bool = False,
        threads: int = 1,
        has_data: bool = True,
    ) -> CompiledProgram:
        """Compiles one function of a payload.

        Args:
            text: the payload, MLIR text.
            entry: the function to compile; None: ``main``, or the only public function.
            scripts: bound scripts by matmul, others get those of ``schedules`` (on a device) or default
                scripts. None: all become loops.
            options: how device work is issued.
            keeps_kernels: whether the result has the kernels' MLIR and matmuls, for sampled launches.
            is_checked: whether host code asserts that each access is in bounds; not for fusions on the host.
            as_fusions: whether a program without scripts is compiled as fusions where it can be.
            threads: threads that a program of fusions on the host may use.
            has_data: whether memory that stays from call to call has its contents; else ``with_data`` is to
                be called.

        Raises UsageError for a payload that does not parse or is not a valid program, and for a script for a
        matmul that the payload lacks; CandidateError for a payload that does not lower.
        """
        compiled = self._compiled(
            *(text, entry, scripts, options),
            keeps_kernels=keeps_kernels,
            is_checked=is_checked,
            as_fusions=as_fusions,
            threads=threads,
        )
        return compiled.with_data(split_payload(text).resources) if has_data else compiled

    def _compiled(
        self,
        text: str,
        entry: str | None,
        scripts: Mapping[Problem, Script] | None,
        options: DeviceOptions,
        *,
        keeps_kernels: bool,
        is_checked: bool,
        as_fusions: bool,
        threads: int,
    ) -> CompiledProgram:
        with transform.new_context(), bindings.ir.Location.unknown():
            reason = ""
            if as_fusions and scripts is None:
                reason = "its matmuls were asked for as loops"
            elif as_fusions and scripts:
                reason = "scripts of its matmuls are given"
            if as_fusions and keeps_kernels and self.support.has_device:
                reason = "sampled launches are compared with those of a program as a whole"
            if as_fusions and not reason:
                if self.support.has_device:
                    fused = self._compile_device_fusions(text, entry, options, is_checked=is_checked)
                else:
                    fused = self._compile_fusions(text, entry, threads)
                if isinstance(fused, CompiledProgram):
                    return fused
                reason = fused.text
            _require_no_changes(text, reason)
            if not self.support.has_device:
                whole = partial(self._compile_whole, text, entry, scripts, reason, is_checked=is_checked)
                if as_fusions and not is_checked and scripts == {}:
                    return _kept_whole(self._whole_key(without_data(text), entry, reason), whole)
                return whole()
            made = self.kernels(text, entry, scripts, takes_constants=True)
            names = frozenset(matmul.name for matmul in made.matmuls)
            device = device_compiler()
            reference = device.reference_kernels(made.payload.module, names) if keeps_kernels else ""
            code = device.lower(made.payload, self._device_target(options, is_checked=is_checked))
            written = code.written[len(code.written) - len(made.constants) :]
            code = code.with_resident(resident_buffers(made.constants, written))
            code = replace(code, reference=reference, matmuls=made.matmuls if keeps_kernels else ())
            return CompiledProgram(
                code,
                made.problems,
                why_no_fusions=reason,
                weights=made.constants,
                tuned=made.tuned,
                given_up=made.given_up,
            )

    def kernels(
        self,
        text: str,
        entry: str | None,
        scripts: Mapping[Problem, Script] | None,
        *,
        takes_constants: bool = False,
    ) -> KernelsInHost:
        """Parses a payload in the current MLIR context and converts its work to launches of GPU kernels.

        Args:
            text: the payload, MLIR text.
            entry: the function; None: ``main``, or the only public function.
            scripts: bound scripts by matmul, others get those of ``schedules`` or default scripts. None: all
                become loops.
            takes_constants: whether constants become last arguments of the function, on the device, unless
                the program names device memory itself.

        Where a script of ``schedules`` fails, all matmuls get default scripts. Raises UsageError for a
        payload that is not valid, CandidateError for one that cannot be converted.
        """
        payload = _read(text, entry)
        constants: tuple[Weight, ...] = ()
        if takes_constants and not device_operations().names_device_memory(payload.function):
            constants = take_constants(payload.module, payload.function, DEVICE_ATTRIBUTE)
        attach_data(payload.module, payload.resources)
        tuned: dict[Problem, FusionSchedule] = {}
        chosen = self._scripts(problems_of(payload, self.math), scripts, tuned)
        try:
            chip = chip_of(self.machine.chip)
            matmuls = device_compiler().launch_kernels(payload, chosen, chip, self.math)
        except CandidateError as error:
            if not tuned:
                raise
            trials = ", ".join(str(schedule.trial) for schedule in tuned.values())
            plain = replace(self, schedules=no_schedules)
            untuned = plain.kernels(text, entry, scripts, takes_constants=takes_constants)
            return replace(untuned, given_up=f"trial {trials}: {error.reason}")
        return KernelsInHost(payload, tuple(chosen), matmuls, _tuned_kernels(tuned), constants=constants)

    def work_without_fusions(
        self, text: str, entry: str | None, options: DeviceOptions = DEFAULTS
    ) -> "DeviceWork | None":
        """Returns the launches and copied bytes of one call of a payload that is compiled as a whole.

        None where only a call shows the work. Raises UsageError for a payload that is not valid,
        CandidateError for one that cannot be converted to kernels.
        """
        with transform.new_context(), bindings.ir.Location.unknown():
            made = self.kernels(text, entry, {})
            return device_compiler().counted_work(made.payload, chip_of(self.machine.chip), options)

    def _compile_device_fusions(
        self, text: str, entry: str | None, options: DeviceOptions, *, is_checked: bool
    ) -> "CompiledProgram | Refusal":
        used: dict[Problem, None] = {}
        tuned: dict[Problem, FusionSchedule] = {}

        def script_of(problem: Problem) -> Script | None:
            script = self._script(problem, tuned)
            if script is not None:
                used[replace(problem, epilogue="none")] = None
            return script

        target = self._device_target(options, is_checked=is_checked)
        try:
            split = split_payload(text)
            formed = form_text(split.text, entry, keeps_forks=True)  # no fact of data counts for a device
            if isinstance(formed, NotFused):
                return Refusal(formed.reason)
            if all(MOVING.issuperset(fusion.ops) for fusion in formed.program.fusions):
                return Refusal("nothing is computed: the host copies what is copied")
            formed.with_data(split.resources)  # raises where data are missing
            init = InitTask(formed.program.init).compile() if formed.program.init else ()
            code = device_compiler().compile_fusions(formed.program, formed.entry, target, script_of)
        except CandidateError as error:
            # compiled as a whole, it is refused with the same or a better message
            return Refusal(error.reason)
        except RecursionError:
            return Refusal(TOO_DEEP)
        return CompiledProgram(
            code, tuple(used), weights=formed.weights, init=init, tuned=_tuned_kernels(tuned)
        )

    def _device_target(self, options: DeviceOptions, *, is_checked: bool) -> DeviceTarget:
        chip = chip_of(self.machine.chip)
        return DeviceTarget(chip, options, self.support.assembler(chip.name), is_checked, self.math)

    def formed_text(self, text: str, entry: str | None) -> "FormedText | None":
        """Returns a program on the host as fusions; ``text``: the payload without the data of its constants.

        None for a device, and for a program that does not parse or is compiled as a whole.
        """
        if self.support.has_device:
            return None
        try:
            formed = linked_programs.formed_text(text, entry, self.machine)
        except (CandidateError, RecursionError):  # whoever compiles the program as a whole says why
            return None
        return None if isinstance(formed, NotFused) else formed

    def missing_fusions(self, formed: "FormedText", threads: int) -> "tuple[CompileTask, ...]":
        """Returns tasks to compile: the fusions of a program on the host that ``compiled_files`` lacks."""
        return linked_programs.missing_fusions(formed, self.machine, self.schedules, threads)

    def tuned_problems(self, formed: "FormedText", threads: int) -> "tuple[tuple[TextProblem, int], ...]":
        """Returns what the schedules of a program's fusions are stored for: problems with their threads."""
        return linked_programs.tuned_problems(formed, threads)

    def linked_program(self, formed: "FormedText", threads: int) -> "LinkedProgram | None":
        """Compiles a program on the host whose fusions have their facts of data; reads no data of constants.

        Returns None for a program that is compiled as a whole.
        """
        try:
            made = linked_programs.linked_program(formed, self.machine, self.schedules, threads)
        except RecursionError:  # whoever compiles the program as a whole says why
            return None
        return None if isinstance(made, NotFused) else made

    def packed_ahead(
        self, formed: "FormedText", threads: int, constants: Constants, observe: CompileObserver
    ) -> "PackedWeights | None":
        """Packs the weights of a program on the host whose fusions are compiled, before it is linked.

        None where some part is not in ``compiled_files``. ``observe``: called when a weight is packed.
        """
        return linked_programs.packed_ahead(formed, self.machine, self.schedules, threads, constants, observe)

    def kept_program(
        self,
        text: str,
        entry: str | None,
        threads: int,
        resources: Mapping[str, Data],
        observe: CompileObserver = ignore_compile_event,
    ) -> CompiledProgram | None:
        """Returns a program on the host from ``compiled_files``; None if any part of it must be compiled.

        ``text`` is the payload without the data of its constants, which ``resources`` has by name;
        ``observe`` is called when a weight is packed. Also None for a device, and for a payload with an
        error: the caller, which compiles then, reports it.
        """
        if self.support.has_device:
            return None
        try:
            program = linked_programs.kept_program(
                text, entry, self.machine, self.schedules, threads, resources, observe
            )
            if isinstance(program, NotFused):
                key = self._whole_key(text, entry, program.reason)
                whole = cast("CompiledProgram | None", compiled_files().read(key))
                return None if whole is None else whole.with_data(resources)
        except CandidateError:  # whoever compiles the program says why
            return None
        if program is None:
            return None
        return CompiledProgram.of_image(program)

    def _compile_fusions(self, text: str, entry: str | None, threads: int) -> "CompiledProgram | Refusal":
        try:
            image = linked_programs.compile_fusions(text, entry, self.machine, self.schedules, threads)
        except CandidateError as error:
            if error.stage is Stage.BIND:
                # compiled as a whole, it is refused with the same or a better message
                return Refusal(error.reason)
            raise
        except RecursionError:
            return Refusal(TOO_DEEP)
        if isinstance(image, NotFused):
            return Refusal(image.reason)
        return CompiledProgram.of_image(image)

    def _compile_whole(
        self,
        text: str,
        entry: str | None,
        scripts: Mapping[Problem, Script] | None,
        reason: str,
        *,
        is_checked: bool,
    ) -> CompiledProgram:
        payload = _read(text, entry)
        chosen = self._scripts(problems_of(payload), scripts, {})
        constants = take_constants(payload.module, payload.function)
        code = lower_host_program(payload, chosen, is_checked=is_checked, constants=constants)
        return CompiledProgram(code, tuple(chosen), why_no_fusions=reason, weights=constants)

    def _whole_key(self, text: str, entry: str | None, reason: str) -> str:
        """Returns the key, in ``CompiledFiles``, of a program on the host that is compiled as a whole.

        ``text``: the payload without the data of its constants, which its code has only where it writes them.
        """
        return CompiledFiles.key("program as a whole", text, entry, self.machine, reason)

    def _scripts(
        self,
        problems: tuple[Problem, ...],
        scripts: Mapping[Problem, Script] | None,
        tuned: dict[Problem, FusionSchedule],
    ) -> dict[Problem, Script]:
        """Returns a script for each problem that a strategy can implement; other problems become loops.

        Adds to ``tuned`` the problems whose script a stored trial suggests.
        """
        if scripts is None:
            return {}
        unknown = [problem.key for problem in scripts if problem not in problems]
        if unknown:
            names = ", ".join(problem.key for problem in problems) or "none"
            raise UsageError(f"scripts: found {unknown[0]}, allowed matmuls of the payload: {names}")
        chosen = {}
        for problem in problems:
            script = scripts.get(problem) or self._script(problem, tuned)
            if script is not None:
                chosen[problem] = script
        return chosen

    def _script(self, problem: Problem, tuned: dict[Problem, FusionSchedule]) -> Script | None:
        """Returns the script of a matmul.

        Of the best stored trial, added to ``tuned``, else the default script. None for a matmul that no
        strategy supports.
        """
        if self.support.has_device:  # on the host the schedules are those of fusions
            schedule = next(self.schedules(problem, 1), None)
            if schedule is not None:
                tuned[problem] = schedule
                return Script.of(schedule.script)
        from tuner.space.scripts.choice import default_script  # loads jinja2 and YAML

        return default_script(problem, self.machine)


def _tuned_kernels(tuned: Mapping[Problem, FusionSchedule]) -> tuple[TunedKernel, ...]:
    return tuple(
        TunedKernel(replace(problem, epilogue="none"), schedule) for problem, schedule in tuned.items()
    )


def _require_no_changes(text: str, reason: str) -> None:
    """Raises UsageError for a program that writes an argument in place; ``reason``: why it has no fusions."""
    if NEW_VALUE in text:
        because = reason or "fusions are not asked for"
        raise UsageError(
            f"payload: only fusions on the CPU write an argument in place ({NEW_VALUE}): {because}"
        )


def _kept_whole(key: str, compile_program: Callable[[], CompiledProgram]) -> CompiledProgram:
    """Returns the program that ``compiled_files`` has for a key, else a new one with its machine code."""
    program: CompiledProgram | None = compiled_files().read(key)
    if program is not None:
        return program
    compiled = compile_program()
    try:
        made = object_code(compiled.code.llvm, C_INTERFACE + compiled.code.entry)
        check_host_code(compiled.code, is_checked=False, object_code=made)
    except CandidateError:  # the code is compiled when it is loaded, which says why that fails
        return compiled
    compiled = replace(compiled, object_code=made)
    if without_data(compiled.code.llvm) != compiled.code.llvm:  # of constants, which the key does not have
        return compiled
    if len(made) + len(compiled.code.llvm) <= WHOLE_LIMIT_BYTES:
        compiled_files().write(key, compiled)
    return compiled


def problems_in(text: str, entry: str | None) -> tuple[Problem, ...]:
    """Returns the distinct matmuls in a function (None: ``main``, or the only public one) of MLIR text.

    Raises UsageError for text that is not a valid program, CandidateError for an unsupported program.
    """
    with transform.new_context(), bindings.ir.Location.unknown():
        return problems_of(_read(text, entry))


def payload_text(payload: str | Path) -> str:
    """Returns MLIR text: ``payload`` itself if it has a line break or "{", else the content of that file.

    Raises UsageError for an empty payload or an unreadable file.
    """
    if isinstance(payload, str) and any(mark in payload for mark in MARKS):
        return payload
    if not str(payload).strip():
        raise UsageError("payload: is empty; it must be MLIR or the path of a file")
    return read_text(Path(payload), "MLIR text")


def _read(text: str, entry: str | None) -> "ProgramPayload":
    try:
        return read_program(text, entry)
    except CandidateError as error:
        if error.stage is Stage.BIND:
            raise UsageError(error.reason) from error
        raise
