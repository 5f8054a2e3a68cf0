"""A copy of a module in its context, which shares the data of its constants."""

from tuner.mlir.bindings import ir


def copy_of(module: ir.Module) -> ir.Module:
    """Returns the module with ops of its own and the same locations.

    Printing and parsing would do the same, with each ``dense_resource`` as text twice its size.
    """
    copied = ir.Module.create(module.operation.location)
    for name in module.operation.attributes:
        copied.operation.attributes[name] = module.operation.attributes[name]
    for op in module.body.operations:
        op.operation.clone(ip=ir.InsertionPoint(copied.body))
    return copied
