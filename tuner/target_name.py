"""Which target is meant: a kind of machine, and for GPUs the chip that code is made for."""

from dataclasses import dataclass

from tuner.chips import chip_of
from tuner.errors import UsageError
from tuner.problem import Problem

GPU_KINDS = ("cuda", "simulator")
REPLAY = "replay"  # answers from a recording; nothing is compiled or run
DEFAULT_CHIP = "sm_90"
PROCESSOR_DTYPES = ("f32", "f64", "bf16")


@dataclass(frozen=True)
class TargetName:
    """A target as records and the command line spell it: ``cpu``, ``simulator:sm_90``, ``replay:gemm``."""

    kind: str  # a name of ``tuner.targets.TARGETS``
    chip: str = ""  # "" where the kind has none
    recording: str = ""  # of a replay: its name, on the command line its file

    @property
    def text(self) -> str:
        """Returns the form that is stored."""
        detail = self.chip or self.recording
        return f"{self.kind}:{detail}" if detail else self.kind

    @property
    def is_gpu(self) -> bool:
        """Tells whether code for it is PTX."""
        return self.kind in GPU_KINDS

    @property
    def is_replay(self) -> bool:
        """Tells whether its times are told again from a recording, not measured."""
        return self.kind == REPLAY

    @classmethod
    def parse(cls, word: str, chip: str = "") -> "TargetName":
        """Reads ``kind``, ``kind:chip`` or ``replay:recording``; ``chip`` says the chip apart.

        Raises UsageError for a wrong chip. Whether there is such a kind is not looked at.
        """
        kind, colon, after = word.partition(":")
        if colon and chip and chip != after:
            raise UsageError(f"chip: found {chip!r} beside target {word!r}, allowed one of both")
        if kind in GPU_KINDS:
            return cls(kind, chip_of(after if colon else chip or DEFAULT_CHIP).name)
        if kind == REPLAY and not chip:
            return cls._replay(after)
        if chip or colon:
            found = after or chip
            raise UsageError(f"chip: found {found!r} for target {kind}, allowed for {', '.join(GPU_KINDS)}")
        return cls(kind)

    @classmethod
    def _replay(cls, recording: str) -> "TargetName":
        if not recording:
            raise UsageError(f"target {REPLAY}: found no recording, allowed {REPLAY}:FILE")
        return cls(REPLAY, recording=recording)


def require_types(problem: Problem, target: TargetName) -> None:
    """Raises UsageError for element types that only GPUs take."""
    if target.kind != "cpu":
        return
    elsewhere = f"on target cpu; {' and '.join(GPU_KINDS)} take it"
    if problem.dtype not in PROCESSOR_DTYPES:
        allowed = ", ".join(PROCESSOR_DTYPES)
        raise UsageError(f"dtype: found {problem.dtype!r}, allowed {allowed} {elsewhere}")
    if problem.output:
        raise UsageError(f"output: found {problem.output!r}, allowed {problem.accumulator} {elsewhere}")
