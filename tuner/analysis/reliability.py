"""How far the times of a round can be relied on: its noise, the drift of what never changes, the machine."""

from collections.abc import Iterator

from tuner.core.drift import drift
from tuner.core.host_conditions import HostConditions
from tuner.core.processors import PresentLoad
from tuner.core.record import Measurement
from tuner.core.timing_round import RoundQuality

NOISE_LIMIT = 0.05  # relative: differences that a quiet machine shows between timings of the same code
DRIFT_LIMIT = 0.1  # relative, between quarters of a round: OpenBLAS on two quiet cores shows up to 9 %
SHARE_LIMIT = 0.05  # of the time: processors given away or held back
WAITED_LIMIT = 0.1  # of the time: threads that take turns wait a little for one another on quiet cores
NO_NOISE_FLOOR = "the noise floor is not known: no code was timed twice"
OTHERS_LIMIT = 0.2  # processors busy with other programs, where none is left over for them


def round_quality(
    noise: float | None,
    baseline: Measurement | None,
    host: HostConditions | None,
    *,
    quietest_anchor_s: float | None,  # of the whole run; None: the target has no anchor
    spare_cores: int,  # beside the timed threads
) -> RoundQuality:
    """Returns how quiet a round was; it is unreliable where something that never changes did."""
    drifts = tuple(_drifts(baseline, host, quietest_anchor_s))
    shares = () if host is None else (host.waited_share, host.stolen_share, host.throttled_share)
    disturbance = max((noise or 0.0, *(most for _, most in drifts), *shares))
    symptom = _symptom(noise, drifts) or _pressed(host, spare_cores)
    if not symptom and noise is None:  # the same code timed once is no evidence of a quiet machine
        return RoundQuality(noise, disturbance, NO_NOISE_FLOOR, host)
    if not symptom:
        return RoundQuality(noise, disturbance, "", host)
    return RoundQuality(noise, disturbance, f"{symptom}: {_cause(host)}", host)


def _drifts(
    baseline: Measurement | None, host: HostConditions | None, quietest_anchor_s: float | None
) -> Iterator[tuple[str, float]]:
    if host is not None:
        yield "the anchor kernel drifted", host.anchor_drift
        if quietest_anchor_s is not None:
            yield "the anchor kernel was slower than earlier", host.anchor_s / quietest_anchor_s - 1
    if baseline is not None:
        yield "the baseline drifted", drift(baseline.samples_s)


def _symptom(noise: float | None, drifts: tuple[tuple[str, float], ...]) -> str:
    """Returns what went beyond the noise of a quiet machine; '' where nothing did."""
    if noise is not None and noise > NOISE_LIMIT:
        return f"two timings of the same code differ by {noise:.0%}"
    what, most = max(drifts, key=lambda each: each[1], default=("", 0.0))
    floor = "" if noise is None else f" (noise floor {noise:.1%})"
    return f"{what} by {most:.0%}{floor}" if most > DRIFT_LIMIT else ""


def _pressed(host: HostConditions | None, spare_cores: int) -> str:
    """Returns how the machine pressed on the timed threads, all the time alike; '' where it did not."""
    if host is None:
        return ""
    if max(host.stolen_share, host.throttled_share) > SHARE_LIMIT or host.waited_share > WAITED_LIMIT:
        return "the timed threads did not run all the time"
    if host.others_cores > spare_cores + OTHERS_LIMIT:
        return "the timed threads had no processor for themselves"
    return ""


def is_pressed(load: PresentLoad, processors: int, threads: int) -> bool:
    """Returns True where threads that begin now would not have a processor each to themselves."""
    return load.busy > processors - threads + OTHERS_LIMIT or load.stolen > SHARE_LIMIT * threads


def _cause(host: HostConditions | None) -> str:
    """Returns what the counters of the system say of a disturbance."""
    if host is None:
        return "something else was running"
    if host.throttled_share > SHARE_LIMIT:
        return f"throttling, a quota held the processes back for {host.throttled_share:.0%} of the time"
    if host.stolen_share > SHARE_LIMIT:
        return f"steal time, the hypervisor took {host.stolen_share:.0%}"
    if host.others_cores > OTHERS_LIMIT or host.waited_share > WAITED_LIMIT:
        waited = f", the timed threads waited {host.waited_share:.0%} of the time"
        return f"load, other programs kept {host.others_cores:.1f} processors busy{waited}"
    return "throttling or another clock of the processor, no other program was seen"
