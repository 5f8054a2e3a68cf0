"""The Python API: ``tuner.tune``, ``tuner.history``, ``tuner.load_best``."""

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuner.chips import chip_of
from tuner.errors import UsageError
from tuner.problem import Problem
from tuner.runs import RunSettings, StoredTrial, TrialQuery
from tuner.target_name import REPLAY, TargetName, require_types

if TYPE_CHECKING:
    from tuner.db.store import Store
    from tuner.tuning.composition import Composition, TargetStatus
    from tuner.tuning.events import Observer
    from tuner.tuning.session import TunedRun

NUMBER_MAX = 2**63 - 1  # of an integer of a database
DEFAULT_TRIALS = 100  # when neither a number nor a time is given
WORKERS_LIMIT = 4  # more than this wait for the one that times
TIMED_SAMPLER = "tpe"
UNTIMED_SAMPLERS = ("random", "exhaustive")  # that need no times; the default is the first


def default_database() -> str:
    """Returns the path of the results database in the user's data directory."""
    import platformdirs

    return str(platformdirs.user_data_path("tuner") / "tuner.db")


def run_settings(
    problem: Problem,
    composition: "Composition",
    *,
    target: str = "auto",
    chip: str = "",
    threads: int = 1,
    strategies: tuple[str, ...] = (),
    space: Path | None = None,
    sampler: str | None = None,
    seed: int = 0,
    trials: int | None = None,
    budget_s: float | None = None,
    workers: int | None = None,
    fresh: bool = False,
    warm_start: bool = True,
    warm_files: tuple[Path, ...] = (),
) -> RunSettings:
    """Returns checked settings with their defaults filled in. Raises UsageError."""
    from tuner.config import default_space_file, load_space_file
    from tuner.tuning.replaying import replay_settings
    from tuner.tuning.scripts import choose

    _require_number("threads", threads, 1)
    _require_number("seed", seed, 0)
    _require_number("trials", trials, 1)
    _require_number("workers", workers, 1)
    _require_budget(budget_s)
    warm_files = tuple(Path(file) for file in warm_files)
    if trials is None and budget_s is None:
        trials = DEFAULT_TRIALS
    if workers is None:
        workers = min(WORKERS_LIMIT, composition.machine().physical_cores)
    if target.startswith(f"{REPLAY}:"):
        _require_no_space(strategies, space, chip)
        return replay_settings(
            problem,
            Path(TargetName.parse(target).recording),
            threads=threads,
            sampler=sampler or TIMED_SAMPLER,
            seed=seed,
            trials=trials,
            budget_s=budget_s,
            workers=workers,
            warm_files=warm_files,
        )
    space_file = load_space_file(Path(space or default_space_file()))
    resolved = resolve_target(target, composition, chip)
    require_types(problem, resolved)
    return RunSettings(
        problem=problem,
        target=resolved.text,
        threads=threads,
        strategies=tuple(chosen.text for chosen in choose(strategies, space_file)),
        space_yaml=space_file.text,
        sampler=_sampler(sampler, composition.is_timed(resolved.text), resolved),
        seed=seed,
        trials=trials,
        budget_s=budget_s,
        workers=workers,
        fresh=fresh,
        warm_start=warm_start and not fresh,
        warm_files=tuple(str(file.absolute()) for file in warm_files),
    )


def _require_number(name: str, number: int | None, low: int) -> None:
    """Raises UsageError for what is no integer, is too small, or is kept by no database."""
    if number is not None and type(number) is not int:
        raise UsageError(f"{name}: found {number!r}, allowed an integer of {low} or more")
    if number is not None and number < low:
        raise UsageError(f"{name}: found {number}, allowed {low} or more")
    if number is not None and number > NUMBER_MAX:
        raise UsageError(f"{name}: found {number}, allowed {low} to {NUMBER_MAX}")


def _require_budget(budget_s: float | None) -> None:
    """Raises UsageError for a time that never ends, or is over before it begins."""
    if budget_s is None or (isinstance(budget_s, int | float) and 0 < budget_s < math.inf):
        return
    raise UsageError(f"budget_s: found {budget_s!r}, allowed seconds, more than 0")


def _require_no_space(strategies: tuple[str, ...], space: Path | None, chip: str) -> None:
    """Raises UsageError for what a recording decides."""
    for name, word in (("strategy", " ".join(strategies)), ("space", space), ("chip", chip)):
        if word:
            raise UsageError(
                f"{name}: found {str(word)!r}, allowed none with {REPLAY}:FILE, which decides it"
            )


def resolve_target(word: str, composition: "Composition", chip: str = "") -> TargetName:
    """Returns the target to use; ``auto`` is what gives times here. Raises UsageError for none."""
    known = composition.targets()
    if word == "auto":
        return _first_timed(known, chip)
    target = TargetName.parse(word, chip)
    for status in known:
        if status.name == target.kind and (status.is_available or status.can_compile):
            return _on_this_gpu(target, status, has_chip=bool(chip) or ":" in word)
        if status.name == target.kind:
            raise UsageError(f"target {word}: not available here: {status.reason}")
    raise UsageError(f"target: found {word!r}, allowed auto, {', '.join(status.name for status in known)}")


def _timed_here(known: "tuple[TargetStatus, ...]", chip: str = "") -> Iterator[TargetName]:
    """Yields the targets that give times, a GPU first: whoever has one tunes for it as a rule."""
    for status in sorted(known, key=lambda status: not status.chip):
        if status.is_available and status.is_timed:
            yield _on_this_gpu(TargetName.parse(status.name, chip), status, has_chip=bool(chip))


