"""Blocks of random host programs: their statements, with nested loops and branches."""

from dataclasses import replace

from tests.support.fuzzing.host_program_writer import MemrefVariable, ProgramFeatures, ProgramWriter
from tests.support.fuzzing.host_statements import Statement, is_fit, launch, multiply, simple_statements

DEPTH = 2  # of loops and branches in one another


def block(writer: ProgramWriter, outer: list[MemrefVariable], depth: int) -> list[MemrefVariable]:
    """Writes statements; returns the buffers that the statements allocated and did not free."""
    scope = list(outer)
    own: list[MemrefVariable] = []
    for _ in range(writer.number(1, 5)):
        statement = writer.choose(_statements(writer.features, depth))
        made = statement(writer, scope, depth)
        if made is not None:
            scope.append(made)
            if made.root == made.name:
                own.append(made)
    return own


def _statements(features: ProgramFeatures, depth: int) -> list[Statement]:
    choices = simple_statements(features)
    if depth < DEPTH:
        choices += [_for, _for, _if, _while, _chains]
        if features.swaps:
            choices += [_swap, _choose]
    return choices


def free(writer: ProgramWriter, own: list[MemrefVariable]) -> None:
    """Frees allocated buffers, or leaves that to the compiler."""
    for variable in own:
        if not (writer.features.explicit and writer.flag()):
            dialect = "gpu" if variable.name in writer.on_device else "memref"
            writer.add(f"{dialect}.dealloc {variable.name} : {variable.type}")


def _for(writer: ProgramWriter, scope: list[MemrefVariable], depth: int) -> None:
    end = writer.choose(["%n", "%c0", "%c2", "%c3"])
    writer.add(f"scf.for {writer.name()} = %c0 to {end} step %c1 {{")
    _nested(writer, scope, depth)
    writer.add("}")


def _while(writer: ProgramWriter, scope: list[MemrefVariable], depth: int) -> None:
    count, go, last = writer.name(), writer.name(), writer.name()
    writer.add(f"{writer.name()} = scf.while ({count} = %c0) : (index) -> index {{")
    _nested(writer, scope, depth)
    writer.add(f"  {go} = arith.cmpi slt, {count}, %n : index")
    writer.add(f"  scf.condition({go}) {count} : index")
    writer.add("} do {")
    writer.add(f"^bb0({last}: index):")
    _nested(writer, scope, depth)
    following = writer.name()
    writer.add(f"  {following} = arith.addi {last}, %c1 : index")
    writer.add(f"  scf.yield {following} : index")
    writer.add("}")


def _if(writer: ProgramWriter, scope: list[MemrefVariable], depth: int) -> None:
    writer.add(f"scf.if {_condition(writer)} {{")
    _nested(writer, scope, depth)
    if writer.flag():
        writer.add("} else {")
        _nested(writer, scope, depth)
    writer.add("}")


def _condition(writer: ProgramWriter) -> str:
    if writer.flag():
        return "%flag"
    name = writer.name()
    writer.add(f"{name} = arith.cmpi slt, %n, %c2 : index")
    return name


def _nested(writer: ProgramWriter, scope: list[MemrefVariable], depth: int) -> None:
    writer.indent += 1
    free(writer, block(writer, scope, depth + 1))
    writer.indent -= 1


def _chains(writer: ProgramWriter, scope: list[MemrefVariable], depth: int) -> None:
    """Writes a loop of work on two buffers, which may also read others, or one another."""
    targets = [variable for variable in scope if variable.is_writable]
    pairs = [(one, other) for one in targets for other in targets if not _roots(one) & _roots(other)]
    if not pairs:
        return
    pair = writer.choose(pairs)
    writer.add(f"scf.for {writer.name()} = %c0 to {writer.choose(['%n', '%c2', '%c3'])} step %c1 {{")
    writer.indent += 1
    for number in range(writer.number(2, 5)):
        target = pair[number % 2]
        sources = [each for each in scope if is_fit(each, target)]
        if sources and writer.flag():
            multiply(writer, writer.choose(sources), target)
        else:
            _halve(writer, target)
    if writer.number(0, 3) == 0:
        free(writer, block(writer, scope, depth + 1))
    writer.indent -= 1
    writer.add("}")


def _halve(writer: ProgramWriter, target: MemrefVariable) -> None:
    body = [f"%x = memref.load {target.name}[%bx, %tx] : {target.type}", "%y = arith.mulf %x, %half : f32"]
    launch(writer, target, body, "%y")


def _roots(variable: MemrefVariable) -> set[str]:
    return set(variable.root.split("|"))


def _can_be_exchanged(writer: ProgramWriter, one: MemrefVariable, other: MemrefVariable) -> bool:
    """Returns whether control flow may choose one of two buffers: both or neither are shared memory."""
    roots = _roots(one) | _roots(other)
    return not roots & writer.shared or roots <= writer.shared


def _disjoint_pair(
    writer: ProgramWriter, scope: list[MemrefVariable]
) -> tuple[MemrefVariable, MemrefVariable] | None:
    """Returns two buffers of one type and of disjoint memory; None where there are none."""
    pairs = [
        (one, other)
        for one in scope
        for other in scope
        if one.type == other.type
        and not _roots(one) & _roots(other)
        and _can_be_exchanged(writer, one, other)
    ]
    pair: tuple[MemrefVariable, MemrefVariable] | None = writer.choose(pairs) if pairs else None
    return pair


def _swap(writer: ProgramWriter, scope: list[MemrefVariable], depth: int) -> MemrefVariable | None:
    """Writes a loop that passes two buffers crosswise: each iteration reads what the previous one wrote."""
    pair = _disjoint_pair(writer, [variable for variable in scope if variable.is_writable])
    if pair is None:
        return None
    one, other = pair
    root = "|".join({**dict.fromkeys(one.root.split("|")), **dict.fromkeys(other.root.split("|"))})
    names = [writer.name() for _ in range(4)]
    kinds = f"{one.type}, {other.type}"
    carried = f"{names[0]} = {one.name}, {names[1]} = {other.name}"
    writer.add(f"{names[2]}:2 = scf.for {names[3]} = %c0 to %n step %c1 iter_args({carried}) -> ({kinds}) {{")
    source, target = (replace(one, name=name, root=root) for name in names[:2])
    body = [f"%x = memref.load {source.name}[%bx, %tx] : {source.type}", "%y = arith.mulf %x, %scale : f32"]
    writer.indent += 1
    launch(writer, target, body, "%y")
    rest = [each for each in scope if not set(each.root.split("|")) & set(root.split("|"))]
    own = block(writer, [*rest, source, target], depth + 1)
    free(writer, own)
    writer.indent -= 1
    writer.add(f"  scf.yield {target.name}, {source.name} : {kinds}")
    writer.add("}")
    return replace(one, name=f"{names[2]}#{writer.number(0, 1)}", root=root)


def _choose(writer: ProgramWriter, scope: list[MemrefVariable], _: int) -> MemrefVariable | None:
    pair = _disjoint_pair(writer, scope)
    if pair is None:
        return None
    one, other = pair
    name = writer.name()
    writer.add(f"{name} = scf.if {_condition(writer)} -> {one.type} {{")
    writer.add(f"  scf.yield {one.name} : {one.type}")
    writer.add("} else {")
    writer.add(f"  scf.yield {other.name} : {one.type}")
    writer.add("}")
    is_writable = one.is_writable and other.is_writable
    return replace(one, name=name, root=f"{one.root}|{other.root}", is_writable=is_writable)
