"""Tunes modules of static sizes, and those of a family: parts that share one budget, then are compiled."""

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from tuner.core.errors import UsageError
from tuner.mlir.ir.resources import mapped_payload
from tuner.models.dynamic.tuned_sizes import SharedLimits
from tuner.models.fusion_tuning import tune_text
from tuner.models.torch.export import ExportedModule, export_module
from tuner.models.torch.program import TensorProgram, array_of, compiled, require_changeable
from tuner.models.torch.weights import ModuleWeights
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
    exported: ExportedModule,
    options: TuningOptions,
    tensors: Sequence[torch.Tensor],
    weights: ModuleWeights | None = None,
) -> TensorProgram:
    """Tunes an exported module, and compiles it with the best schedules.

    ``tensors``: example inputs. Trials run in children, on random numbers and on copies of integers, which
    may be indices: no tensor of the caller is changed. Raises UsageError where it has nothing to tune or
    fails, KeyboardInterrupt where it is interrupted.
    """
    require_changeable(exported)
    with (
        mapped_payload(exported.payload) as text,
        _integers_in_files((*tensors, *exported.state)) as arguments,
    ):
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
            arguments=arguments,
        )
    if tuned.is_interrupted:
        raise KeyboardInterrupt
    if tuned.failure:
        raise UsageError(f"{options.name}: {tuned.failure}")
    program = compiled(exported, weights, db=tuned.request.database, threads=options.threads)
    program.tuned = tuned
    return program


@contextlib.contextmanager
def _integers_in_files(tensors: Sequence[torch.Tensor]) -> Iterator[tuple[str, ...]]:
    """Context manager: yields options of ``make_arguments`` for the tensors that are not floating-point.

    Random integers would be no indices of a small table. The files last as long as the context.
    """
    with tempfile.TemporaryDirectory(prefix="tuner-arguments-") as folder:
        options = []
        for number, tensor in enumerate(tensors):
            if tensor.is_floating_point():
                continue
            array = array_of(tensor)
            if array.dtype.kind == "u":  # MLIR's integers have no sign, and numpy's arrays of them are signed
                array = array.view(f"i{array.itemsize}")
            path = Path(folder, f"{number}.npy")
            np.save(path, array)
            options.append(f"{number}=@{path}")
        yield tuple(options)


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
            return compiled(exported, db=self._options.database, threads=self._options.threads)
        self._left -= 1
        program = tuned_module(exported, replace(self._options, limits=share), tensors)
        if program.tuned is not None and program.tuned.campaign is not None:
            self._trials += program.tuned.campaign.trials
        return program

    def end(self) -> None:
        """Ends the tuning: further parts are compiled with the schedules that are stored."""
        self._left = 0

    def _share(self) -> SharedLimits | None:
        """Returns the limits of the next part; None if it is not tuned.

        That is so after ``count`` parts, when no time is left, and after ``end``. Of trials each part gets at
        least one.
        """
        if not self._left:
            return None
        share = self._options.limits.share(self._left, self._trials, self._began_s, self._clock())
        if share.is_over:
            return None
        return share
