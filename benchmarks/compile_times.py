"""Times ``tuner.torch.compile`` of whole networks in new processes, without compiled files and with them.

    python -m benchmarks.compile_times --networks googlenet

Prints, for each process, seconds of the imports and of ``compile``, and the largest error relative to eager.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

import torch

from benchmarks.model_zoo.networks import NETWORKS

RUNS = ("no files", "files", "files")


def main() -> None:
    """Runs the benchmark, or with --here compiles one network in this process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--here", action="store_true", help="in this process, with the files that there are")
    options = parser.parse_args()
    for name in options.networks:
        if options.here:
            print(_compiled(name))
            continue
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "benchmarks.compile_times", "--here", "--networks", name]
            for run in RUNS:
                environment = os.environ | {"XDG_CACHE_HOME": folder, "XDG_DATA_HOME": folder}
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
                print(f"{name:16s} {run:9s} {done.stdout.strip()}", flush=True)


def _compiled(name: str) -> str:
    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    module, x = NETWORKS[name]().eval(), torch.randn(1, 3, 224, 224)
    start_s = time.perf_counter()
    import tuner.torch

    imported_s = time.perf_counter()
    program = tuner.torch.compile(module, (x,))
    compiled_s = time.perf_counter()
    found, expected = program(x), module(x)
    error = float((found - expected).abs().max() / expected.abs().max())
    return f"import {imported_s - start_s:.2f} s, compile {compiled_s - imported_s:.2f} s, error {error:.1e}"


if __name__ == "__main__":
    main()
