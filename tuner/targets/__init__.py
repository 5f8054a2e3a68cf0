"""Kinds of machines, one file each. A new target is a file and a line here."""

TARGETS = {"cpu": "tuner.targets.cpu:CpuTarget"}  # name -> where it lives; imported when it is used
