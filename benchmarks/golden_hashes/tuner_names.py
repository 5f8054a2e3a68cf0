"""Every name of the tuner that the golden hashes use: where a name is moved, only this file changes.

A change to the fields of one of these classes shows in ``database.py`` or ``documents.py``.
"""

from tuner.cli import main
from tuner.core.candidate import Candidate, TargetName
from tuner.core.compiled_code import KernelCode, Resources
from tuner.core.device_programs import DeviceOptions, DeviceProgram, LoweringStep
from tuner.core.errors import Failure, Stage
from tuner.core.gpu import chip_of
from tuner.core.interfaces import Artifact, Script
from tuner.core.machine import Machine, gpu_machine, variables_of
from tuner.core.matmul import GroupedMatmul, Matmul
from tuner.core.problem import GROUPED, Problem
from tuner.core.problem_classes import FusedProblem, MatmulProblem
from tuner.core.problem_text import parse_sizes
from tuner.core.queries import TrialQuery
from tuner.core.records import Conditions, GpuState, HostConditions, Measurement, Record, Span, Verdict
from tuner.core.reliability import RELIABLE
from tuner.core.remote_results import (
    TEXT,
    BaselineTime,
    FinalTime,
    MeasuredTrial,
    MeasuringProvenance,
    NoiseFloor,
    PendingTrial,
)
from tuner.core.roofline import Roofline
from tuner.core.round_quality import RoundQuality, TimedRound
from tuner.core.runs import Baseline, ChosenStrategy, Compiler, InitialConfiguration, RunSettings
from tuner.core.serialization import encode
from tuner.db.store import Store
from tuner.elsewhere.bundle.archive import MANIFEST, pack
from tuner.elsewhere.bundle.exchange import choose_pending, import_file
from tuner.elsewhere.bundle.results_file import ResultsFile
from tuner.gpu.target.compiler import GpuCompiler
from tuner.mlir.fingerprint import GPU_WHEELS, packages
from tuner.mlir.fusions.facts import facts_of
from tuner.models.compile_work import lowered
from tuner.models.compiler import ProgramCompiler
from tuner.models.request import ProgramRequest, program_support
from tuner.results.regression.gate import GateEntry, GateFile, gate_file_bytes
from tuner.space.scripts.strategy import Binder, load_strategy
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.registry import real_backends

__all__ = [
    "GPU_WHEELS",
    "GROUPED",
    "MANIFEST",
    "RELIABLE",
    "TEXT",
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
    "FusedProblem",
    "GateEntry",
    "GateFile",
    "GpuCompiler",
    "GpuState",
    "GroupedMatmul",
    "HostConditions",
    "InitialConfiguration",
    "KernelCode",
    "LoweringStep",
    "Machine",
    "Matmul",
    "MatmulProblem",
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
    "facts_of",
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
    "real_backends",
    "variables_of",
]
