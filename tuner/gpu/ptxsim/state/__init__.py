"""The state of a launch: arguments in memory, registers of resident blocks, fragments."""
