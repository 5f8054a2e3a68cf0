"""The parts of a run for each kind of target: real, simulated, recorded; and their child processes."""
