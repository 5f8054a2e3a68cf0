"""Simple statements of random host programs: memory, copies, kernels, work on the host."""

from collections.abc import Callable
from dataclasses import replace

from tests.support.fuzzing.host_program_writer import (
    COLUMNS,
    DYNAMIC,
    PLAIN,
    ROWS,
    MemrefVariable,
    ProgramFeatures,
    ProgramWriter,
)

SHARED = "gpu.alloc host_shared"
# Writes itself, given what is in scope and how deep it stands; returns the memref that it adds to the scope.
Statement = Callable[[ProgramWriter, list[MemrefVariable], int], MemrefVariable | None]


def simple_statements(features: ProgramFeatures) -> list[Statement]:
    """Returns the statements to choose from, common ones several times."""
    work: list[Statement] = [_kernel, _kernel, _kernel, _copy, _copy, _store, _load, _fill, _add]
    views: list[Statement] = [_view, _view, _two_views, _equal_views]
    choices = [_allocate, *work, *views]
    if features.globals:
        choices.append(_global)
    if features.calls:
        choices.append(_call)
    return choices


def _allocate(writer: ProgramWriter, _scope: list[MemrefVariable], _: int) -> MemrefVariable:
    name, kind = writer.name(), writer.choose([PLAIN, PLAIN, DYNAMIC])
    size = "%c4" if kind == DYNAMIC else ""
    stack = "alloca" if writer.number(0, 5) == 0 else "alloc"
    choices = [f"memref.{stack}"]
    if writer.features.explicit and stack == "alloc":
        choices += [choices[0], "gpu.alloc", SHARED]
    allocation = writer.choose(choices)
    writer.add(f"{name} = {allocation} ({size}) : {kind}")
    if allocation.startswith("gpu."):
        writer.on_device.add(name)
    if allocation == SHARED:
        writer.shared.add(name)
    made = MemrefVariable(name, kind, name)
    if stack == "alloca":
        made = replace(made, root=f"{name}_")  # frees itself
    writer.choose([_fill_with_kernel, _fill_on_host])(writer, made)
    return made


def _fill_with_kernel(writer: ProgramWriter, target: MemrefVariable) -> None:
    launch(writer, target, [], "%scale")


def _fill_on_host(writer: ProgramWriter, target: MemrefVariable) -> None:
    writer.write(target)
    writer.add(f"linalg.fill ins(%half : f32) outs({target.name} : {target.type})")


def _fill(writer: ProgramWriter, scope: list[MemrefVariable], _: int) -> None:
    targets = [variable for variable in scope if variable.is_writable]
    if targets:
        writer.choose([_fill_with_kernel, _fill_on_host])(writer, writer.choose(targets))


def _kernel(writer: ProgramWriter, scope: list[MemrefVariable], _: int) -> None:
    pair = _pair(writer, scope)
    if pair is not None:
        multiply(writer, *pair)


def multiply(writer: ProgramWriter, source: MemrefVariable, target: MemrefVariable) -> None:
    """Writes ``target = source / 2 + target / 4``, without the last term in half of the cases."""
    body = [f"%x = memref.load {source.name}[%bx, %tx] : {source.type}", "%y = arith.mulf %x, %scale : f32"]
    if writer.flag():
        body += [
            f"%z = memref.load {target.name}[%bx, %tx] : {target.type}",
            "%s = arith.mulf %z, %half : f32",
        ]
        launch(writer, target, [*body, "%t = arith.addf %y, %s : f32"], "%t")
    else:
        launch(writer, target, body, "%y")


def launch(writer: ProgramWriter, target: MemrefVariable, body: list[str], result: str) -> None:
    """Writes a kernel that stores ``result`` of ``body`` in each element of a memref."""
    writer.write(target)
    writer.add(f"gpu.launch blocks(%bx, %by, %bz) in (%gx = %c{target.rows}, %gy = %c1, %gz = %c1)")
    writer.add(f"    threads(%tx, %ty, %tz) in (%sx = %c{target.columns}, %sy = %c1, %sz = %c1) {{")
    for line in body:
        writer.add(f"  {line}")
    writer.add(f"  memref.store {result}, {target.name}[%bx, %tx] : {target.type}")
    writer.add("  gpu.terminator")
    writer.add("}")


def _pair(writer: ProgramWriter, scope: list[MemrefVariable]) -> tuple[MemrefVariable, MemrefVariable] | None:
    """Returns a source and a target of one shape that share no memory."""
    writable = [variable for variable in scope if variable.is_writable]
    pairs = [(source, target) for source in scope for target in writable if is_fit(source, target)]
    pair: tuple[MemrefVariable, MemrefVariable] | None = writer.choose(pairs) if pairs else None
    return pair


def is_fit(source: MemrefVariable, target: MemrefVariable) -> bool:
    """Returns whether a kernel may read one memref and write the other, element by element."""
    same = (source.rows, source.columns) == (target.rows, target.columns)
    return same and not source.may_share(target)


def _copy(writer: ProgramWriter, scope: list[MemrefVariable], _: int) -> None:
    pair = _pair(writer, scope)
    if pair is not None:
        source, target = pair
        writer.write(target)
        writer.add(f"memref.copy {source.name}, {target.name} : {source.type} to {target.type}")


def _add(writer: ProgramWriter, scope: list[MemrefVariable], _: int) -> None:
    pair = _pair(writer, scope)
    if pair is not None:
        source, target = pair
        if "?" in source.type + target.type:
            return  # shapes of linalg must agree statically
        writer.write(target)
        of_source = f"{source.name}, {source.name} : {source.type}, {source.type}"
        writer.add(f"linalg.add ins({of_source}) outs({target.name} : {target.type})")


