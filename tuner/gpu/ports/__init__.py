"""What this package offers to programs, by the ports of ``tuner.runtime.programs.devices``."""
