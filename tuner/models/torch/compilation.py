"""``tuner.torch.compile``, ``load`` and ``tune``: PyTorch modules as programs on this processor.

Each exports the module (``export``) and returns a TensorProgram: of one program, of parts where an operator
is not supported (``partition``), or of a family of programs for a dynamic size.
"""

import contextlib
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from tuner.core.errors import UsageError
from tuner.core.fusions import TensorType
from tuner.core.programs import (
    ALL,
    EAGER,
    NONE,
    ExplainedFusion,
    ProgramBaseline,
    chosen_baselines,
    given_up_note,
    loops_note,
)
from tuner.core.serialization import parse_seconds
from tuner.core.typed_arguments import typed_arguments
from tuner.models.compile import children_in_background
from tuner.models.dynamic.tuned_sizes import SharedLimits
from tuner.models.fusion_tuning import ProgramBudget, store_result
from tuner.models.run.fused_program import FusedFunction
from tuner.models.run.host_function import HostFunction
from tuner.models.run.loading import load as load_arrays
from tuner.models.run.sized_function import SizedFunction
from tuner.models.run.sized_types import SizedType
from tuner.models.torch.baselines import Example, example_of, timed_baselines
from tuner.models.torch.call_binding import signature_of_tensors
from tuner.models.torch.call_form import CallForm, Output
from tuner.models.torch.eager_parts import EagerComparison, compared_with_eager, compiled_part, with_fallback
from tuner.models.torch.export import export_module
from tuner.models.torch.graph_outputs import ChangesTensorsError
from tuner.models.torch.parted_function import PartedFunction
from tuner.models.torch.partition import Compiled, partitioned
from tuner.models.torch.program import TensorProgram, compiled, torch_type
from tuner.models.torch.refusals import RefusedOperatorsError
from tuner.models.torch.released_weights import release_weights as empty_weights
from tuner.models.torch.released_weights import require_weights
from tuner.models.torch.sized_modules import parts_of, save_module, tuned_sizes
from tuner.models.torch.tuned_parts import TunedParts, TuningOptions, tuned_module
from tuner.models.torch.weights import ModuleWeights
from tuner.results.output.campaign_progress import campaign_progress
from tuner.results.output.program_tables import losses
from tuner.tuning.events import CampaignObserver, both_observers, ignore_campaign

KEPT_WEIGHTS = "keeps its weights: operators run in PyTorch, which reads them"
DYNAMIC = "nothing of the module is compiled: all of its sizes are dynamic"


