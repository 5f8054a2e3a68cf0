"""Random host programs: buffers from everywhere, copies, views, host code and kernels, in loops and branches.

Each is MLIR with an entry @main. Kernels are ``gpu.launch`` with one thread for each element, free of races.
Nothing is read before it is written, values stay small, and float sums have one order: two correct runs are
bitwise equal.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

ROWS, COLUMNS = 4, 4
INDICES = 8  # constants %c0 to %c7
PLAIN, DYNAMIC = f"memref<{ROWS}x{COLUMNS}xf32>", f"memref<?x{COLUMNS}xf32>"
PITCH = 2 * COLUMNS  # elements from row to row of a padded argument
PADDED = f"memref<{ROWS}x{COLUMNS}xf32, strided<[{PITCH}, 1]>>"
ANY_LAYOUT = "memref<?x?xf32, strided<[?, ?], offset: ?>>"
DEPTH = 2  # of loops and branches in one another


@dataclass(frozen=True)
class Program:
    """A module and what to call @main with."""

    text: str
    arguments: tuple[Any, ...]  # arrays of float32, then int (index), bool (i1) and float (f32)
    written: tuple[bool, ...]  # for each buffer argument: some statement of the text may write it


@dataclass(frozen=True)
class Features:
    """What programs may contain beside allocations, copies, stores, loads, kernels, loops and branches."""

    strided_arguments: bool = True
    globals: bool = True
    calls: bool = True
    swaps: bool = True  # loops that hand on two buffers crosswise, branches that choose one
    repeated_results: bool = True  # a result is an argument, or another result
    uninitialized: bool = False  # allocations are left as they come: only where two runs agree on that


@dataclass(frozen=True)
class Variable:
    """A memref in scope."""

    name: str
    type: str
    root: str  # what it is part of, or may be: "%a|%b"
    rows: int = ROWS
    columns: int = COLUMNS
    pitch: int | None = COLUMNS  # None where the type does not tell
    offset: int = 0
    place: tuple[int, int] = (0, 0)  # row and column of its root that it begins at
    is_writable: bool = True

    def may_share(self, other: "Variable") -> bool:
        """Tells whether both may name one element; then no kernel reads the one and writes the other."""
        if not set(self.root.split("|")) & set(other.root.split("|")):
            return False
        sizes = ((self.rows, self.columns), (other.rows, other.columns))
        places = zip(self.place, other.place, *sizes, strict=True)
        meet = all(first < second + more and second < first + size for first, second, size, more in places)
        return meet or "|" in self.root + other.root


@dataclass
class Writer:
    """The text so far, and the choices still to come."""

    draw: Any
    features: Features
    lines: list[str] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    count: int = 0
    indent: int = 2

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def add(self, line: str) -> None:
        self.lines.append("  " * self.indent + line)

    def choose(self, choices: list[Any]) -> Any:
        return self.draw(st.sampled_from(choices))

    def number(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def flag(self) -> bool:
        return bool(self.draw(st.booleans()))

    def write(self, variable: Variable) -> None:
        self.written.update(variable.root.split("|"))


@st.composite
def host_programs(draw: Any, features: Features | None = None) -> Program:
    """Draws a program; all features unless told otherwise."""
    features = features or Features()
    writer = Writer(draw, features)
    kinds = [PLAIN, PLAIN, DYNAMIC, *([PADDED, ANY_LAYOUT] if features.strided_arguments else [])]
    types = [writer.choose(kinds) for _ in range(writer.number(1, 3))]
    scope = [_argument(f"%a{number}", kind) for number, kind in enumerate(types)]
    own = _block(writer, scope, 0)
    results = _results(writer, own, scope)
    _free(writer, [variable for variable in own if variable not in results])
    text = _module(writer, types, results)
    arrays = tuple(_array(kind, number) for number, kind in enumerate(types))
    scalars = (writer.number(0, 3), writer.flag(), 0.5)
    return Program(text, (*arrays, *scalars), tuple(variable.root in writer.written for variable in scope))


def _module(writer: Writer, types: list[str], results: list[Variable]) -> str:
    arguments = [f"%a{number}: {kind}" for number, kind in enumerate(types)]
    signature = ", ".join([*arguments, "%n: index", "%flag: i1", "%scale: f32"])
    kinds = ", ".join(variable.type for variable in results)
    names = ", ".join(variable.name for variable in results)
    constants = [f"    %c{number} = arith.constant {number} : index" for number in range(INDICES)]
    lines = [
        "module attributes {gpu.container_module} {",
        f"  memref.global constant @table : {PLAIN} = dense<0.75>",
        f"  memref.global @state : {PLAIN} = dense<0.25>",
        *(_CALLEES if writer.features.calls else []),
        f"  func.func @main({signature}) -> ({kinds}) attributes {{llvm.emit_c_interface}} {{",
        *constants,
        "    %half = arith.constant 0.5 : f32",
        *writer.lines,
        f"    return {names} : {kinds}" if results else "    return",
        "  }",
        "}",
    ]
    return "\n".join(lines) + "\n"


_CALLEES = f"""  func.func private @on_host(%a: {PLAIN}, %x: f32) -> f32 {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %old = memref.load %a[%c1, %c0] : {PLAIN}
    memref.store %x, %a[%c0, %c1] : {PLAIN}
    %state = memref.get_global @state : {PLAIN}
    memref.store %old, %state[%c1, %c1] : {PLAIN}
    return %old : f32
  }}
  func.func private @on_device(%a: {PLAIN}, %x: f32) {{
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {{
      %old = memref.load %a[%bx, %tx] : {PLAIN}
      %new = arith.mulf %old, %x : f32
      memref.store %new, %a[%bx, %tx] : {PLAIN}
      gpu.terminator
    }}
    return
  }}""".splitlines()


def _argument(name: str, kind: str) -> Variable:
    pitch = {PADDED: PITCH, ANY_LAYOUT: None}.get(kind, COLUMNS)
    return Variable(name, kind, name, pitch=pitch)


def _array(kind: str, seed: int) -> Any:
    numbers = np.random.default_rng(seed).integers(-8, 8, (ROWS, PITCH)).astype(np.float32) / 8
    if kind == PADDED:
        return numbers[:, :COLUMNS]
    if kind == ANY_LAYOUT:
        return numbers[:, 1::2]
    return numbers[:, :COLUMNS].copy()


def _block(writer: Writer, outer: list[Variable], depth: int) -> list[Variable]:
    """Writes statements; returns the buffers that they allocated and did not free."""
    scope = list(outer)
    own: list[Variable] = []
    for _ in range(writer.number(1, 5)):
        statement = writer.choose(_statements(writer.features, depth))
        made = statement(writer, scope, depth)
        if made is not None:
            scope.append(made)
            if made.root == made.name:
                own.append(made)
    return own


def _statements(features: Features, depth: int) -> list[Any]:
    choices: list[Any] = [
        _allocate,
        _kernel,
        _kernel,
        _kernel,
        _copy,
        _copy,
        _store,
        _load,
        _fill,
        _add,
        _view,
        _view,
        _two_views,
    ]
    if features.globals:
        choices.append(_global)
    if features.calls:
        choices.append(_call)
    if depth < DEPTH:
        choices += [_for, _for, _if, _while]
        if features.swaps:
            choices += [_swap, _choose]
    return choices


def _allocate(writer: Writer, scope: list[Variable], _: int) -> Variable:
    name, kind = writer.name(), writer.choose([PLAIN, PLAIN, DYNAMIC])
    size = "%c4" if kind == DYNAMIC else ""
    stack = "alloca" if writer.number(0, 5) == 0 else "alloc"
    writer.add(f"{name} = memref.{stack}({size}) : {kind}")
    made = Variable(name, kind, name)
    if stack == "alloca":
        made = replace(made, root=f"{name}_")  # frees itself
    if not writer.features.uninitialized:
        writer.choose([_fill_with_kernel, _fill_on_host])(writer, made)
    return made


def _fill_with_kernel(writer: Writer, target: Variable) -> None:
    _launch(writer, target, [], "%scale")


def _fill_on_host(writer: Writer, target: Variable) -> None:
    writer.write(target)
    writer.add(f"linalg.fill ins(%half : f32) outs({target.name} : {target.type})")


def _fill(writer: Writer, scope: list[Variable], _: int) -> None:
    targets = [variable for variable in scope if variable.is_writable]
    if targets:
        writer.choose([_fill_with_kernel, _fill_on_host])(writer, writer.choose(targets))


def _kernel(writer: Writer, scope: list[Variable], _: int) -> None:
    """Writes ``target = source / 2 + target / 4``, without the last term in half of the cases."""
    pair = _pair(writer, scope)
    if pair is not None:
        _multiply(writer, *pair)


def _multiply(writer: Writer, source: Variable, target: Variable) -> None:
    body = [
        f"%x = memref.load {source.name}[%bx, %tx] : {source.type}",
        "%y = arith.mulf %x, %scale : f32",
    ]
    if writer.flag():
        body += [
            f"%z = memref.load {target.name}[%bx, %tx] : {target.type}",
            "%s = arith.mulf %z, %half : f32",
        ]
        _launch(writer, target, [*body, "%t = arith.addf %y, %s : f32"], "%t")
    else:
        _launch(writer, target, body, "%y")


def _launch(writer: Writer, target: Variable, body: list[str], result: str) -> None:
    writer.write(target)
    writer.add(f"gpu.launch blocks(%bx, %by, %bz) in (%gx = %c{target.rows}, %gy = %c1, %gz = %c1)")
    writer.add(f"    threads(%tx, %ty, %tz) in (%sx = %c{target.columns}, %sy = %c1, %sz = %c1) {{")
    for line in body:
        writer.add(f"  {line}")
    writer.add(f"  memref.store {result}, {target.name}[%bx, %tx] : {target.type}")
    writer.add("  gpu.terminator")
    writer.add("}")


def _pair(writer: Writer, scope: list[Variable]) -> tuple[Variable, Variable] | None:
    """Returns a source and a target of one shape that share no memory."""
    writable = [variable for variable in scope if variable.is_writable]
    pairs = [(source, target) for source in scope for target in writable if _is_fit(source, target)]
    pair: tuple[Variable, Variable] | None = writer.choose(pairs) if pairs else None
    return pair


def _is_fit(source: Variable, target: Variable) -> bool:
    same = (source.rows, source.columns) == (target.rows, target.columns)
    return same and not source.may_share(target)


def _copy(writer: Writer, scope: list[Variable], _: int) -> None:
    pair = _pair(writer, scope)
    if pair is not None:
        source, target = pair
        writer.write(target)
        writer.add(f"memref.copy {source.name}, {target.name} : {source.type} to {target.type}")


def _add(writer: Writer, scope: list[Variable], _: int) -> None:
    pair = _pair(writer, scope)
    if pair is not None:
        source, target = pair
        if "?" in source.type + target.type:
            return  # shapes of linalg must agree statically
        writer.write(target)
        of_source = f"{source.name}, {source.name} : {source.type}, {source.type}"
        writer.add(f"linalg.add ins({of_source}) outs({target.name} : {target.type})")


def _store(writer: Writer, scope: list[Variable], _: int) -> None:
    targets = [variable for variable in scope if variable.is_writable]
    if targets:
        target = writer.choose(targets)
        writer.write(target)
        row, column = writer.number(0, target.rows - 1), writer.number(0, target.columns - 1)
        writer.add(f"memref.store %scale, {target.name}[%c{row}, %c{column}] : {target.type}")


def _load(writer: Writer, scope: list[Variable], _: int) -> None:
    """Reads a number on the host and hands it to a kernel."""
    source = writer.choose(scope)
    targets = [variable for variable in scope if variable.is_writable]
    if not targets:
        return
    number, product = writer.name(), writer.name()
    writer.add(f"{number} = memref.load {source.name}[%c0, %c1] : {source.type}")
    writer.add(f"{product} = arith.mulf {number}, %half : f32")
    _launch(writer, writer.choose(targets), [], product)


# Row, column, rows, columns of views: halves and quarters, some of which overlap.
VIEWS = (
    *((0, 0, 2, 4), (1, 0, 2, 4), (2, 0, 2, 4), (0, 0, 4, 2), (0, 2, 4, 2)),
    *((0, 0, 2, 2), (1, 1, 2, 2), (2, 2, 2, 2), (0, 0, 4, 4)),
)


def _view(writer: Writer, scope: list[Variable], _: int) -> Variable | None:
    wholes = [variable for variable in scope if (variable.rows, variable.columns) == (ROWS, COLUMNS)]
    return _view_of(writer, writer.choose(wholes)) if wholes else None


def _view_of(writer: Writer, whole: Variable) -> Variable:
    row, column, rows, columns = writer.choose(list(VIEWS))
    layout, offset = "strided<[?, ?], offset: ?>", 0
    if whole.pitch is not None:
        offset = row * whole.pitch + column
        layout = f"strided<[{whole.pitch}, 1]{f', offset: {offset}' if offset else ''}>"
    kind = f"memref<{rows}x{columns}xf32, {layout}>"
    name = writer.name()
    places = f"[{row}, {column}] [{rows}, {columns}] [1, 1]"
    writer.add(f"{name} = memref.subview {whole.name}{places} : {whole.type} to {kind}")
    view = replace(whole, name=name, type=kind, rows=rows, columns=columns, offset=offset)
    view = replace(view, place=(row, column))
    return _cast(writer, view) if writer.number(0, 3) == 0 else view


def _cast(writer: Writer, view: Variable) -> Variable:
    """Forgets in the type where a view is."""
    name, kind = writer.name(), f"memref<{view.rows}x{view.columns}xf32, strided<[?, ?], offset: ?>>"
    writer.add(f"{name} = memref.cast {view.name} : {view.type} to {kind}")
    return replace(view, name=name, type=kind, pitch=None)


def _two_views(writer: Writer, scope: list[Variable], _: int) -> None:
    """Writes two views of a buffer and work on each, which may run side by side if they share nothing."""
    wholes = [variable for variable in scope if (variable.rows, variable.columns) == (ROWS, COLUMNS)]
    wholes = [variable for variable in wholes if variable.is_writable]
    if not wholes:
        return
    whole = writer.choose(wholes)
    views = [_view_of(writer, whole) for _ in range(2)]
    for view in views:
        others = [each for each in [*scope, *views] if _is_fit(each, view)]
        if others:
            _multiply(writer, writer.choose(others), view)
        else:
            _fill_with_kernel(writer, view)


def _global(writer: Writer, scope: list[Variable], _: int) -> Variable:
    name, symbol = writer.name(), writer.choose(["table", "state"])
    writer.add(f"{name} = memref.get_global @{symbol} : {PLAIN}")
    return Variable(name, PLAIN, f"@{symbol}", is_writable=symbol == "state")


def _call(writer: Writer, scope: list[Variable], _: int) -> None:
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


def _for(writer: Writer, scope: list[Variable], depth: int) -> None:
    end = writer.choose(["%n", "%c0", "%c2", "%c3"])
    writer.add(f"scf.for {writer.name()} = %c0 to {end} step %c1 {{")
    _nested(writer, scope, depth)
    writer.add("}")


def _while(writer: Writer, scope: list[Variable], depth: int) -> None:
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


def _if(writer: Writer, scope: list[Variable], depth: int) -> None:
    writer.add(f"scf.if {_condition(writer)} {{")
    _nested(writer, scope, depth)
    if writer.flag():
        writer.add("} else {")
        _nested(writer, scope, depth)
    writer.add("}")


def _condition(writer: Writer) -> str:
    if writer.flag():
        return "%flag"
    name = writer.name()
    writer.add(f"{name} = arith.cmpi slt, %n, %c2 : index")
    return name


def _nested(writer: Writer, scope: list[Variable], depth: int) -> None:
    writer.indent += 1
    _free(writer, _block(writer, scope, depth + 1))
    writer.indent -= 1


def _free(writer: Writer, own: list[Variable]) -> None:
    for variable in own:
        writer.add(f"memref.dealloc {variable.name} : {variable.type}")


def _twins(writer: Writer, scope: list[Variable]) -> tuple[Variable, Variable] | None:
    """Returns two buffers of one type that share no memory."""
    pairs = [
        (one, other)
        for one in scope
        for other in scope
        if one.type == other.type and not set(one.root.split("|")) & set(other.root.split("|"))
    ]
    twins: tuple[Variable, Variable] | None = writer.choose(pairs) if pairs else None
    return twins


def _swap(writer: Writer, scope: list[Variable], depth: int) -> Variable | None:
    """Writes a loop that hands on two buffers crosswise: what one turn wrote, the next one reads."""
    twins = _twins(writer, [variable for variable in scope if variable.is_writable])
    if twins is None:
        return None
    one, other = twins
    root = "|".join({**dict.fromkeys(one.root.split("|")), **dict.fromkeys(other.root.split("|"))})
    names = [writer.name() for _ in range(4)]
    kinds = f"{one.type}, {other.type}"
    carried = f"{names[0]} = {one.name}, {names[1]} = {other.name}"
    writer.add(f"{names[2]}:2 = scf.for {names[3]} = %c0 to %n step %c1 iter_args({carried}) -> ({kinds}) {{")
    source, target = (replace(one, name=name, root=root) for name in names[:2])
    body = [f"%x = memref.load {source.name}[%bx, %tx] : {source.type}", "%y = arith.mulf %x, %scale : f32"]
    writer.indent += 1
    _launch(writer, target, body, "%y")
    rest = [each for each in scope if not set(each.root.split("|")) & set(root.split("|"))]
    own = _block(writer, [*rest, source, target], depth + 1)
    _free(writer, own)
    writer.indent -= 1
    writer.add(f"  scf.yield {target.name}, {source.name} : {kinds}")
    writer.add("}")
    return replace(one, name=f"{names[2]}#{writer.number(0, 1)}", root=root)


def _choose(writer: Writer, scope: list[Variable], _: int) -> Variable | None:
    twins = _twins(writer, scope)
    if twins is None:
        return None
    one, other = twins
    name = writer.name()
    writer.add(f"{name} = scf.if {_condition(writer)} -> {one.type} {{")
    writer.add(f"  scf.yield {one.name} : {one.type}")
    writer.add("} else {")
    writer.add(f"  scf.yield {other.name} : {one.type}")
    writer.add("}")
    is_writable = one.is_writable and other.is_writable
    return replace(one, name=name, root=f"{one.root}|{other.root}", is_writable=is_writable)


def _results(writer: Writer, own: list[Variable], scope: list[Variable]) -> list[Variable]:
    """Returns what @main returns: allocations of its own, each once unless the features say otherwise."""
    choices = own + (scope if writer.features.repeated_results else [])
    if not choices:
        return []
    results = [writer.choose(choices) for _ in range(writer.number(0, 2))]
    return results if writer.features.repeated_results else list(dict.fromkeys(results))
