import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fleet.values import node
from tests.tuning import fakes
from tuner.core.errors import UsageError
from tuner.core.target_name import TargetName
from tuner.fleet import tables
from tuner.fleet.driver import FleetRequest
from tuner.fleet.kind import FleetRun, fleet_composition, named, pending_limit, target_on
from tuner.fleet.server import session
from tuner.tuning.parts.real import real_composition

if TYPE_CHECKING:
    from tuner.fleet.server import Connection

pytestmark = pytest.mark.postgres


def join(connection: "Connection", name: str, machine: str, target: str) -> None:
    described = replace(node(name).machine, name=machine)
    tables.join(connection, node(name, machine=described, target=target, device=f"device of {name}"))


def test_more_devices_have_more_proposals_in_flight() -> None:
    assert [pending_limit(devices) for devices in (1, 2, 4)] == [3, 6, 10]


def test_a_whole_name_is_itself_and_words_are_in_names() -> None:
    machines = {"H200": 1, "H200 NVL": 2, "A100": 3}
    assert named(machines, "H200") == {"H200": 1}
    assert named(machines, "nvl") == {"H200 NVL": 2}
    assert named(machines, "h200") == {"H200": 1, "H200 NVL": 2}
    assert named(machines, "") == machines


def test_classes_of_machines_are_named_by_options(connection: "Connection", shared_url: str) -> None:
    join(connection, "a", "NVIDIA H200", "cuda:sm_90")
    join(connection, "b", "NVIDIA A100", "cuda:sm_80")
    join(connection, "c", "EPYC", "cpu")
    fleet = FleetRequest(shared_url)
    assert target_on(fleet, "a100", "cuda").text == "cuda:sm_80"
    assert target_on(fleet, "epyc", "auto").text == "cpu"
    listed = r"allowed a part of the name of one of NVIDIA A100 \(cuda:sm_80\), NVIDIA H200 \(cuda:sm_90\)$"
    with pytest.raises(UsageError, match=rf"--on: found 'nvidia', {listed}"):
        target_on(fleet, "nvidia", "cuda")
    with pytest.raises(UsageError, match=rf"--on: found 'epyc', {listed}"):
        target_on(fleet, "epyc", "cuda")


def test_a_described_processor_is_measured_for_by_nodes_too(fleet_url: str) -> None:
    composition = fleet_composition(real_composition(), FleetRequest(fleet_url))
    target = TargetName("cpu", "znver4")
    with pytest.raises(
        UsageError, match="no node measures cpu:znver4; tuner fleet worker --target cpu:znver4"
    ):
        composition.outcomes(target).machine(target)


def test_a_run_without_devices_is_refused() -> None:
    with pytest.raises(UsageError, match="devices: found 0, allowed 1 or more"):
        FleetRequest("postgresql://x/y", devices=0)


def test_more_devices_than_measure_are_refused_before_a_run_is_stored(fleet_url: str) -> None:
    with session(fleet_url) as connection:
        for name in ("a", "b"):
            tables.join(connection, node(name, device=f"device of {name}"))
    for devices, allowed in ((2, None), (3, "devices: found 3, allowed 1 to 2: nodes measure on so many")):
        run = FleetRun(fakes.FAKE.outcomes, FleetRequest(fleet_url, devices=devices))
        with contextlib.nullcontext() if allowed is None else pytest.raises(UsageError, match=allowed):
            run.machine(TargetName("fake"))
