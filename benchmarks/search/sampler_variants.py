"""How much a sampler's constants matter: searches of equal synthetic spaces, paired with the first variant.

    python -m benchmarks.search.sampler_variants tpe tpe:density.GOOD_SHARE=0.25 local --spaces 200 --json

A variant is a sampler, with ``:MODULE.CONSTANT=NUMBER`` for each constant of ``tuner.search`` that differs.
The other variants are compared with the first one, space by space; the seed of a search is that of its space.
"""

import argparse
import importlib
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.results_file import add_report_options, emit, report
from benchmarks.search.replay_run import replay
from benchmarks.search.synthetic_space import synthetic_space
from tuner.core.errors import UsageError
from tuner.search.samplers import require_sampler

Scores = npt.NDArray[np.float64]  # P by space


@dataclass(frozen=True)
class Variant:
    """A sampler and the constants that differ."""

    text: str
    sampler: str
    constants: tuple[tuple[str, str, float], ...]  # module, name, value

    @classmethod
    def of(cls, text: str) -> "Variant":
        """Parses ``SAMPLER:MODULE.CONSTANT=NUMBER...``. Raises ArgumentTypeError for unknown names."""
        sampler, *options = text.split(":")
        try:
            require_sampler(sampler)
        except UsageError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        return cls(text, sampler, tuple(_constant(given) for given in options))

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Holds while the constants have the variant's values."""
        before = [getattr(_module(module), name) for module, name, _ in self.constants]
        for module, name, value in self.constants:
            setattr(_module(module), name, value)
        try:
            yield
        finally:
            for (module, name, _), value in zip(self.constants, before, strict=True):
                setattr(_module(module), name, value)


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    seeds = range(options.first, options.first + options.spaces)
    work = partial(_scores, tuple(options.variants), options.evaluations)
    with ProcessPoolExecutor(options.processes) as pool:
        scores = np.array(list(pool.map(work, seeds)))  # (spaces, variants)
    rows = [_row(variant, scores[:, place], scores[:, 0]) for place, variant in enumerate(options.variants)]
    for row in rows:
        print(
            f"{row['variant']:44s} P {row['p']:.3f} +- {row['p_standard_error']:.3f}  "
            f"{row['difference']:+.3f} +- {row['difference_standard_error']:.3f}",
            file=sys.stderr,
        )
    settings = {name: getattr(options, name) for name in ("spaces", "first", "evaluations")}
    summary = {"mean_p": {row["variant"]: row["p"] for row in rows}}
    emit(report("replay_variants", settings, rows, summary), options.json, options.output)


def _scores(variants: tuple[Variant, ...], evaluations: int, seed: int) -> list[float]:
    """Returns P of each variant on one space."""
    space = synthetic_space(seed)
    scores = []
    for variant in variants:
        with variant.applied():
            scores.append(space.score(replay(space, variant.sampler, seed, evaluations).found_s))
    return scores


def _row(variant: Variant, scores: Scores, base: Scores) -> dict[str, Any]:
    return {
        "variant": variant.text,
        "p": float(scores.mean()),
        "p_standard_error": _standard_error(scores),
        "difference": float((scores - base).mean()),
        "difference_standard_error": _standard_error(scores - base),
    }


def _standard_error(values: Scores) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5)


def _constant(given: str) -> tuple[str, str, float]:
    place, _, number = given.partition("=")
    module, _, name = place.partition(".")
    try:
        value = float(number)
        before = getattr(_module(module), name)
    except (ValueError, ImportError, AttributeError):
        raise argparse.ArgumentTypeError(
            f"found {given!r}, allowed MODULE.CONSTANT=NUMBER of tuner.search"
        ) from None
    return module, name, type(before)(value)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"tuner.search.{name}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("variants", nargs="+", type=Variant.of, metavar="VARIANT")
    parser.add_argument("--spaces", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="of the first space")
    parser.add_argument("--evaluations", type=int, default=150)
    parser.add_argument("--processes", type=int, default=2)
    add_report_options(parser)
    options = parser.parse_args()
    for name, least in (("spaces", 2), ("first", 0), ("evaluations", 1), ("processes", 1)):
        if getattr(options, name) < least:
            parser.error(f"--{name}: found {getattr(options, name)}, allowed {least} or more")
    return options


if __name__ == "__main__":
    main()
