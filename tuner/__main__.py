"""``python -m tuner`` is the command ``tuner``."""

from tuner.cli import main

if __name__ == "__main__":
    main(prog_name="tuner")