@typed_arguments
def compile(  # noqa: A001 - as torch.compile
    module: torch.nn.Module | torch.export.ExportedProgram,
    arguments: tuple[Any, ...] = (),
    keywords: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Mapping[str, Any] | Sequence[Any] | None = None,
    sizes: Sequence[int] = (),
    db: str | Path | None = None,
    threads: int = 1,
    fallback: str = NONE,
    release_weights: bool = False,
) -> TensorProgram:
    """Compiles a module for the shapes and types of example inputs; nothing is tuned.

    The module is traced without gradients, by torch.export. Its weights are copied, packed as the schedules
    read them: the module and its ``state_dict`` stay as they are, and ``stale()`` says whether they have
    changed.

    Args:
        module: a module, in ``eval`` mode where that matters, or a program of ``torch.export.export``.
        arguments: example inputs, a tuple; () of an exported program.
        keywords: example keyword inputs.
        dynamic_shapes: a size that changes from call to call, as of ``torch.export.export``:
            ``({0: torch.export.Dim("t", min=1, max=4096)},)``. A call uses the program of the next size of a
            ladder, four for each doubling, which is compiled when a call first needs it.
        sizes: of the dynamic size, whose programs are compiled at once, next to that of the example.
        db: path or URL of a results database, whose best trials schedule the fusions; None:
            that of ``TUNER_DB``, else the user's own, if there is one.
        threads: that the program runs on, 1 to 256, whatever ``torch.set_num_threads`` was given.
        fallback: "eager" runs operators in PyTorch that are not supported; if all are, those whose fusions
            are slower than PyTorch by more than noise, if that makes a call faster: each large fusion is
            timed, which takes some seconds. "none": no.
        release_weights: whether the module's parameters and buffers become empty, so that weights are in
            memory once; buffers that calls change stay. The module then refuses calls, ``state_dict`` and
            loading, and ``stale()`` is (). A module that keeps operators in PyTorch keeps its weights, and a
            warning says so.

    Returns:
        The program, which is called like the module. A warning says which operations are scalar loops where
        these are estimated to take more than a tenth of the time, which schedules did not compile, why a
        program has no fusions and is compiled as a whole, and which operators run in PyTorch; a program with
        such operators is not exported.

    Raises:
        UsageError: torch.export or torch-mlir refuses the module, or an argument is wrong.
        CandidateError: the program cannot be compiled.

    Example:
        >>> import torch
        >>> import tuner.torch
        >>> module = torch.nn.Linear(4, 2).eval()
        >>> program = tuner.torch.compile(module, (torch.ones(3, 4),))
        >>> torch.allclose(program(torch.ones(3, 4)), module(torch.ones(3, 4)), atol=1e-6)
        True
    """
    _require_fallback(fallback)
    _require_releasable(module, dynamic_shapes, release_weights=release_weights)
    part = partial(compiled_part, db=db, threads=threads)
    split = partial(_partitioned, module, arguments, keywords or {}, compiled=part, fallback=fallback)
    _require_sizes(module, dynamic_shapes, sizes)
    if dynamic_shapes is not None:
        program, note = split(UsageError(DYNAMIC), dynamic_shapes=dynamic_shapes, sizes=sizes)
        _warn(module, [note])
        return program
    try:
        with children_in_background() as start_helpers:
            exported = export_module(module, arguments, keywords, on_new=start_helpers)
            weights = ModuleWeights(module, exported.form.changes.buffers)
            program = compiled(exported, weights, db=db, threads=threads)
    except (RefusedOperatorsError, ChangesTensorsError) as refusal:
        if fallback != EAGER and isinstance(refusal, RefusedOperatorsError):
            raise
        program, note = split(refusal)
        _warn(module, [note, KEPT_WEIGHTS if release_weights else ""])
        return program
    function = program.function
    del exported  # which has the weights
    notes = []
    if isinstance(function, FusedFunction):
        notes.append(given_up_note(function.code.fusions))
        notes.append(loops_note(list(map(ExplainedFusion, function.code.fusions))))
    if fallback == EAGER and not program.is_changing:  # a comparison would change the module's tensors
        found = compared_with_eager(module, example_of(module, arguments, keywords or {}), program)
        program, note = with_fallback(program, found, db, threads)
        notes.append(note)
    if isinstance(program.function, HostFunction):  # not where operators were left to PyTorch
        notes.append(f"compiled as a whole, without schedules: {program.why_no_fusions}")
    if release_weights:
        notes.append(_released(module, program))
    _warn(module, notes)
    return program


def _released(module: Any, program: TensorProgram) -> str:
    """Releases the weights of a compiled module; returns a line that says why they are kept, "" if not."""
    if isinstance(program.function, PartedFunction):
        return KEPT_WEIGHTS
    program.forget_weights()
    empty_weights(module, program.changed_buffers)
    return ""


def _require_releasable(module: Any, dynamic_shapes: object, *, release_weights: bool) -> None:
    """Raises UsageError for a module whose weights were released, and for one whose weights cannot be."""
    require_weights(module)
    if release_weights and isinstance(module, torch.export.ExportedProgram):
        raise UsageError("release_weights: found with an exported program, allowed with a module")
    if release_weights and dynamic_shapes is not None:
        line = "release_weights cannot be combined with dynamic_shapes"
        raise UsageError(f"{line}: programs of other sizes are compiled from the weights later")


