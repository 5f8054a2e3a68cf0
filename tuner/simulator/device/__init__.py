"""A GPU made of host memory: lazy streams in adversarial order, simulated PTX, races by vector clocks."""
