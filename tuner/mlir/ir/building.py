"""Builders of payload ops at the current insertion point.

In this order: any op, memrefs and constants, arithmetic of indices, comparisons, vectors, ``scf.if``,
``scf.for``, views, linalg on tensors, loops over the elements of memrefs.
"""

from collections.abc import Callable, Sequence

from tuner.mlir.bindings import Attribute, Op, Type, Value, ir

Build = Callable[[], Value | None]  # builds the body of a region; returns the value to yield, if any
LOOP_ANNOTATION = "llvm.loop_annotation"  # of an scf.for; its lowering hands it on to LLVM
DYNAMIC = ir.ShapedType.get_dynamic_size()  # a size, an offset or a stride that is an operand, in their lists
NOT_UNROLLED = "#llvm.loop_annotation<unroll = <disable = true>>"
PREDICATES = {"eq": 0, "ne": 1, "slt": 2, "ult": 6, "ule": 7}  # of arith.cmpi
Body = Callable[..., Value]  # creates the scalar ops from one element of each operand; returns the result
PARALLEL = "parallel"
REDUCTION = "reduction"


def create(
    name: str, results: Sequence[Type] = (), operands: Sequence[Value] = (), **attributes: Attribute
) -> Op:
    """Creates an op without regions, such as "arith.addi", at the current insertion point; returns the op."""
    return ir.Operation.create(
        name, results=list(results), operands=list(operands), attributes=dict(attributes)
    )


def recreated(op: Op, results: Sequence[Type], operands: Sequence[Value], **attributes: Attribute) -> Op:
    """Creates an op with the name and attributes of ``op``, and empty regions; returns it.

    ``attributes`` are added, or replace those of the same name. ``op`` stays.
    """
    kept = {attribute: op.attributes[attribute] for attribute in op.attributes}
    return ir.Operation.create(
        op.name,
        results=list(results),
        operands=list(operands),
        attributes=kept | attributes,
        regions=len(op.regions),
    )


def value(name: str, result: Type, *operands: Value, **attributes: Attribute) -> Value:
    """Creates an op with one result, of type ``result``, and without regions; returns the result value."""
    return create(name, [result], operands, **attributes).results[0]


def fetch(buffer: Value, *indices: Value, locality: int = 2) -> None:
    """Creates the prefetch of ``buffer[indices]`` for reading (``memref.prefetch``).

    ``locality``: 3 keeps the line in every cache level, 0 in none.
    """
    flags = {name: ir.BoolAttr.get(name == "isDataCache") for name in ("isWrite", "isDataCache")}
    hint = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), locality)
    create("memref.prefetch", [], [buffer, *indices], localityHint=hint, **flags)


def stack_buffer(type_: ir.MemRefType) -> Value:
    """Creates a buffer of static size on the stack, aligned to 64 bytes, a cache line; returns it."""
    alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64)
    segments = ir.DenseI32ArrayAttr.get([0, 0])
    return value("memref.alloca", type_, operandSegmentSizes=segments, alignment=alignment)


def index(number: int) -> Value:
    """Creates an ``arith.constant`` of type index; returns its value."""
    type_ = ir.IndexType.get()
    return value("arith.constant", type_, value=ir.IntegerAttr.get(type_, number))


def as_index(number: int | Value) -> Value:
    """Creates the index constant of an integer and returns its value; returns a value as it is."""
    if isinstance(number, int):
        return index(number)
    return number


def size_of(buffer: Value, dimension: int) -> Value:
    """Creates the size of a memref along a dimension as an index: a constant, or ``memref.dim``."""
    if not buffer.type.is_dynamic_dim(dimension):
        return index(buffer.type.shape[dimension])
    return value("memref.dim", ir.IndexType.get(), buffer, index(dimension))


def dynamic_sizes(buffer: Value) -> list[Value]:
    """Creates one index per dynamic dimension of a memref: operands to allocate a memref like it."""
    dimensions = range(buffer.type.rank)
    return [size_of(buffer, dimension) for dimension in dimensions if buffer.type.is_dynamic_dim(dimension)]


def splat(type_: Type, number: float) -> Value:
    """Creates the constant ``number`` of a float or integer type; of a vector type, in each element."""
    if not isinstance(type_, ir.VectorType):
        return value("arith.constant", type_, value=number_attribute(type_, number))
    attribute = number_attribute(type_.element_type, number)
    return value("arith.constant", type_, value=ir.DenseElementsAttr.get_splat(type_, attribute))


def zero(type_: Type) -> Value:
    """Creates the constant 0 of a float or integer type, or of a vector type of such elements."""
    return splat(type_, 0)