def _partitioned(
    module: torch.nn.Module | torch.export.ExportedProgram,
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
    refusal: UsageError,
    *,
    compiled: Compiled,
    fallback: str,
    dynamic_shapes: Mapping[str, Any] | Sequence[Any] | None = None,
    sizes: Sequence[int] = (),
) -> tuple[TensorProgram, str]:
    """Returns a program in parts, and a line that names the operators that run by PyTorch, "" if none do.

    ``refusal``: why the module as a whole was not compiled; raised if no part is left to compile.
    """
    partition = partitioned(
        module,
        arguments,
        keywords,
        refusal,
        compiled,
        is_all_supported=fallback != EAGER,
        dynamic_shapes=dynamic_shapes,
        sizes=sizes,
    )
    weights = ModuleWeights(module, partition.function.changed_buffers)
    note = f"in PyTorch: {partition.text}" if partition.text else ""
    save = None
    if dynamic_shapes is not None:
        save = partial(save_module, partition.function)
    return TensorProgram(partition.function, partition.form, weights, save), note


def _require_fallback(fallback: str) -> None:
    if fallback not in (NONE, EAGER):
        raise UsageError(f"fallback: found {fallback!r}, allowed {NONE}, {EAGER}")


def _require_sizes(module: Any, dynamic_shapes: object, sizes: Sequence[int]) -> None:
    if dynamic_shapes is not None and isinstance(module, torch.export.ExportedProgram):
        raise UsageError("dynamic_shapes: found with an exported program, allowed with a module")
    if dynamic_shapes is None and sizes:
        raise UsageError("sizes: found without dynamic_shapes, which says which size is dynamic")


def _warn(module: Any, notes: Sequence[str]) -> None:
    for note in filter(None, notes):  # 4: the caller of ``compile`` or ``tune``, in ``typed_arguments``
        warnings.warn(f"{type(module).__name__}: {note}", stacklevel=4)


@typed_arguments
def load(folder: str | Path) -> TensorProgram:
    """Loads an exported program, for tensors.

    Args:
        folder: path of the folder that ``program.export(folder)`` wrote.

    Returns:
        The program; it takes the tensors that the module takes, one after the other, and returns a tensor, or
        a tuple of several.

    Raises:
        UsageError: the folder has no program, a file was changed, or this processor lacks instructions.

    Example:
        >>> import tempfile
        >>> import torch
        >>> import tuner.torch
        >>> x = torch.ones(3, 4)
        >>> program = tuner.torch.compile(torch.nn.Linear(4, 2).eval(), (x,))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     program.export(f"{folder}/linear")
        ...     loaded = tuner.torch.load(f"{folder}/linear")
        >>> torch.equal(loaded(x), program(x))
        True
    """
    function = load_arrays(folder)
    if isinstance(function, SizedFunction):
        if function.sizes.is_of_two:
            raise UsageError(f"{folder}: has two dynamic sizes, allowed one with tensors", "tuner.load")
        signature = function.signature
        form = _flat(signature.arguments, signature.results)
        return TensorProgram(parts_of(function), form, save=function.export)
    return TensorProgram(function, _flat(function.code.arguments, function.code.results))


def _flat(arguments: Sequence[TensorType | SizedType], results: Sequence[TensorType | SizedType]) -> CallForm:
    """Returns how a loaded program is called: tensors one after the other, for one or a tuple of tensors."""
    inputs = tuple(range(len(arguments)))
    outputs = tuple(map(Output, range(len(results))))
    flatten = torch.utils._pytree.tree_flatten  # noqa: SLF001 - torch's only API
    return CallForm(
        in_spec=flatten((inputs, {}))[1],
        out_spec=flatten(0 if len(results) == 1 else outputs)[1],
        inputs=inputs,
        outputs=outputs,
        types=tuple(torch_type(type_.element) for type_ in arguments),
        result_types=tuple(torch_type(type_.element) for type_ in results),
        signature=signature_of_tensors(len(inputs)),
    )


