"""The families of small modules, and the module of a number."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.op_corpus.small_modules.losses import loss, metric
from benchmarks.op_corpus.small_modules.masks import mask
from benchmarks.op_corpus.small_modules.module_text import Draft, SmallModule
from benchmarks.op_corpus.small_modules.numbers import conversion, dynamic_size, power
from benchmarks.op_corpus.small_modules.reductions import meeting_reductions, reduction
from benchmarks.op_corpus.small_modules.views import written_view

FAMILIES: dict[str, Callable[[Draft], SmallModule]] = {
    "reduction": reduction,
    "meeting reductions": meeting_reductions,
    "loss": loss,
    "metric": metric,
    "mask": mask,
    "dynamic size": dynamic_size,
    "power": power,
    "conversion": conversion,
    "written view": written_view,
}
COMPILE, FALLBACK, BACKEND = WAYS = ("tuner.torch.compile", "fallback=eager", "backend=tuner")
DRAWN_WAYS = (COMPILE, COMPILE, COMPILE, FALLBACK, BACKEND)


@dataclass(frozen=True)
class DrawnSmallModule:
    """A small module, its family, and by which of ``WAYS`` it is compiled."""

    family: str
    module: SmallModule
    way: str


def drawn(number: int, seed: int = 0) -> DrawnSmallModule:
    """Returns the small module of a number: the families follow each other."""
    rng = random.Random(f"small {seed} {number}")
    family = tuple(FAMILIES)[number % len(FAMILIES)]
    way = rng.choice(DRAWN_WAYS)
    return DrawnSmallModule(family, FAMILIES[family](Draft(rng)), way)
