"""Values and ports (abstract interfaces) that all packages share; imports no other package of tuner."""
