"""Results of a processor are not used on one of the same model that lacks an extension."""

from dataclasses import replace

import pytest

from tests.results.regression.test_audit import audited
from tests.tuning import fakes
from tuner.core.errors import UsageError
from tuner.core.machine import Machine, processor_class
from tuner.core.problem import Matmul
from tuner.core.runs import TrialQuery
from tuner.db.store import Store
from tuner.results.best_trials import best_here, best_known
from tuner.results.regression.gate import recorded_entry
from tuner.targets.backends import Backends
from tuner.tuning.events import Interruption
from tuner.tuning.run import begin, resume

PROBLEM = Matmul(8, 8, 8)


def machine(*extensions: str) -> Machine:
    name = processor_class("Xeon", "family 6 model 143", ("avx512", *extensions), (48 << 10, 2 << 20, 0))
    return replace(fakes.MACHINE, name=name, has_bf16="bf16" in extensions)


WITH_BF16, WITHOUT = machine("bf16", "vnni"), machine("vnni")


def on(host: Machine) -> Backends:
    """Returns the parts of a run on a machine."""
    backends = fakes.backends()
    kind = fakes.changed_kind(backends.kinds["fake"], machine=lambda _target: host)
    return replace(backends, kinds={"fake": kind}, machine=lambda: host)


@pytest.mark.slow
def test_nothing_of_a_processor_with_bf16_is_used_on_one_without(store: Store) -> None:
    tuned = begin(fakes.settings(trials=4), on(WITH_BF16), store, Interruption())
    trial = tuned.best
    assert trial is not None
    other = on(WITHOUT)
    assert audited(other, store) == []
    with pytest.raises(
        UsageError, match=r"nothing measured on .*, avx512 vnni, .* only on .*, avx512 bf16 vnni"
    ):
        best_known(store, other, PROBLEM, "fake")
    with pytest.raises(UsageError, match="nothing measured on"):
        best_here(store, other, PROBLEM, "fake")  # as load_best asks
    with pytest.raises(UsageError, match=r"was timed on 'Xeon .* bf16 vnni, .*, this machine is 'Xeon"):
        recorded_entry(other, store, trial)
    again = begin(fakes.settings(trials=4), other, store, Interruption())
    trials = store.trials(TrialQuery(run=again.run.id))
    assert {each.record.reused_from for each in trials} <= {None, *(each.id for each in trials)}
    with pytest.raises(UsageError, match=r"run 1: was made on 'Xeon .* bf16"):
        resume(tuned.run.id, other, store, Interruption(), retime=True)
