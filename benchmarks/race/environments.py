"""Environments of the peers: one each under ``build/race``, so that none meets another's libraries."""

import json
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.race.peer import Peer

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "race"
INSTALL_TORCH = ROOT / "benchmarks" / "install_torch.py"
LIMIT_S = 1800
NICE = ("nice", "-n", "15")
DISTRIBUTIONS = """import json, sys
from importlib.metadata import version
print(json.dumps([version(name) for name in sys.argv[1:]]))"""


@dataclass(frozen=True)
class PeerEnvironment:
    """An interpreter that has a peer, and the peer's version; or the reason that there is none."""

    python: Path
    version: str = ""
    reason: str = ""


def environment_of(peer: Peer) -> PeerEnvironment:
    """Returns the environment of a peer: its own, or tuner's where it requires nothing."""
    if peer.version is not None:
        return PeerEnvironment(Path(sys.executable), peer.version())
    if not peer.requirements:
        return PeerEnvironment(Path(sys.executable), version(peer.package))
    python = folder_of(peer) / "bin" / "python"
    if not python.exists():
        return PeerEnvironment(python, reason="not installed: python -m benchmarks.race --install")
    asked = subprocess.run(
        (str(python), "-c", DISTRIBUTIONS, peer.package), capture_output=True, text=True, check=False
    )
    if asked.returncode != 0:
        return PeerEnvironment(python, reason=f"{peer.package} is not in its environment")
    (found,) = json.loads(asked.stdout)
    return PeerEnvironment(python, found)


def folder_of(peer: Peer) -> Path:
    """Returns the folder of a peer's environment; peers of one package share it."""
    return FOLDER / "environments" / peer.package


def install(peer: Peer) -> str:
    """Makes the environment of a peer; returns why that failed, "" where it is there."""
    if not peer.requirements or not environment_of(peer).reason:
        return ""
    folder = folder_of(peer)
    folder.parent.mkdir(parents=True, exist_ok=True)
    python = str(folder / "bin" / "python")
    steps = [
        (sys.executable, "-m", "venv", "--clear", str(folder)),
        (python, "-m", "pip", "install", "--quiet", *peer.requirements),
    ]
    if peer.package == "torch":
        steps.append((python, str(INSTALL_TORCH)))
    for step in steps:
        if failure := _failure(step):
            return failure
    return environment_of(peer).reason


def _failure(words: tuple[str, ...]) -> str:
    try:
        done = subprocess.run((*NICE, *words), capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"takes longer than {LIMIT_S} s"
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines()
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or [f"ends with {done.returncode}"])[-1]
