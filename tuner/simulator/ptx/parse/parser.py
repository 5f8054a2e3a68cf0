"""PTX text -> ``PtxModule`` by recursive descent; covers the PTX of LLVM, of nvcc and hand-written PTX."""

from tuner.simulator.ptx.instruction import PtxKernel, PtxModule, Variable
from tuner.simulator.ptx.parse.body import Body
from tuner.simulator.ptx.parse.cursor import Cursor
from tuner.simulator.ptx.parse.declarations import LINKAGE, SPACES, parameters_of, variables_of

SIZES = (".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".maxnreg", ".reqnctapercluster")
EXPLICIT = ".explicitcluster"  # the launch need not specify the cluster's size
VARIABLES = tuple(f".{space}" for space in SPACES)


def parse(source: str, name: str = "kernel.ptx") -> PtxModule:
    """Returns the kernels and variables of PTX text; ``name`` is the file's name in messages.

    Raises SimulationError with Defect.SYNTAX for text that is not PTX, or PTX that the parser does not know.
    """
    cursor = Cursor(source, name)
    version, target = _header(cursor)
    kernels: list[PtxKernel] = []
    variables: list[Variable] = []
    while cursor.token.kind != "end":
        _module_statement(cursor, kernels, variables)
    return PtxModule(name, version, target, tuple(kernels), tuple(variables))


def _header(cursor: Cursor) -> tuple[str, str]:
    """Parses the header: ``.version 8.0 .target sm_90 .address_size 64``."""
    cursor.expect(".version")
    version = cursor.take().text
    cursor.expect(".target")
    target = cursor.word("a chip such as sm_90")
    while cursor.accept(","):
        cursor.word("an option of .target")
    if cursor.accept(".address_size") and cursor.integer() != 64:
        raise cursor.wrong(".address_size 64 before it")
    return version, target


def _module_statement(cursor: Cursor, kernels: list[PtxKernel], variables: list[Variable]) -> None:
    ahead = 0
    while cursor.ahead(ahead).text in LINKAGE:
        ahead += 1
    kind = cursor.ahead(ahead).text
    if kind in VARIABLES:
        variables += variables_of(cursor)
    elif kind == ".entry":
        kernels.append(_kernel(cursor))
    elif kind == ".func":
        _skip_function(cursor)
    elif kind == ".section":
        cursor.take()
        cursor.word("a section's name")
        cursor.skip()
    elif kind == ".file":
        line = cursor.token.line
        while cursor.token.line == line and cursor.token.kind != "end":
            cursor.take()
    else:
        raise cursor.wrong(".entry, .func, .shared, .global, .const or .section")


def _skip_function(cursor: Cursor) -> None:
    """Skips a .func declaration or definition: only calls of CUDA's functions are simulated."""
    while cursor.token.text not in ("{", ";"):
        cursor.take()
    if not cursor.accept(";"):
        cursor.skip()


def _kernel(cursor: Cursor) -> PtxKernel:
    while cursor.token.text in LINKAGE:
        cursor.take()
    line = cursor.expect(".entry").line
    name = cursor.word("a kernel's name")
    parameters = parameters_of(cursor)
    sizes = dict(_directives(cursor))
    body = Body(cursor)
    body.read()
    return PtxKernel(
        name=name,
        parameters=tuple(parameters),
        body=tuple(body.code),
        registers=tuple(body.registers),
        variables=tuple(body.variables),
        max_threads=sizes.get(".maxntid"),
        required_threads=sizes.get(".reqntid"),
        cluster=sizes.get(".reqnctapercluster"),
        line=line,
    )


def _directives(cursor: Cursor) -> list[tuple[str, tuple[int, ...]]]:
    """Parses a kernel's performance directives. PTX ISA, "Performance-Tuning Directives"."""
    found = []
    while cursor.token.text != "{":
        if cursor.accept(EXPLICIT):
            continue
        if cursor.token.text not in SIZES:
            raise cursor.wrong(f"{{ or {', '.join(SIZES)}, {EXPLICIT}")
        directive, numbers = cursor.take().text, [cursor.integer()]
        while cursor.accept(","):
            numbers.append(cursor.integer())
        found.append((directive, tuple(numbers)))
    return found
