from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fleet.values import node
from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError
from tuner.core.requests import FleetRequest
from tuner.fleet import tables
from tuner.fleet.runner import fleet_backends, pending_limit, target_on
from tuner.targets.registry import real_backends

if TYPE_CHECKING:
    from tuner.fleet.server import Connection

pytestmark = pytest.mark.postgres


def join(connection: "Connection", name: str, machine: str, target: str) -> None:
    described = replace(node(name).machine, name=machine)
    tables.join(connection, node(name, machine=described, target=target, device=f"device of {name}"))


def test_more_devices_have_more_proposals_in_flight() -> None:
    assert [pending_limit(devices) for devices in (1, 2, 4)] == [3, 6, 10]


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
    backends = fleet_backends(real_backends(), FleetRequest(fleet_url))
    target = TargetName("cpu", "znver4")
    with pytest.raises(
        UsageError, match="no node measures cpu:znver4; tuner fleet worker --target cpu:znver4"
    ):
        backends.outcomes(target).machine(target)


def test_a_run_without_devices_is_refused() -> None:
    with pytest.raises(UsageError, match="devices: found 0, allowed 1 or more"):
        FleetRequest("postgresql://x/y", devices=0)