def number_attribute(type_: Type, number: float) -> ir.Attribute:
    """Returns a number as an attribute of a float, integer or index type."""
    if isinstance(type_, ir.FloatType):
        return ir.FloatAttr.get(type_, float(number))
    return ir.IntegerAttr.get(type_, int(number))


def affine(expression: ir.AffineExpr, *symbols: Value) -> Value:
    """Creates ``affine.apply`` of an expression over s0, s1, ..., which are the values ``symbols``."""
    mapping = ir.AffineMapAttr.get(ir.AffineMap.get(0, len(symbols), [expression]))
    return value("affine.apply", ir.IndexType.get(), *symbols, map=mapping)


def symbol(number: int) -> ir.AffineExpr:
    """Returns the affine expression of one symbol: ``s0``, ``s1``, ... by its index."""
    return ir.AffineExpr.get_symbol(number)


def plus(base: Value, distance: int) -> Value:
    """Creates ``base + distance`` of type index; returns ``base`` if the distance is 0."""
    if distance == 0:
        return base
    return value("arith.addi", ir.IndexType.get(), base, index(distance))


def total(left: Value, right: Value) -> Value:
    """Creates the sum of two values of type index."""
    return value("arith.addi", ir.IndexType.get(), left, right)


def times(number: Value, factor: int) -> Value:
    """Creates ``number * factor`` of type index; returns ``number`` if the factor is 1."""
    if factor == 1:
        return number
    return value("arith.muli", ir.IndexType.get(), number, index(factor))


def delinearized(number: Value, sizes: list[Value]) -> list[Value]:
    """Creates the indices, one per dimension of ``sizes``, of element ``number`` in row-major order."""
    indices: list[Value] = []
    for size in reversed(sizes[1:]):
        indices.append(value("arith.remui", number.type, number, size))
        number = value("arith.divui", number.type, number, size)
    if sizes:
        return [number, *reversed(indices)]
    return []


def is_less(left: Value, right: Value) -> Value:
    """Creates the signed comparison ``left < right`` of two index or integer values; returns its i1 value."""
    return compared("slt", left, right)


def is_equal(left: Value, right: Value) -> Value:
    """Creates the comparison ``left == right`` of two index or integer values; returns its i1 value."""
    return compared("eq", left, right)


def compared(predicate: str, left: Value, right: Value) -> Value:
    """Creates ``arith.cmpi`` of two index or integer values; returns its i1 value.

    ``predicate``: "eq", "ne", "slt", "ult" or "ule". Of two vectors the value is a vector of i1.
    """
    truth = ir.IntegerType.get_signless(1)
    if isinstance(left.type, ir.VectorType):
        truth = ir.VectorType.get(left.type.shape, truth)
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), PREDICATES[predicate])
    return value("arith.cmpi", truth, left, right, predicate=number)


def integers(numbers: Sequence[int]) -> Attribute:
    """Returns an array attribute of i64 integers, such as the offsets of a slice."""
    type_ = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.IntegerAttr.get(type_, number) for number in numbers])


def piece(vector: Value, offset: int, size: int) -> Value:
    """Creates the slice of ``size`` elements from ``offset`` on of a 1-D vector; returns the slice.

    A vector of ``size`` elements is returned as it is.
    """
    type_ = ir.VectorType(vector.type)
    if type_.shape[0] == size:
        return vector
    part = ir.VectorType.get([size], type_.element_type)
    attributes = {"offsets": integers([offset]), "sizes": integers([size]), "strides": integers([1])}
    return value("vector.extract_strided_slice", part, vector, **attributes)


def element_of(vector: Value, number: int) -> Value:
    """Creates the extraction of element ``number`` of a 1-D vector; returns the scalar."""
    position = ir.DenseI64ArrayAttr.get([number])
    return value("vector.extract", ir.VectorType(vector.type).element_type, vector, static_position=position)


def line_of(vector: Value, number: int) -> Value:
    """Creates the extraction of row ``number`` of a vector; returns the row, of one dimension less."""
    type_ = ir.VectorType(vector.type)
    line = ir.VectorType.get(type_.shape[1:], type_.element_type)
    return value("vector.extract", line, vector, static_position=ir.DenseI64ArrayAttr.get([number]))


def with_line(vector: Value, number: int, line: Value) -> Value:
    """Creates the insertion of a 1-D vector as row ``number`` of a 2-D vector; returns the new 2-D vector."""
    position = ir.DenseI64ArrayAttr.get([number])
    return value("vector.insert", vector.type, line, vector, static_position=position)


