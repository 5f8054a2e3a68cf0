"""A copy of a module in the same context, which shares the data of constants with the original."""

from tuner.mlir.bindings import ir


def copy_of(module: ir.Module) -> ir.Module:
    """Returns a deep copy of a module in the same MLIR context, with the same locations.

    Printing and parsing would do the same, but writes each ``dense_resource`` as text of twice its size.
    """
    copied = ir.Module.create(module.operation.location)
    for name in module.operation.attributes:
        copied.operation.attributes[name] = module.operation.attributes[name]
    for op in module.body.operations:
        op.operation.clone(ip=ir.InsertionPoint(copied.body))
    return copied
