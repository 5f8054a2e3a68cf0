"""The commands of whole programs, as ``tuner.cli`` reads them."""

from typing import Final

COMMANDS: Final = {
    "Tune": {
        "tuner.models.commands.judge:judge": (
            "Verifies and times a script that somebody else wrote; prints one JSON document."
        ),
    },
    "Export": {
        "tuner.models.commands.c_library:c_library": (
            "Writes a program that Python exported, program.export(FOLDER), as a library for C programs."
        ),
    },
    "Programs": {
        "tuner.models.commands.run:run": (
            "Compiles and runs an MLIR program of one or more operations; '-' reads the program from stdin."
        ),
        "tuner.models.commands.lower:lower": (
            "Prints an MLIR program, or an operation with its script, after a step of its lowering; - "
            "is stdin."
        ),
        "tuner.gpu.commands.ptx:ptx": (
            "Simulates a kernel of a PTX file; reports its instructions, shared-memory conflicts and races."
        ),
    },
}