def _first_timed(known: "tuple[TargetStatus, ...]", chip: str) -> TargetName:
    for target in _timed_here(known, chip):
        return target
    reasons = "; ".join(f"{status.name}: {status.reason}" for status in known)
    raise UsageError(f"target: found none that works here: {reasons}")


def _on_this_gpu(target: TargetName, status: "TargetStatus", *, has_chip: bool) -> TargetName:
    """Returns the target for the chip of the GPU here unless one was named. Raises UsageError for another."""
    if not status.chip:
        return target
    if not has_chip:
        return TargetName(target.kind, status.chip)
    if chip_of(target.chip).capability != chip_of(status.chip).capability:
        allowed = f"{target.kind}:{status.chip}, or simulator:{target.chip}"
        raise UsageError(f"target: found {target.text}, the GPU here is {status.chip}, allowed {allowed}")
    return target


def _sampler(word: str | None, is_timed: bool, target: TargetName) -> str:
    """Returns the sampler, by default one that suits. Raises UsageError for one that learns from no times."""
    if is_timed:
        return word or TIMED_SAMPLER
    if word is not None and word not in UNTIMED_SAMPLERS:
        raise UsageError(
            f"sampler: found {word!r}, allowed {', '.join(UNTIMED_SAMPLERS)}: "
            f"target {target.kind} gives no times to learn from"
        )
    return word or UNTIMED_SAMPLERS[0]


def tune(
    problem: Problem,
    target: str = "auto",
    trials: int | None = None,
    budget_s: float | None = None,
    *,
    chip: str = "",
    threads: int = 1,
    strategies: tuple[str, ...] = (),
    space: Path | None = None,
    sampler: str | None = None,
    seed: int = 0,
    workers: int | None = None,
    fresh: bool = False,
    warm_start: bool = True,
    warm_files: tuple[Path, ...] = (),
    db: str | None = None,
    observe: "Observer | None" = None,
) -> "TunedRun":
    """Tunes a problem and returns the run with its ``best`` trial (None when no candidate worked).

    Ends after ``trials`` or ``budget_s`` seconds, whichever is first; 100 trials when neither is given.
    Begins with what was best for the nearest problems: in the database, unless ``fresh`` or not
    ``warm_start``, and in ``warm_files``, which ``tuner record-space`` wrote.
    Raises UsageError for wrong words, KeyboardInterrupt when interrupted: what was measured is stored.
    """
    from tuner.db.store import Store
    from tuner.tuning.events import ignore
    from tuner.tuning.interruption import Interruption
    from tuner.tuning.parts import real_composition
    from tuner.tuning.run import begin

    composition = real_composition()
    settings = run_settings(
        problem,
        composition,
        target=target,
        chip=chip,
        threads=threads,
        strategies=strategies,
        space=space,
        sampler=sampler,
        seed=seed,
        trials=trials,
        budget_s=budget_s,
        workers=workers,
        fresh=fresh,
        warm_start=warm_start,
        warm_files=warm_files,
    )
    with Store.open(db or default_database()) as store:
        tuned = begin(settings, composition, store, Interruption(), observe or ignore)
    if tuned.is_interrupted:
        raise KeyboardInterrupt(
            f"run {tuned.run.id} is stored; go on with: tuner tune --resume {tuned.run.id}"
        )
    return tuned


def history(db: str | None = None, **conditions: Any) -> tuple[StoredTrial, ...]:
    """Returns past trials; conditions are fields of TrialQuery: ``history(shape="64x64x64", best=True)``."""
    from tuner.db.store import Store

    allowed = tuple(field.name for field in fields(TrialQuery))
    for name in conditions:
        if name not in allowed:
            raise UsageError(f"history: found {name!r}, allowed {', '.join(allowed)}")
    with Store.open(db or default_database()) as store:
        return store.trials(TrialQuery(**conditions))


def load_best(
    problem: Problem, db: str | None = None, threads: int | None = None, target: str = "auto"
) -> Callable[..., Any]:
    """Returns the best kernel known for a problem on this machine: ``c = kernel(a, b[, bias], out=None)``.

    Takes numpy arrays, C-contiguous, of the problem's shapes and dtypes; that of a GPU also arrays on the
    device (DLPack, ``__cuda_array_interface__``) with ``out`` and ``stream``. ``auto`` is the first target
    that gives times here and has some of the problem. Raises UsageError when nothing was measured yet.
    """
    from tuner.db.store import Store
    from tuner.tuning.parts import real_composition

    composition = real_composition()
    timed = tuple(_timed_here(composition.targets())) if target == "auto" else ()
    targets = timed or (resolve_target(target, composition),)
    with Store.open(db or default_database()) as store:
        for each in targets[:-1]:
            with contextlib.suppress(UsageError):
                return _load_best_of(composition, store, problem, each, threads)
        return _load_best_of(composition, store, problem, targets[-1], threads)


def _load_best_of(
    composition: "Composition", store: "Store", problem: Problem, target: TargetName, threads: int | None
) -> Callable[..., Any]:
    from tuner.tuning.best import best_answer

    machine = composition.target_machine(target.text)
    answer = best_answer(store, problem, machine.name, target.text, threads)
    if not target.is_gpu:
        return composition.load(problem, answer.best.script_text, answer.best.threads)
    program = store.program(answer.best.id)
    if program is None:
        raise UsageError(f"trial {answer.best.id}: found no compiled program stored, allowed one of a GPU")
    return composition.load_program(problem, program)
