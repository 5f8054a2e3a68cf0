import time
from dataclasses import replace

import numpy as np
import pytest

from tests.fakes import FakeTarget, bind, candidate, time_of
from tests.trials import measurement, trial
from tests.tuning import fakes
from tuner.bench import AbstractBench
from tuner.db.store import Store
from tuner.problem import Problem
from tuner.report import record_of
from tuner.runs import Vendor
from tuner.target import AbstractVendorSource, Artifact, Script
from tuner.tuning.composition import BenchSettings
from tuner.tuning.events import Event, VendorMeasured
from tuner.tuning.interruption import Interruption
from tuner.tuning.run import begin, resume
from tuner.tuning.session import judged_s
from tuner.workers.local import LocalBench
from tuner.workers.ticket import Order

COMPILE_S = 0.02


class SlowCompiler(FakeTarget):
    """Lets the one that measures wait."""

    def compile(self, problem: Problem, script: Script) -> Artifact:
        time.sleep(COMPILE_S)
        return FakeTarget.compile(self, problem, script)


def slow_bench(order: Order, how: BenchSettings) -> AbstractBench:
    return LocalBench(order, SlowCompiler(), np.random.default_rng(how.seed))


def test_the_measuring_worker_has_a_candidate_while_it_loads_verifies_and_times() -> None:
    stages = (
        ("bind", 1.0),
        ("transform", 2.0),
        ("lower", 4.0),
        ("load", 8.0),
        ("verify", 16.0),
        ("measure", 32.0),
    )
    record = replace(record_of(trial(0, measurement(1.0))), stage_s=stages)
    assert judged_s(record) == 56.0
    assert judged_s(replace(record, stage_s=(("compile", 1.0),))) == 0.0
    assert judged_s(replace(record, stage_s=(("bind", 1.0), ("run", 5.0)))) == 5.0  # a crash


class LibraryTarget(FakeTarget, AbstractVendorSource):
    """Its vendor library is as fast as x = 5, in turns with the finalists."""

    def load_vendor(self, problem: Problem, rng: np.random.Generator) -> tuple[str, object]:
        return "FakeBLAS 1.0", self.load(problem, self.compile(problem, bind(candidate(5))))


def test_the_vendor_library_that_took_turns_with_the_finalists_is_kept(store: Store) -> None:
    calls = []

    def alone(problem: Problem, threads: int, seed: int, target: str) -> Vendor:
        calls.append(target)
        return fakes.vendor(problem, threads, seed, target)

    def bench(order: Order, how: BenchSettings) -> AbstractBench:
        return LocalBench(order, LibraryTarget(), np.random.default_rng(how.seed))

    parts = fakes.composition(bench=bench, vendor=alone)
    events: list[Event] = []
    tuned = begin(fakes.settings(), parts, store, Interruption(), observe=events.append)
    assert calls == ["fake"]  # before the search; not again behind the finals
    vendor = store.run(tuned.run.id).vendor
    assert vendor is not None
    assert (vendor.name, vendor.measurement.median_s) == ("FakeBLAS 1.0", time_of(5))
    assert VendorMeasured(vendor) in events


def test_waiting_for_compiles_is_told_as_idle(store: Store) -> None:
    trials = 6
    tuned = begin(fakes.settings(trials), fakes.composition(bench=slow_bench), store, Interruption())
    run = store.run(tuned.run.id)
    assert run.idle_s is not None
    assert run.search_s is not None
    assert trials * COMPILE_S <= run.idle_s <= run.search_s <= tuned.seconds


def test_what_an_earlier_session_measured_is_not_counted_again(store: Store) -> None:
    tuned = begin(fakes.settings(6), fakes.composition(bench=slow_bench), store, Interruption())
    before = store.run(tuned.run.id)
    resume(tuned.run.id, fakes.composition(bench=slow_bench), store, Interruption())
    after = store.run(tuned.run.id)
    assert None not in (before.search_s, before.idle_s, after.search_s, after.idle_s)
    searched_s = (after.search_s or 0.0) - (before.search_s or 0.0)
    assert (after.idle_s or 0.0) - (before.idle_s or 0.0) == pytest.approx(searched_s)
    assert searched_s > 0
