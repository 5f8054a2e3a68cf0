"""LLVM-dialect text of a function that calls functions of a library at known addresses."""

from dataclasses import dataclass

Argument = tuple[int | float | str, str]  # (constant, or the name of an SSA value; MLIR type)
POINTER = "!llvm.ptr"
A, B, C = ("%a", POINTER), ("%b", POINTER), ("%c", POINTER)  # operands of the function


@dataclass(frozen=True)
class LibraryCall:
    """A call of a C function at an address, with constants and operands as arguments.

    A whole number of type ``!llvm.ptr`` is an address.
    """

    address: int
    arguments: tuple[Argument, ...]
    result: str = ""  # MLIR type; "": the function returns nothing


def calling_module(*calls: LibraryCall) -> str:
    """Returns a module with a function ``baseline`` of pointers to A, B and C that makes calls in order.

    The function ignores what the calls return.
    """
    body = "\n".join(line for number, call in enumerate(calls) for line in _lines(call, f"{number}"))
    return f"""module {{
  llvm.func @baseline(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr) attributes {{llvm.emit_c_interface}} {{
{body}
    llvm.return
  }}
}}
"""


def _lines(call: LibraryCall, prefix: str) -> list[str]:
    """Returns the operations of one call; names of its values begin with ``prefix``, such as %0_3."""
    lines, names = [], []
    for index, (value, kind) in enumerate(((call.address, POINTER), *call.arguments)):
        name = value if isinstance(value, str) else f"%v{prefix}_{index}"
        names.append(name)
        if not isinstance(value, str):
            lines += _constant(name, value, kind)
    types = ", ".join(kind for _, kind in call.arguments)
    returned = f"%r{prefix} = " if call.result else ""
    function, *arguments = names
    signature = f"{POINTER}, ({types}) -> {call.result or '()'}"
    return [*lines, f"    {returned}llvm.call {function}({', '.join(arguments)}) : {signature}"]


def _constant(name: str, value: int | float, kind: str) -> list[str]:
    if kind != POINTER:
        return [f"    {name} = llvm.mlir.constant({value} : {kind}) : {kind}"]
    return [
        f"    {name}_address = llvm.mlir.constant({value} : i64) : i64",
        f"    {name} = llvm.inttoptr {name}_address : i64 to {POINTER}",
    ]
