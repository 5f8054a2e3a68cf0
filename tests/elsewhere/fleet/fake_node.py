"""A node that compiles fakes while its disk takes them: ``python -m tests.elsewhere.fleet.fake_node URL``."""

import subprocess
import sys
from dataclasses import replace

from tests.elsewhere.fleet.values import Connection, work
from tests.tuning.fakes import FAKE, changed
from tuner.core.candidate import TargetName
from tuner.core.problem import Problem
from tuner.elsewhere.fleet import queues, tables
from tuner.elsewhere.fleet.node import NodeRequest, run_node
from tuner.elsewhere.fleet.work import FleetWork, compile_queue, compiler_build_of, hash_of
from tuner.runtime.workers.limits import Limits
from tuner.runtime.workers.protocol import Factory
from tuner.targets.target import RunnerChildren

REQUEST = NodeRequest(TargetName(FAKE.name), slots=1, keep_free_bytes=0)
COMPILER_BUILD = compiler_build_of(FAKE.compiler(REQUEST.target))


def children(_target: TargetName, _problem: Problem, _threads: int) -> RunnerChildren:
    both = Factory("tests.fakes:FakeTarget")
    return RunnerChildren(both, both, Limits(), device=FAKE.name)


def started_node(url: str, *before: str, device: str = "") -> "subprocess.Popen[str]":
    """Starts such a node, behind the words of another command; it says all on its standard output."""
    node = (sys.executable, "-u", "-m", "tests.elsewhere.fleet.fake_node", url, *([device] if device else []))
    return subprocess.Popen((*before, *node), stdout=subprocess.PIPE, text=True)


def queue_script(connection: Connection, run: str, script: bytes) -> FleetWork:
    asked = work(run, compiler_build=COMPILER_BUILD, blobs=(hash_of(script),))
    tables.store_blob(connection, hash_of(script), script)
    queues.defer(connection, compile_queue(COMPILER_BUILD), asked, 0, alone=False)
    return asked


if __name__ == "__main__":
    url, *device = sys.argv[1:]
    request = replace(REQUEST, has_device=bool(device), device="".join(device))
    is_well = run_node(url, request, changed(FAKE, children=children), lambda line: print(line))  # noqa: T201
    sys.exit(0 if is_well else 1)
