"""A candidate (strategy and knob values), the name of a target, and times that are exported with a script."""

from dataclasses import dataclass
from typing import Annotated, Any

from tuner.core.serialization import number

Value = int | str
AUTO = "auto"  # the first target that times candidates here
CPU = "cpu"
CUDA = "cuda"
SIMULATOR = "simulator"  # runs the same PTX as CUDA
REPLAY = "replay"  # outcomes are read from a recording; nothing is compiled or run
SECONDS_LIMIT = 1e6  # of one call: eleven days
NOISE_LIMIT = 1e6  # relative; enough even if all processes were paused during one of the two timings
SECONDS_TEXT = f"seconds, more than 0 and up to {SECONDS_LIMIT:.0f}"


@dataclass(frozen=True)
class Candidate:
    """A strategy with a value for each of its knobs: one configuration of the search space.

    Hashable. A partial candidate, which some functions accept, leaves knobs out.
    """

    strategy: str
    choices: tuple[tuple[str, Value], ...]  # (knob, value), sorted by knob

    @classmethod
    def of(cls, strategy: str, values: dict[str, Value]) -> "Candidate":
        """Returns the candidate of a strategy with the given knob values, sorted by the knobs' names."""
        return cls(strategy, tuple(sorted(values.items())))

    @property
    def text(self) -> str:
        """Returns the candidate as ``strategy(knob=value, ...)``, for printing and logging."""
        return f"{self.strategy}({', '.join(f'{name}={value}' for name, value in self.choices)})"


@dataclass(frozen=True)
class TargetName:
    """A target as on the command line: a kind (``cpu``), or kind and detail (``cuda:sm_90``)."""

    kind: str  # a name of ``tuner.targets.registry.TARGETS``, or "replay", which has no machine
    detail: str = ""  # of a GPU the chip, of a CPU another processor, of a replay the recording; "": none

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """Returns ``kind`` or ``kind:detail``: the form in databases and on the command line."""
        if self.detail:
            return f"{self.kind}:{self.detail}"
        return self.kind

    @property
    def has_machine(self) -> bool:
        """Returns whether outcomes are measured on a machine; False for a replay, which reads a recording."""
        return self.kind != REPLAY

    @property
    def is_on_cpu(self) -> bool:
        """Returns whether candidates run on the CPU of a machine: True for cpu only."""
        return self.kind == CPU

    @property
    def is_on_gpu(self) -> bool:
        """Returns whether candidates run on a real GPU: True for cuda, False for the simulator of a GPU."""
        return self.kind == CUDA

    @classmethod
    def parse(cls, text: str) -> "TargetName":
        """Returns the target of a text ``kind`` or ``kind:detail``; does not check that it exists."""
        kind, _, detail = text.partition(":")
        return cls(kind, detail)

    def is_of(self, kind: str) -> bool:
        """Returns whether the target's kind is ``kind``, such as "cpu" or "cuda".

        The detail is not compared.
        """
        return self.kind == kind


def candidate_document(candidate: Candidate) -> dict[str, Any]:
    """Converts a candidate to ``{"strategy": name, "knobs": {knob: value}}``, for JSON."""
    return {"strategy": candidate.strategy, "knobs": dict(candidate.choices)}


Seconds = Annotated[float, number(SECONDS_TEXT, lambda found: 0 < found <= SECONDS_LIMIT)]
Share = Annotated[
    float, number(f"a number from 0 to {NOISE_LIMIT:.0f}", lambda found: 0 <= found <= NOISE_LIMIT)
]


@dataclass(frozen=True)
class RecordedRound:
    """Times of an exported script's kernel and of what was timed next to it, interleaved in one timing round.

    ``tuner check`` compares its new times with these. Seconds are per call; on another day each of them may
    be slower.
    """

    kernel_s: Seconds  # of the script's kernel: lower quartile of its samples
    noise: Share  # relative difference between two timings of the same code in the round
    library_s: Seconds | None = None  # of the baseline library: lower quartile; None: not timed in the round
    panel_product_s: Seconds | None = None  # lower quartile, a product of small packed panels; None: on a GPU
