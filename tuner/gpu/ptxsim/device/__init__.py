"""A GPU simulated in host memory: streams that run lazily and adversarially, PTX, races by vector clocks."""