@typed_arguments
def tune(
    module: torch.nn.Module | torch.export.ExportedProgram,
    arguments: tuple[Any, ...] = (),
    keywords: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Mapping[str, Any] | Sequence[Any] | None = None,
    sizes: Sequence[int] = (),
    trials: int | None = None,
    budget: float | str | None = None,
    seed: int = 0,
    workers: int | None = None,
    baseline: str = ALL,
    db: str | Path | None = None,
    observe: CampaignObserver = ignore_campaign,
    progress: bool = False,
    threads: int = 1,
    fallback: str = NONE,
    release_weights: bool = False,
) -> TensorProgram:
    """Tunes a module for the shapes and types of example inputs, on this processor; returns the program.

    The distinct fusions of the module share one budget. Their trials are stored, so that
    ``tuner.torch.compile`` finds the schedules later, and other modules profit from them. Weights are timed
    as they are in a model: evicted from the second level of cache. Buffers and inputs that the module changes
    are as before at the end.

    Args:
        module: a module, in ``eval`` mode where that matters, or a program of ``torch.export.export``.
        arguments: example inputs, a tuple; () of an exported program.
        keywords: example keyword inputs.
        dynamic_shapes: a size that changes from call to call, as of ``compile``.
        sizes: of the dynamic size, whose programs are tuned, next to that of the example, with an equal share
            of ``trials`` and ``budget`` each. Others are compiled when a call needs them, with what was found
            for similar fusions.
        trials: candidates of all fusions together; where neither ``trials`` nor ``budget`` is given, 8 for
            each distinct fusion.
        budget: time of the tuning, in seconds or as "10m", with running and timing it at its end; baselines
            for which no time is left to compile them are left out, and say so.
        seed: seed of the order of trials and of random inputs.
        workers: candidates compiled at once; None: the cores, at most 4.
        baseline: what runs the module next to the program, interleaved, at the end: "all", "eager",
            "torch.compile" (with eager) or "none". Compiling by torch.compile takes a minute or so.
        db: path or URL of the results database; None: the default one.
        observe: called with each event of the tuning (``tuner.tuning.events``).
        progress: whether to print progress on stderr.
        threads: that the program runs on, 1 to 256; a fusion that it divides is tuned on all of them.
        fallback: "eager" runs operators in PyTorch whose tuned fusions are slower, as in ``compile``.
        release_weights: whether the module's weights become empty at the end, as in ``compile``.

    Returns:
        The program, which is called like the module; ``program.tuned`` has the times of its fusions, the gain
        over the untuned program, and ``baselines``: how many times as fast it is as eager and torch.compile,
        or why no ratio may be printed, and each large fusion that is slower than its operators in eager mode.
        A warning names what is slower than eager mode. With a dynamic size it is of the example's program,
        and ``program.tuned_sizes`` has those of all tuned programs, by the size that each is compiled for.

    Raises:
        UsageError: torch.export or torch-mlir refuses the module, it has no fusions to tune, or an argument
            is wrong.
        KeyboardInterrupt: the tuning was interrupted; its trials are stored, and ``tuner tune --resume
            campaign:N`` goes on.

    Example:
        >>> import torch
        >>> import tuner.torch
        >>> module = torch.nn.Linear(64, 32).eval()
        >>> x = torch.ones(16, 64)
        >>> program = tuner.torch.tune(module, (x,), trials=1, baseline="eager")
        >>> torch.allclose(program(x), module(x), atol=1e-5)
        True
        >>> [each.fusion.origin for each in program.tuned.fusions]
        ['tuned']
        >>> [(each.name, each.call_s.median > 0) for each in program.tuned.baselines]
        [('eager', True)]
    """
    _require_fallback(fallback)
    _require_releasable(module, dynamic_shapes, release_weights=release_weights)
    names = chosen_baselines(baseline)
    _require_sizes(module, dynamic_shapes, sizes)
    if dynamic_shapes is not None and fallback == EAGER:
        raise UsageError(f"fallback {EAGER} cannot be combined with dynamic_shapes when tuning")
    example = example_of(module, arguments, keywords or {})
    seconds = parse_seconds(budget) if isinstance(budget, str) else budget
    limit = ProgramBudget(seconds, time.monotonic())
    printed = campaign_progress() if progress else contextlib.nullcontext(ignore_campaign)
    with printed as show:
        options = TuningOptions(
            name=type(module).__name__,
            limits=SharedLimits(trials, seconds),
            seed=seed,
            workers=workers,
            database=db,
            threads=threads,
            observe=both_observers(observe, show),
        )
        if dynamic_shapes is not None:
            program = _tuned_family(module, example, dynamic_shapes, sizes, options)
        else:
            exported = export_module(module, arguments, keywords)
            tensors = exported.form.tensors_of(example.arguments, example.keywords)
            weights = ModuleWeights(module, exported.form.changes.buffers)
            program = tuned_module(exported, options, tensors, weights)
    if dynamic_shapes is not None:
        left_s = limit.left_s(time.monotonic())
        return _with_baselines(program, timed_baselines(program, example, names, threads, left_s=left_s))
    del exported  # which has the weights
    program = _with_comparisons(module, example, program, names, threads, fallback, limit)
    if release_weights:
        _warn(module, [_released(module, program)])
    return program


