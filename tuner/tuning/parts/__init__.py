"""What a run is composed of: real, recorded, in child processes."""