def deinterleaved(vector: Value, size: int) -> list[Value]:
    """Creates the split of a 1-D vector into p vectors of ``size`` elements; returns these.

    Part i has the elements i, i + p, i + 2 p, ...; p must be a power of 2.
    """
    type_ = ir.VectorType(vector.type)
    parts = [vector]
    count = type_.shape[0]
    while count > size:
        count //= 2
        half = ir.VectorType.get([count], type_.element_type)
        pairs = [create("vector.deinterleave", [half, half], [part]).results for part in parts]
        parts = [pair[0] for pair in pairs] + [pair[1] for pair in pairs]
    return parts


def branch(
    condition: Value, then: Build, otherwise: Build | None = None, result: Type | None = None
) -> Value | None:
    """Creates ``scf.if``; ``then`` and ``otherwise`` build its regions.

    With a ``result`` type both must return a value of it, and the op's result is returned; without one, None.
    """
    results = [] if result is None else [result]
    op = ir.Operation.create("scf.if", results=results, operands=[condition], regions=2)
    for region, build in zip(op.regions, (then, otherwise), strict=True):
        if build is not None:
            with ir.InsertionPoint(region.blocks.append()):
                built = build()
                create("scf.yield", [], [] if result is None else [built])
    if result is None:
        return None
    return op.results[0]


def branch_values(
    condition: Value, then: Callable[[], Sequence[Value]], otherwise: Sequence[Value]
) -> list[Value]:
    """Creates ``scf.if`` with several results: those that ``then`` builds, else the values ``otherwise``."""
    types = [other.type for other in otherwise]
    op = ir.Operation.create("scf.if", results=types, operands=[condition], regions=2)
    with ir.InsertionPoint(op.regions[0].blocks.append()):
        create("scf.yield", [], then())
    with ir.InsertionPoint(op.regions[1].blocks.append()):
        create("scf.yield", [], otherwise)
    return list(op.results)


def loop(
    first: int | Value,
    end: int | Value,
    body: Callable[..., Sequence[Value]],
    carried: Sequence[Value] = (),
    step: int | Value = 1,
    *,
    is_rolled: bool = False,
) -> list[Value]:
    """Creates ``scf.for`` from ``first`` to ``end`` (exclusive) by ``step``; returns its results.

    ``carried``: the initial values. ``body(index, *values)`` creates an iteration and returns the next
    values, () if there are none. ``is_rolled``: LLVM must not unroll the loop.
    """
    op = _loop(first, end, body, carried, step)
    if is_rolled:
        op.attributes[LOOP_ANNOTATION] = ir.Attribute.parse(NOT_UNROLLED)
    return list(op.results)


def for_each(first: int | Value, end: int | Value, body: Callable[[Value], None]) -> Op:
    """Creates ``scf.for`` from ``first`` to ``end`` (exclusive) in steps of 1, without values; returns it."""

    def iteration(number: Value) -> tuple[()]:
        body(number)
        return ()

    return _loop(first, end, iteration)


def rolled_loop(first: int | Value, end: int | Value, body: Callable[[Value], None]) -> None:
    """Creates ``scf.for`` from ``first`` to ``end`` (exclusive) in steps of 1, which LLVM must not unroll."""
    for_each(first, end, body).attributes[LOOP_ANNOTATION] = ir.Attribute.parse(NOT_UNROLLED)


def _loop(
    first: int | Value,
    end: int | Value,
    body: Callable[..., Sequence[Value]],
    carried: Sequence[Value] = (),
    step: int | Value = 1,
) -> Op:
    bounds = list(map(as_index, (first, end, step)))
    types = [initial.type for initial in carried]
    op = ir.Operation.create("scf.for", results=types, operands=[*bounds, *carried], regions=1)
    block = op.regions[0].blocks.append(bounds[0].type, *types)
    with ir.InsertionPoint(block):
        create("scf.yield", [], body(*block.arguments))
    return op


def reinterpreted(
    array: Value,
    type_: ir.MemRefType,
    *,
    offsets: Sequence[Value] = (),
    sizes: Sequence[Value] = (),
    steps: Sequence[Value] = (),
) -> Value:
    """Creates a view of the memory of ``array`` with another memref type (``memref.reinterpret_cast``).

    ``offsets``, ``sizes``, ``steps``: indices, one for each that is dynamic in ``type_``.
    """
    strides, offset = type_.get_strides_and_offset()
    return value(
        "memref.reinterpret_cast",
        type_,
        *[array, *offsets, *sizes, *steps],
        static_offsets=ir.DenseI64ArrayAttr.get([offset]),
        static_sizes=ir.DenseI64ArrayAttr.get(list(type_.shape)),
        static_strides=ir.DenseI64ArrayAttr.get(list(strides)),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, len(offsets), len(sizes), len(steps)]),
    )