def _with_comparisons(
    module: Any,
    example: Example,
    program: TensorProgram,
    names: tuple[str, ...],
    threads: int,
    fallback: str,
    limit: ProgramBudget,
) -> TensorProgram:
    """Times the baselines ``names`` of a tuned program, and warns of what is slower than eager mode.

    Returns the program; with ``fallback`` "eager", the one that keeps slower operators in PyTorch.
    """
    assert program.tuned is not None
    found = EagerComparison(None)
    is_compared = fallback == EAGER or (EAGER in names and limit.left_s(time.monotonic()) > 0)
    if is_compared and not program.is_changing:  # its operators would change the module's tensors
        found = compared_with_eager(module, example, program)
    left_s = limit.left_s(time.monotonic())
    changed = program.changed_tensors(example.arguments, example.keywords)
    timed = timed_baselines(program, example, names, threads, left_s=left_s, changed=changed)
    baselines = (*timed, *found.baselines)
    _with_baselines(program, baselines)
    notes = [loops_note(program.tuned.fusions)]
    by_eager = [timed for timed in baselines if timed.name == EAGER]
    notes += [f"slower {clause}" for clause in losses(by_eager)]
    if fallback == EAGER and not program.is_changing:
        program, note = with_fallback(program, found, program.tuned.request.database, threads)
        notes.append(note)
    _warn(module, notes)
    return program


def _tuned_family(
    module: Any, example: Example, dynamic_shapes: Any, sizes: Sequence[int], options: TuningOptions
) -> TensorProgram:
    """Returns a program of a dynamic size, tuned at the example's size and at ``sizes``."""
    parts = TunedParts(options, 1 + len(sizes))
    program, _ = _partitioned(
        *(module, example.arguments, example.keywords, UsageError(DYNAMIC)),
        compiled=parts,
        fallback=NONE,
        dynamic_shapes=dynamic_shapes,
        sizes=sizes,
    )
    parts.end()
    assert isinstance(program.function, PartedFunction)
    program.tuned_sizes = tuned_sizes(program.function)
    program.tuned = next(iter(program.tuned_sizes.values()), None)
    return program


def _with_baselines(program: TensorProgram, baselines: tuple[ProgramBaseline, ...]) -> TensorProgram:
    """Records and stores times of baselines with the outcome of a program's tuning; returns the program."""
    if program.tuned is not None:
        program.tuned = replace(program.tuned, baselines=baselines)
        store_result(program.tuned)
    return program
