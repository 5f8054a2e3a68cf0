"""Checks that a run on a fleet gives the result of one machine under failures: real processes, SIGKILL."""

import contextlib
import gzip
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.fleet.fault_injection import FAULTS, FaultInjection, QuickerError
from tests.support.overlaps import overlaps, repeated
from tests.support.run_differences import Difference, differences
from tuner.core.candidate import REPLAY
from tuner.core.queries import TrialQuery
from tuner.core.runs import RunSettings
from tuner.core.trials import StoredTrial
from tuner.db.store import Store
from tuner.elsewhere.fleet.local_fleet import LocalNodes
from tuner.elsewhere.fleet.server import session

if TYPE_CHECKING:
    from tuner.elsewhere.fleet.server import Connection

LEASE_S: Final = 3.0  # of nodes whose loss is waited for
LEAST_APART: Final = (
    3  # trials evaluated between two faults: as many are in flight, so three faults hit none of them
)
MOST_APART: Final = 4
UNTRUSTED: Final = "stranger"


@dataclass(frozen=True)
class FleetCheck:
    """The result of one run on a fleet whose parts failed one after another."""

    sampler: str
    faults: tuple[str, ...]  # in their order
    trials: int
    differences: tuple[Difference, ...]  # from the run that nothing happened to
    repeated: int  # pieces of work that were done again
    overlaps: int  # of timings on one device
    orphans: int  # processes that outlived the fleet
    strange: int  # pieces of work that a node of another compiler did
    untrusted: str  # what that node said of why it gets none

    @property
    def is_exact(self) -> bool:
        """Returns whether no work was lost, and no more repeated than was under way at the failures."""
        is_clean = not (self.differences or self.overlaps or self.orphans or self.strange)
        return is_clean and self.repeated <= len(self.faults)


def check_fleet(
    url: str,
    settings: RunSettings,
    file: Path,
    uninterrupted: tuple[StoredTrial, ...],
    rng: np.random.Generator,
) -> FleetCheck:
    """Lets every part fail once, in any order, and compares. Raises TunerError when a driver fails."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            LocalNodes(url, f"{REPLAY}:{file}", folder) as nodes,
            contextlib.closing(FaultInjection(url, nodes)) as injected,
        ):
            nodes.start(UNTRUSTED, "--compile", "1", target=f"{REPLAY}:{_altered(file, folder)}")
            run = injected.begin(settings, file)
            faults = _failed(injected, rng)
            injected.finish()
        orphans = len(nodes.orphans())
        said = nodes.said(UNTRUSTED).splitlines()
    with Store.open(url) as store:
        trials = store.trials(TrialQuery(run=run.id, sort="number"))
    with session(url) as connection:
        return FleetCheck(
            sampler=settings.sampler,
            faults=faults,
            trials=len(trials),
            differences=differences(uninterrupted, trials),
            repeated=repeated(connection, run.uuid),
            overlaps=len(overlaps(connection, run.uuid)),
            orphans=orphans,
            strange=_done_by(connection, UNTRUSTED, run.uuid),
            untrusted=next((line for line in said if " wait for " in line), ""),
        )


def _altered(file: Path, folder: Path) -> Path:
    """Returns a recording of the same name whose compiler has another fingerprint."""
    content = file.read_bytes()
    is_packed = file.suffix == ".gz"
    text = gzip.decompress(content) if is_packed else content
    copy = folder / file.name
    copy.write_bytes(gzip.compress(text + b"\n") if is_packed else text + b"\n")
    return copy


def _done_by(connection: "Connection", node: str, run: str) -> int:
    row = connection.execute(
        "SELECT count(*) FROM fleet_work WHERE node = %s AND run = %s", (node, run)
    ).fetchone()
    assert row is not None
    return int(row[0])


def _failed(injected: FaultInjection, rng: np.random.Generator) -> tuple[str, ...]:
    """Lets parts fail while the run lasts; returns which did."""
    done: list[str] = []
    try:
        for name in rng.permutation(tuple(FAULTS)):
            injected.wait_for_evaluated(int(rng.integers(LEAST_APART, MOST_APART + 1)))
            FAULTS[name](injected)
            done.append(str(name))
    except QuickerError:
        pass
    return tuple(done)
