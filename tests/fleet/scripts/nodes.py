"""Scripts are run with programs that tell what they were given in place of those that they would start."""

import os
import subprocess
import sys
from pathlib import Path

URL = "postgresql://tuner@db.example.org/tuner"
TELLS = f"""#!{sys.executable}
import os
import sys

print([sys.argv[1:], {{key: value for key, value in os.environ.items() if key.startswith(("TUNER", "PG"))}}])
"""


def run_with(folder: Path, script: str, **programs: str) -> str:
    """Runs a shell script where only the programs given, nohup and env are found; returns what it prints."""
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    for name in ("bash", "nohup", "sh"):
        found = next(Path(place) / name for place in os.defpath.split(":") if (Path(place) / name).exists())
        (folder / name).symlink_to(found)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def assert_is_bash(script: str) -> None:
    """Lets bash read a script without running it."""
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