def _store(writer: ProgramWriter, scope: list[MemrefVariable], _: int) -> None:
    targets = [variable for variable in scope if variable.is_writable]
    if targets:
        target = writer.choose(targets)
        writer.write(target)
        row, column = writer.number(0, target.rows - 1), writer.number(0, target.columns - 1)
        writer.add(f"memref.store %scale, {target.name}[%c{row}, %c{column}] : {target.type}")


def _load(writer: ProgramWriter, scope: list[MemrefVariable], _: int) -> None:
    """Reads a number on the host and passes it to a kernel."""
    source = writer.choose(scope)
    targets = [variable for variable in scope if variable.is_writable]
    if not targets:
        return
    number, product = writer.name(), writer.name()
    writer.add(f"{number} = memref.load {source.name}[%c0, %c1] : {source.type}")
    writer.add(f"{product} = arith.mulf {number}, %half : f32")
    launch(writer, writer.choose(targets), [], product)


# Row, column, rows, columns of views: halves and quarters, some of which overlap.
VIEWS = (
    *((0, 0, 2, 4), (1, 0, 2, 4), (2, 0, 2, 4), (0, 0, 4, 2), (0, 2, 4, 2)),
    *((0, 0, 2, 2), (1, 1, 2, 2), (2, 2, 2, 2), (0, 0, 4, 4)),
)


def _view(writer: ProgramWriter, scope: list[MemrefVariable], _: int) -> MemrefVariable | None:
    wholes = [variable for variable in scope if (variable.rows, variable.columns) == (ROWS, COLUMNS)]
    return _view_of(writer, writer.choose(wholes)) if wholes else None


def _view_of(writer: ProgramWriter, whole: MemrefVariable) -> MemrefVariable:
    view = _subview(writer, whole, writer.choose(list(VIEWS)))
    return _cast(writer, view) if writer.number(0, 3) == 0 else view


def _subview(writer: ProgramWriter, whole: MemrefVariable, box: tuple[int, int, int, int]) -> MemrefVariable:
    row, column, rows, columns = box
    layout, offset = "strided<[?, ?], offset: ?>", 0
    if whole.pitch is not None:
        offset = row * whole.pitch + column
        layout = f"strided<[{whole.pitch}, 1]{f', offset: {offset}' if offset else ''}>"
    kind = f"memref<{rows}x{columns}xf32, {layout}>"
    name = writer.name()
    places = f"[{row}, {column}] [{rows}, {columns}] [1, 1]"
    writer.add(f"{name} = memref.subview {whole.name}{places} : {whole.type} to {kind}")
    view = replace(whole, name=name, type=kind, rows=rows, columns=columns, offset=offset)
    return replace(view, place=(row, column))


def _cast(writer: ProgramWriter, view: MemrefVariable) -> MemrefVariable:
    """Forgets in the type where a view is."""
    name, kind = writer.name(), f"memref<{view.rows}x{view.columns}xf32, strided<[?, ?], offset: ?>>"
    writer.add(f"{name} = memref.cast {view.name} : {view.type} to {kind}")
    return replace(view, name=name, type=kind, pitch=None)


def _two_views(writer: ProgramWriter, scope: list[MemrefVariable], _: int) -> None:
    """Writes two views of a buffer and work on each, which may run concurrently if the views are disjoint."""
    wholes = [variable for variable in scope if (variable.rows, variable.columns) == (ROWS, COLUMNS)]
    wholes = [variable for variable in wholes if variable.is_writable]
    if not wholes:
        return
    whole = writer.choose(wholes)
    views = [_view_of(writer, whole) for _ in range(2)]
    for view in views:
        others = [each for each in [*scope, *views] if is_fit(each, view)]
        if others:
            multiply(writer, writer.choose(others), view)
        else:
            _fill_with_kernel(writer, view)


def _equal_views(writer: ProgramWriter, scope: list[MemrefVariable], depth: int) -> None:
    """Reads the same view of a buffer twice, with a statement in between that may write it."""
    wholes = [variable for variable in scope if (variable.rows, variable.columns) == (ROWS, COLUMNS)]
    if not wholes:
        return
    whole, box = writer.choose(wholes), writer.choose(list(VIEWS))
    for between in (True, False):
        view = _subview(writer, whole, box)
        targets = [each for each in scope if each.is_writable and is_fit(view, each)]
        if targets:
            multiply(writer, view, writer.choose(targets))
        if between and writer.flag():
            writer.choose([_kernel, _copy, _store, _fill])(writer, scope, depth)


def _global(writer: ProgramWriter, _scope: list[MemrefVariable], _: int) -> MemrefVariable:
    name, symbol = writer.name(), writer.choose(["table", "state"])
    writer.add(f"{name} = memref.get_global @{symbol} : {PLAIN}")
    return MemrefVariable(name, PLAIN, f"@{symbol}", is_writable=symbol == "state")


def _call(writer: ProgramWriter, scope: list[MemrefVariable], _: int) -> None:
    targets = [variable for variable in scope if variable.type == PLAIN and variable.is_writable]
    if not targets:
        return
    target = writer.choose(targets)
    writer.write(target)
    if writer.flag():
        writer.add(f"func.call @on_device({target.name}, %scale) : ({PLAIN}, f32) -> ()")
        return
    number = writer.name()
    writer.add(f"{number} = func.call @on_host({target.name}, %half) : ({PLAIN}, f32) -> f32")
    writer.add(f"memref.store {number}, {target.name}[%c3, %c3] : {PLAIN}")
