"""The commands of libraries and bundles, as ``tuner.cli`` reads them."""

from typing import Final

COMMANDS: Final = {
    "Export": {
        "tuner.models.library.commands.export:export": (
            "Writes the best transform script of a problem, or that of a trial, or what --format names."
        ),
        "tuner.models.library.commands.apply:apply": (
            "Applies a transform script of any origin to a payload and prints the result; - is stdin."
        ),
    },
    "Measure on other machines": {
        "tuner.elsewhere.commands.bundle:bundle": (
            "Carries compiled candidates to a machine with a GPU, and the results back."
        ),
        "tuner.elsewhere.commands.bundle:measure": (
            "Verifies and times candidates on the GPU here, the most promising first."
        ),
    },
}
