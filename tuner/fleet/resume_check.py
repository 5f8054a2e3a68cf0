"""Proves that a run on a fleet ends as on one machine, whatever fails meanwhile: real processes, SIGKILL."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from tuner.analysis.run_difference import Difference, differences
from tuner.core.runs import RunSettings, StoredTrial, TrialQuery
from tuner.core.target_name import REPLAY
from tuner.fleet.drill import FAULTS, Drill, QuickerError
from tuner.fleet.local_nodes import LocalNodes
from tuner.fleet.overlaps import overlaps, repeated
from tuner.fleet.server import session

LEASE_S: Final = 3.0  # of nodes whose loss is waited for
LEAST_APART: Final = 1  # trials judged between two faults
MOST_APART: Final = 4


@dataclass(frozen=True)
class FleetCheck:
    """What became of one run of whose fleet one part after another failed."""

    sampler: str
    faults: tuple[str, ...]  # in their order
    trials: int
    differences: tuple[Difference, ...]  # from the run that nothing happened to
    repeated: int  # pieces of work that were done again
    overlaps: int  # of timings on one device
    orphans: int  # processes that outlived the fleet

    @property
    def is_exact(self) -> bool:
        """Says whether nothing was lost, and no more done again than was under way."""
        is_clean = not (self.differences or self.overlaps or self.orphans)
        return is_clean and self.repeated <= len(self.faults)


def check_fleet(
    url: str, settings: RunSettings, file: Path, unbroken: tuple[StoredTrial, ...], rng: np.random.Generator
) -> FleetCheck:
    """Lets every part fail once, in any order, and compares. Raises TunerError when a driver fails."""
    from tuner.db.store import Store

    with tempfile.TemporaryDirectory() as name:
        with LocalNodes(url, f"{REPLAY}:{file}", Path(name)) as nodes, Drill(url, nodes) as drill:
            run = drill.begin(settings, file)
            faults = _failed(drill, rng)
            drill.finish()
        orphans = len(nodes.orphans())
    with Store.open(url) as store:
        trials = store.trials(TrialQuery(run=run.id, sort="number"))
    with session(url) as connection:
        return FleetCheck(
            settings.sampler,
            faults,
            len(trials),
            differences(unbroken, trials),
            repeated(connection, run.uuid),
            len(overlaps(connection, run.uuid)),
            orphans,
        )


def _failed(drill: Drill, rng: np.random.Generator) -> tuple[str, ...]:
    """Lets parts fail while the run lasts; returns which did."""
    done: list[str] = []
    try:
        for name in rng.permutation(tuple(FAULTS)):
            drill.wait_for_judged(int(rng.integers(LEAST_APART, MOST_APART)))
            FAULTS[name](drill)
            done.append(str(name))
    except QuickerError:
        pass
    return tuple(done)
