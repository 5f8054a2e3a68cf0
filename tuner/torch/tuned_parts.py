"""Tunes modules of static sizes, and those of a family: parts that share one budget, then are compiled."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from tuner.core.errors import UsageError
from tuner.mlir.ir.resources import mapped_payload
from tuner.programs.compile import compile_on_host
from tuner.programs.dynamic.tuned_sizes import SharedLimits
from tuner.programs.fusion_tuning import tune_text
from tuner.torch.export import ExportedModule, export_module
from tuner.torch.graph_outputs import ChangesTensorsError
from tuner.torch.program import TensorProgram
from tuner.torch.weights import ModuleWeights
from tuner.tuning.events import CampaignObserver


@dataclass(frozen=True)
class TuningOptions:
    """Arguments of ``tuner.torch.tune``; ``name``: the module's, ``limits``: trials and seconds."""

    name: str
    limits: SharedLimits
    seed: int
    workers: int | None
    database: str | Path | None
    threads: int
    observe: CampaignObserver


def tuned_module(
    exported: ExportedModule, options: TuningOptions, weights: ModuleWeights | None = None
) -> TensorProgram:
    """Tunes an exported module, and compiles it with the best schedules.

    Raises UsageError where it has nothing to tune or fails, KeyboardInterrupt where it is interrupted.
    """
    if exported.form.changes.texts:  # timed calls would change them
        raise ChangesTensorsError(exported.form.changes.texts[0])
    with mapped_payload(exported.payload) as text:
        tuned = tune_text(
            text,
            trials=options.limits.trials,
            budget_s=options.limits.budget_s,
            seed=options.seed,
            workers=options.workers,
            database=options.database,
            source=options.name,
            observe=options.observe,
            threads=options.threads,
        )
    if tuned.is_interrupted:
        raise KeyboardInterrupt
    if tuned.failure:
        raise UsageError(f"{options.name}: {tuned.failure}")
    function: Any = compile_on_host(exported.payload, db=tuned.request.database, threads=options.threads)
    program = TensorProgram(function, exported.form, weights)
    program.tuned = tuned
    return program


class TunedParts:
    """Compiles parts of a module; the first ``count`` are tuned, each with an equal share of what is left."""

    def __init__(
        self, options: TuningOptions, count: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Takes the limits of ``count`` parts together; the time begins now."""
        self._options = options
        self._left = count
        self._clock = clock
        self._began_s = clock()
        self._trials = 0

    def __call__(self, module: torch.nn.Module, tensors: tuple[torch.Tensor, ...]) -> TensorProgram:
        """Returns a program of a module for example tensors. Raises UsageError and CandidateError."""
        exported = export_module(module, tensors)
        share = self._share()
        if share is None:
            database = self._options.database
            function: Any = compile_on_host(exported.payload, db=database, threads=self._options.threads)
            return TensorProgram(function, exported.form)
        self._left -= 1
        program = tuned_module(exported, replace(self._options, limits=share))
        if program.tuned is not None and program.tuned.campaign is not None:
            self._trials += program.tuned.campaign.trials
        return program

    def end(self) -> None:
        """Ends the tuning: further parts are compiled with the schedules that are stored."""
        self._left = 0

    def _share(self) -> SharedLimits | None:
        """Returns the limits of the next part.

        None after ``count`` parts, and after the end of the tuning.
        """
        if not self._left:
            return None
        share = self._options.limits.share(self._left, self._trials, self._began_s, self._clock())
        if share.is_over:
            return None
        return share
