"""Commands of the tuner, run in this process."""

import re
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from benchmarks.golden_hashes.tuner_names import main

ADDRESS = re.compile(r"base@ = 0x[0-9a-f]+")  # of an array that a program prints


@dataclass(frozen=True)
class CommandLine:
    """Runs commands on one database."""

    database: Path

    def printed(self, *options: str) -> str:
        """Returns the output of a command, without addresses. Raises RuntimeError where the command fails."""
        done = CliRunner().invoke(main, options, env={"TUNER_DB": str(self.database)})
        if done.exit_code != 0:
            raise RuntimeError(f"tuner {' '.join(options)}: exit code {done.exit_code}: {done.stderr}")
        return ADDRESS.sub("base@ = 0x0", done.stdout)
