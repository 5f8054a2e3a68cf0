"""The commands of a fleet: nodes, status, scripts that start nodes."""
