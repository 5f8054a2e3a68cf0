"""The commands of fleets, as ``tuner.cli`` reads them."""

from typing import Final

COMMANDS: Final = {
    "Measure on other machines": {
        "tuner.elsewhere.fleet.commands.fleet:fleet": (
            "Lets other machines compile and measure; all of them use the PostgreSQL database of the results."
        ),
    },
}
