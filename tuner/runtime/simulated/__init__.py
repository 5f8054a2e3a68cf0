"""A GPU made of host memory: lazy streams in adversarial order, PTX simulated, every race found."""