def dimensions(count: int) -> list[ir.AffineExpr]:
    """Returns the affine expressions d0, d1, ... of ``count`` dimensions."""
    return list(map(ir.AffineDimExpr.get, range(count)))


def generic(
    inputs: Sequence[Value],
    start: Value,
    maps: Sequence[Sequence[ir.AffineExpr]],
    iterators: Sequence[str],
    body: Body,
) -> Op:
    """Creates a ``linalg.generic`` on tensors with one result, initially ``start``; returns the op.

    ``maps``: the indices of each input and of the output, in dimensions d0, d1, ... of ``iterators``
    (PARALLEL or REDUCTION). ``body``: creates the scalar ops, given one element of each input and of the
    output.
    """
    operands = [*inputs, start]
    iterator_types = [ir.Attribute.parse(f"#linalg.iterator_type<{iterator}>") for iterator in iterators]
    affine_maps = [
        ir.AffineMapAttr.get(ir.AffineMap.get(len(iterators), 0, list(results))) for results in maps
    ]
    op = ir.Operation.create(
        "linalg.generic",
        results=[start.type],
        operands=operands,
        attributes={
            "indexing_maps": ir.ArrayAttr.get(affine_maps),
            "iterator_types": ir.ArrayAttr.get(iterator_types),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), 1]),
        },
        regions=1,
    )
    block = op.regions[0].blocks.append(*(operand.type.element_type for operand in operands))
    with ir.InsertionPoint(block):
        create("linalg.yield", [], [body(*block.arguments)])
    return op


def filled_tensor(number: Value, tensor: Value) -> Value:
    """Creates ``linalg.fill`` of ``tensor`` with ``number``; returns the filled tensor."""
    return _yielding_input("linalg.fill", number, tensor)


def copied_tensor(source: Value, tensor: Value) -> Value:
    """Creates ``linalg.copy`` of ``source`` into ``tensor``; returns the resulting tensor."""
    return _yielding_input("linalg.copy", source, tensor)


def _yielding_input(name: str, source: Value, tensor: Value) -> Value:
    segments = ir.DenseI32ArrayAttr.get([1, 1])
    op = ir.Operation.create(
        name, [tensor.type], [source, tensor], {"operandSegmentSizes": segments}, regions=1
    )
    element = tensor.type.element_type
    block = op.regions[0].blocks.append(element, element)
    with ir.InsertionPoint(block):
        create("linalg.yield", [], [block.arguments[0]])
    return op.results[0]


def load(source: Value, indices: list[Value]) -> Value:
    """Creates ``memref.load`` of the element of ``source`` at ``indices``; returns its value."""
    return value("memref.load", source.type.element_type, source, *indices)


def store(element: Value, target: Value, indices: list[Value]) -> None:
    """Creates ``memref.store`` of the value ``element`` to ``target`` at ``indices``."""
    create("memref.store", [], [element, target, *indices])


def for_each_element(buffer: Value, build: Callable[[list[Value]], None]) -> None:
    """Creates an ``scf.parallel`` loop over all elements of a memref, or for rank 0 just ``build([])``."""
    rank = len(buffer.type.shape)
    if rank == 0:
        build([])
        return
    bounds = [index(0)] * rank + [size_of(buffer, number) for number in range(rank)] + [index(1)] * rank
    segments = ir.DenseI32ArrayAttr.get([rank, rank, rank, 0])
    parallel = ir.Operation.create(
        "scf.parallel", operands=bounds, attributes={"operandSegmentSizes": segments}, regions=1
    )
    location = parallel.location
    body = parallel.regions[0].blocks.append(*[ir.IndexType.get()] * rank, arg_locs=[location] * rank)
    with location, ir.InsertionPoint(body):
        build(list(body.arguments))
        ir.Operation.create("scf.reduce")


def copy(source: Value, target: Value) -> None:
    """Creates the parallel loop that copies ``source`` to ``target``, memrefs of the same shape."""
    for_each_element(target, lambda indices: store(load(source, indices), target, indices))


def add_to(target: Value, source: Value) -> None:
    """Creates the parallel loop that adds ``source`` to ``target``, memrefs of floats of the same shape."""

    def element(indices: list[Value]) -> None:
        old = load(target, indices)
        more = load(source, indices)
        store(value("arith.addf", old.type, old, more), target, indices)

    for_each_element(target, element)


def clear(target: Value) -> None:
    """Creates the parallel loop that sets every element of the memref ``target`` to zero."""
    fill(target, zero(target.type.element_type))


def fill(target: Value, element: Value) -> None:
    """Creates the parallel loop that sets every element of the memref ``target`` to the value ``element``."""
    for_each_element(target, lambda indices: store(element, target, indices))
