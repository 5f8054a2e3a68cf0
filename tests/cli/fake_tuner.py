"""``python -m tests.cli.fake_tuner SECONDS ...``: the real command; a fake target times for so long."""

import sys
import tempfile

from tests.tuning import fakes
from tuner.cli import main
from tuner.runtime.workers.protocol import Factory

if __name__ == "__main__":
    seconds = float(sys.argv.pop(1))
    with tempfile.TemporaryDirectory() as log:
        target = Factory("tests.fakes:ClockedTarget", (log, 0.0, seconds))
        main(obj=fakes.backends(runner=fakes.worker_runner(target)))
