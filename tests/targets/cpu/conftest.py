"""A child process that forks for each kernel, for kernels that may crash or spoil their process."""

from collections.abc import Iterator

import pytest

from tuner.runtime.workers.protocol import Factory, ServiceSpec
from tuner.runtime.workers.worker import Worker


@pytest.fixture(scope="module")
def child(request: pytest.FixtureRequest) -> Iterator[Worker]:
    """A worker of the service that the module names as ``SERVICE``."""
    worker = Worker(ServiceSpec("forks", Factory(request.module.SERVICE)), memory_bytes=4 << 30)
    yield worker
    worker.kill()
