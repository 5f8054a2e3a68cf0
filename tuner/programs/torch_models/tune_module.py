"""``tuner.torch.tune``: tunes the groups of a PyTorch module, then compiles it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from tuner.core.errors import UsageError
from tuner.core.moments import parse_seconds
from tuner.core.typed_arguments import typed_arguments
from tuner.programs.compile import compile_program
from tuner.programs.torch_models.baseline_calls import example_of
from tuner.programs.torch_models.baseline_names import ALL, chosen_baselines
from tuner.programs.torch_models.exported_module import export_module
from tuner.programs.torch_models.tensor_program import TensorProgram
from tuner.programs.torch_models.timed_baselines import timed_baselines
from tuner.programs.torch_models.weight_contents import ModuleWeights
from tuner.programs.tune_program import store_result, tune_text
from tuner.tuning.many_shapes.group_events import GroupObserver, ignore_group


@typed_arguments
def tune(
    module: torch.nn.Module | torch.export.ExportedProgram,
    arguments: tuple[Any, ...] = (),
    keywords: Mapping[str, Any] | None = None,
    *,
    trials: int | None = None,
    budget: float | str | None = None,
    seed: int = 0,
    workers: int | None = None,
    baseline: str = ALL,
    db: str | Path | None = None,
    observe: GroupObserver = ignore_group,
    threads: int = 1,
) -> TensorProgram:
    """Tunes a module for the shapes and types of example inputs, on this processor; returns the program.

    The distinct groups of operations of the module share one budget. Their trials are stored, so that
    ``tuner.torch.compile`` finds the schedules later, and other modules profit from them. Weights are timed
    as they are in a model: evicted from the second level of cache.

    Args:
        module: a module, in ``eval`` mode where that matters, or a program of ``torch.export.export``.
        arguments: example inputs, a tuple; () of an exported program.
        keywords: example keyword inputs.
        trials: candidates of all groups together; where neither ``trials`` nor ``budget`` is given, 8 for
            each distinct group.
        budget: time of the search, in seconds or as "10m".
        seed: seed of the order of trials and of random inputs.
        workers: candidates compiled at once; None: the cores, at most 4.
        baseline: what runs the module next to the program, interleaved, at the end: "all", "eager",
            "torch.compile" (with eager) or "none". Compiling by torch.compile takes a minute or so.
        db: path or URL of the results database; None: the default one.
        observe: called with each event of the tuning (``tuner.tuning.many_shapes.group_events``).
        threads: that the program runs on, 1 to 256; its groups are tuned on one thread each.

    Returns:
        The program, which is called like the module; ``program.tuned`` has the times of its groups, the gain
        over the untuned program, and ``baselines``: how many times as fast it is as eager and torch.compile,
        or why no ratio may be printed.

    Raises:
        UsageError: torch.export or torch-mlir refuses the module, it has no groups to tune, or an argument is
            wrong.
        KeyboardInterrupt: the tuning was interrupted; its trials are stored, and ``tuner tune --resume
            group:N`` goes on.

    Example:
        >>> import torch
        >>> import tuner.torch
        >>> module = torch.nn.Linear(64, 32).eval()
        >>> x = torch.ones(16, 64)
        >>> program = tuner.torch.tune(module, (x,), trials=2, baseline="eager")
        >>> torch.allclose(program(x), module(x), atol=1e-5)
        True
        >>> [each.group.origin for each in program.tuned.groups]
        ['tuned']
        >>> [(each.name, each.call_s.median > 0) for each in program.tuned.baselines]
        [('eager', True)]
    """
    names = chosen_baselines(baseline)
    exported = export_module(module, arguments, keywords)
    weights = ModuleWeights(module)
    name = type(module).__name__
    tuned = tune_text(
        exported.text,
        trials=trials,
        budget_s=parse_seconds(budget) if isinstance(budget, str) else budget,
        seed=seed,
        workers=workers,
        database=db,
        source=name,
        observe=observe,
        threads=threads,
    )
    if tuned.is_interrupted:
        raise KeyboardInterrupt
    if tuned.failure:
        raise UsageError(f"{name}: {tuned.failure}")
    function: Any = compile_program(exported.text, target="cpu", db=tuned.request.database, threads=threads)
    program = TensorProgram(function, exported, weights)
    example = example_of(module, arguments, keywords or {})
    program.tuned = replace(tuned, baselines=timed_baselines(program, example, names, threads))
    store_result(program.tuned)
    return program
