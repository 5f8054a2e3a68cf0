import pytest

from tuner.core.errors import UsageError
from tuner.fleet.tables import FleetSettings


def test_several_heartbeats_fit_a_lease() -> None:
    assert FleetSettings(lease_s=30.0).beat_s == 10.0


@pytest.mark.parametrize("lease_s", [0.5, 0.0, float("nan")])
def test_a_lease_that_heartbeats_cannot_keep_is_refused(lease_s: float) -> None:
    with pytest.raises(UsageError, match=r"lease: found .* s, allowed 1 s or more"):
        FleetSettings(lease_s)
