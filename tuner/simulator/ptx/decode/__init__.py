"""Instructions -> Python functions over resident thread blocks; one group of instructions per file.

A decoder returns a step, which executes its instruction in all active lanes. The decoder of an instruction
that ends a basic block returns a terminator, which also moves lanes to their next basic block.
A decoder raises UnsupportedInstruction for operands that are not simulated; ``Modifiers.finish`` raises this
error for modifiers that the decoder did not consume.
"""
