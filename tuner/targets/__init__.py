"""Kinds of machines, one file each. A new target is a file and a line here."""

TARGETS = {  # name -> where it lives; imported when it is used
    "cpu": "tuner.targets.cpu:CpuTarget",
    "cuda": "tuner.targets.cuda:CudaTarget",
    "simulator": "tuner.targets.simulator:SimulatorTarget",
}
