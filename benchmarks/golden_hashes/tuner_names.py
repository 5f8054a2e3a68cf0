"""Every name of the tuner that the golden hashes use: where a name is moved, only this file changes.

A change to the fields of one of these classes shows in ``database.py`` or ``documents.py``.
"""

from tuner.bundle.archive import MANIFEST, pack
from tuner.bundle.pack_and_import import choose_pending, import_file
from tuner.bundle.results import ResultsFile
from tuner.cli import main
from tuner.core.candidate import Candidate
from tuner.core.chips import chip_of
from tuner.core.chosen_strategy import ChosenStrategy
from tuner.core.dataclass_json import encode
from tuner.core.device_program import DeviceProgram
from tuner.core.errors import Failure, Stage
from tuner.core.gpu_conditions import Conditions, GpuState, Span
from tuner.core.host_conditions import HostConditions
from tuner.core.kernel_program import KernelProgram, Resources
from tuner.core.machine import Compiler, Machine, Roofline, gpu_machine, variables_of
from tuner.core.pending_trial import PendingTrial
from tuner.core.problem import Problem, parse_sizes
from tuner.core.record import Measurement, Record, Verdict
from tuner.core.remote_results import (
    PTX,
    BaselineTime,
    FinalTime,
    MeasuredTrial,
    MeasuringProvenance,
    NoiseFloor,
)
from tuner.core.runs import Baseline, FirstPoint, RunSettings, TrialQuery
from tuner.core.target import Artifact, Script
from tuner.core.target_name import TargetName
from tuner.core.timing_round import RoundQuality, TimedRound
from tuner.db.store import Store
from tuner.mlir.wheels import packages
from tuner.programs.compiler import ProgramCompiler
from tuner.programs.lower.device_options import DeviceOptions
from tuner.programs.lower.lowering_steps import LoweringStep
from tuner.programs.request import ProgramRequest
from tuner.programs.service import lowered
from tuner.programs.support import program_support
from tuner.regression.gate_file import GateEntry, GateFile, gate_file_bytes
from tuner.scripts.strategy import Binder, load_strategy
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.gpu.compiler import GpuCompiler
from tuner.tuning.parts.real import real_composition

__all__ = [
    "MANIFEST",
    "PTX",
    "Artifact",
    "Baseline",
    "BaselineTime",
    "Binder",
    "Candidate",
    "ChosenStrategy",
    "Compiler",
    "Conditions",
    "CpuCompiler",
    "DeviceOptions",
    "DeviceProgram",
    "Failure",
    "FinalTime",
    "FirstPoint",
    "GateEntry",
    "GateFile",
    "GpuCompiler",
    "GpuState",
    "HostConditions",
    "KernelProgram",
    "LoweringStep",
    "Machine",
    "MeasuredTrial",
    "Measurement",
    "MeasuringProvenance",
    "NoiseFloor",
    "PendingTrial",
    "Problem",
    "ProgramCompiler",
    "ProgramRequest",
    "Record",
    "Resources",
    "ResultsFile",
    "Roofline",
    "RoundQuality",
    "RunSettings",
    "Script",
    "Span",
    "Stage",
    "Store",
    "TargetName",
    "TimedRound",
    "TrialQuery",
    "Verdict",
    "chip_of",
    "choose_pending",
    "encode",
    "gate_file_bytes",
    "gpu_machine",
    "import_file",
    "load_strategy",
    "lowered",
    "main",
    "pack",
    "packages",
    "parse_sizes",
    "program_support",
    "real_composition",
    "variables_of",
]
