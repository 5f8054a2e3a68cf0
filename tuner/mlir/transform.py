"""Transform scripts: contexts, parsing, checks, the transform interpreter, and the op at which it failed.

``parse`` reads MLIR text in a ``new_context``; ``apply_script`` runs a script on a payload, in place;
``failing_op`` finds the op of a script that fails.
"""

import re
import sys

from tuner.core.errors import SCRIPT, CandidateError, OpPlace, Stage, nearest
from tuner.core.progress import current_step
from tuner.mlir import empty_matches, script_steps
from tuner.mlir.bindings import Op, WalkResult, ext, interpreter, ir, op_names
from tuner.mlir.dialect import DIALECT, TunerDialect, add_named_ops
from tuner.mlir.ir.memory_spaces import NESTED
from tuner.mlir.ir.reading import any_where, ops_in, walk_ops
from tuner.mlir.script_linking import APPLY_REGISTERED, SCHEDULE, SEQUENCE, link_modules, sort_pass_options

LENGTH_LIMIT = 500  # characters of a reason
PAYLOAD = "payload"  # file name in the locations of payload ops; locations of the script stay UNNAMED
UNNAMED = "-"  # file name that MLIR gives to parsed text
# Lines that MLIR adds to the message of an op defined in Python.
ADDED = re.compile(r'TransformOpInterfaceFallbackModel: silenceable failure|see current operation: "tuner\.')
UNRESOLVED = "unresolved external"  # symbol, or named sequence
WHICH_LIBRARY = "--library FILE names a script that defines it"
UNDECIDED = "non-deterministic choice"  # of a knob or of alternatives without a selection
WHO_DECIDES = "tuner tune --strategy FILE selects one, and tuner export writes it"
NOT_VECTORIZED = "Attempted to vectorize, but failed"
DYNAMIC_SIZES = (
    "its sizes are dynamic: a tile size does not divide (pad, peel, or give large enough vector_sizes)"
)
NO_DIAGNOSTIC = "Diagnostic message"  # all that is left of an op that fails without a message
UNDIVIDED = re.compile(r"(?<=\w)(?=at loc\()")  # two messages of MLIR without a line break: "this opat loc("
LOCATION = re.compile(r'loc\("([^"]*)":(\d+):(\d+)\)')
# https://mlir.llvm.org/docs/Passes/: passes whose options name files, programs (ptxas, lld) or plugins; and
# passes that print
EFFECTS = re.compile(
    r"(?<![\w-])(?:location-snapshot|snapshot-op-locations|gpu-module-to-binary|gpu-lower-to-[\w-]+-pipeline"
    r"|(?:nvvm|rocdl|xevm)-attach-target|sparsifier|transform-(?:preload-library|interpreter)"
    r"|(?:view-op-graph|print-[\w-]+|load-(?:pass|dialect)-plugin))(?![\w-])"
)
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
ESCAPED = re.compile(r"\\([0-9A-Fa-f]{2})")
# The form of linalg.elementwise since September 2026, https://github.com/llvm/llvm-project/pull/222569
ELEMENTWISE = re.compile(r"\blinalg\.elementwise\s*<\s*(\w+)\s*>")
X86 = re.compile(r"\bx86vector\.")  # the former name of the dialect that LLVM 23 calls x86
# One op up to LLVM 22; today three ops, each with the attributes of that op.
LOWER_REDUCTION = re.compile(r"\b(transform\.apply_patterns\.vector\.)lower_multi_reduction\b((?:(?!//).)*)")
REDUCTION_STEPS = ("reorder_multi_reduction_dims", "multi_reduction_flattening", "multi_reduction_unrolling")
MARK = "gpu."  # every text with an older spelling of the ops below contains this
DIMENSION = re.compile(r'("gpu\.\w+"\s*\(\s*\)\s*(?:<\s*)?\{\s*dimension\s*=\s*)"([xyz])"')
SHUFFLE_MODE = re.compile(r'("gpu\.shuffle"\s*\([^)]*\)\s*(?:<\s*)?\{\s*mode\s*=\s*)"(xor|up|down|idx)"')
REDUCED_BY = re.compile(r'(?<![\w.])(op\s*=\s*)"(add|mul|and|or|xor)"')  # of gpu.all_reduce, after its region
NUMBERED_SHARED = re.compile(rf"(memref<{NESTED}),\s*3(?:\s*:\s*\w+)?\s*>")
DYNAMIC_SHARED = "gpu.dynamic_shared_memory"
MODULE_END = re.compile(r'"gpu\.module_end"\s*\(\s*\)\s*:\s*\(\s*\)\s*->\s*\(\s*\)|gpu\.module_end\b')
# MLIR then lists all dialects that it knows, which is too long for a message.
UNKNOWN_DIALECT = re.compile(r"Dialect `([\w.]+)' not found for custom op '([\w.]+)'.*")
UNKNOWN_OP = re.compile(r"custom op '([\w.]+)' is unknown")
AT_LINE = re.compile(r"(?:error|note): line (\d+:\d+: )")
UNREGISTERED = re.compile(r"line (\d+):(\d+): operation being parsed with an unregistered dialect\..*")
NO_PLACE = "Unable to parse module assembly"  # all that MLIR says of a short form that an op does not have
SHORT_FORM = re.compile(rf'(?<!")\b({DIALECT}\.\w+)')
QUOTED = re.compile(r'"([^"\n]*)"')  # the name of an op in generic form


class OpLocations:
    """The names of a payload's ops by source location, for error messages of the transform interpreter.

    Creating it changes the payload's locations: their file name "-", which a script has too, becomes
    "payload".
    """

    def __init__(self, payload: ir.Module) -> None:
        self._payload = payload
        self._names: dict[tuple[str, int, int], str] = {}

        def visit(op: Op) -> WalkResult:
            at = op.location
            if isinstance(at, ir.FileLineColLoc) and at.filename == UNNAMED:
                op.location = ir.Location.file(PAYLOAD, at.start_line, at.start_col)
                self._names[PAYLOAD, at.start_line, at.start_col] = op.name
            return WalkResult.ADVANCE

        walk_ops(payload, visit)

    def diagnostic(self, error: Exception, script: ir.Module) -> str:
        """Returns the interpreter's error as a line of at most 500 characters, with names and places of ops.

        For example ``transform.loop.unroll at script:6:2: failed to unroll``.
        """
        names = dict(self._names)

        def visit(op: Op) -> WalkResult:
            at = op.location
            if isinstance(at, ir.FileLineColLoc):
                names[at.filename, at.start_line, at.start_col] = op.name
            return WalkResult.ADVANCE

        walk_ops(script, visit)

        def named(match: re.Match[str]) -> str:
            file = match[1]
            line = int(match[2])
            column = int(match[3])
            place = f"{'script' if file == UNNAMED else file}:{line}:{column}"
            return f"{names.get((file, line, column), 'an op')} at {place}"

        text = str(error).removeprefix("Failed to apply named transform sequence.").strip()
        text = UNDIVIDED.sub("\n", text)
        lines = [line.strip() for line in text.splitlines() if line.strip() and not ADDED.search(line)]
        said = []
        for line in lines:
            message = line.removeprefix("Diagnostic message at ").removeprefix("at ")
            said.append(LOCATION.sub(named, message))
        why = self._why_not_vectorized(lines)
        if said and UNRESOLVED in said[0]:
            why = [WHICH_LIBRARY]
        if said and UNDECIDED in said[0]:
            why = [WHO_DECIDES]
        said = list(dict.fromkeys(said))  # MLIR repeats the message of an op that failed inside of others
        return "; ".join([*said[:2], *why])[:LENGTH_LIMIT] or type(error).__name__

    def _why_not_vectorized(self, lines: list[str]) -> list[str]:
        """Returns one line, where ``transform.structured.vectorize`` failed on an op of dynamic sizes."""
        at = LOCATION.search(lines[0]) if lines and lines[0].endswith(NOT_VECTORIZED) else None
        if at is None:
            return []
        key = (at[1], int(at[2]), int(at[3]))

        def is_dynamic(op: Op) -> bool:
            own = op.location
            if not isinstance(own, ir.FileLineColLoc):
                return False
            is_here = (own.filename, own.start_line, own.start_col) == key
            return is_here and op.name.startswith("linalg.") and any("?" in str(x.type) for x in op.operands)

        if any_where(self._payload, is_dynamic):
            return [DYNAMIC_SIZES]
        return []


# Rejects scripts that run passes with effects outside of the payload: writing files, starting programs.
#
# Upstream registers such passes together with all others: ``transform.apply_registered_pass`` runs them by
# name. Passes that take a pipeline as an option can run them too, so every string of a script is checked.


def require_no_effects(script: ir.Module) -> None:
    """Raises CandidateError(BIND) if a script names a pass that writes files, starts programs or prints.

    All strings of the script are searched for such names.
    """
    printed = script.operation.get_asm(assume_verified=True)
    for text in TEXT.findall(printed):
        match = EFFECTS.search(ESCAPED.sub(lambda match: chr(int(match[1], 16)), text))
        if match is not None:
            raise CandidateError(
                Stage.BIND,
                f"script: found pass {match[0]}, which writes files, starts programs or prints; "
                "allowed with tuner apply --allow-effects",
            )


def with_current_spellings(text: str) -> str:
    """Returns MLIR text with older and newer spellings of ops replaced by those that MLIR's parser accepts.

    Line breaks stay, so that messages name the user's lines. Comments change too.

        %n = "gpu.block_dim"() {dimension = "x"} : () -> (index)
        %s = "gpu.all_reduce"(%x) ({}) {op = "add"} : (f32) -> (f32)
      becomes
        %n = "gpu.block_dim"() {dimension = #gpu<dim x>} : () -> (index)
        %s = "gpu.all_reduce"(%x) ({}) {op = #gpu<all_reduce_op add>} : (f32) -> (f32)
    """
    text = ELEMENTWISE.sub(r"linalg.elementwise kind=#linalg.elementwise_kind<\1>", text)
    text = LOWER_REDUCTION.sub(" ".join(rf"\1{step}\2" for step in REDUCTION_STEPS), X86.sub("x86.", text))
    if MARK not in text:
        return text
    text = DIMENSION.sub(r"\1#gpu<dim \2>", text)
    text = SHUFFLE_MODE.sub(r"\1#gpu<shuffle_mode \2>", text)
    if '"gpu.all_reduce"' in text:
        text = REDUCED_BY.sub(r"\1#gpu<all_reduce_op \2>", text)
    if DYNAMIC_SHARED in text:  # its verifier runs before any pass could change the type
        text = NUMBERED_SHARED.sub(r"\1, #gpu.address_space<workgroup>>", text)
    return MODULE_END.sub("", text)


def new_context() -> ir.Context:
    """Returns a new MLIR context without threads, since ops in Python need the GIL.

    ``parse`` adds the transform ops that a text names.
    """
    # The bindings search for a Python module of the dialect at each use, until they find one.
    folder = ext.__name__.rpartition(".")[0]
    sys.modules.setdefault(f"{folder}.{DIALECT}", sys.modules[TunerDialect.__module__])
    context = ir.Context()
    context.enable_multithreading(False)
    with context, ir.Location.unknown():
        empty_matches.attach_to_context()
        script_steps.attach_to_context()
    return context


def parse(text: str, what: str) -> ir.Module:
    """Returns the module parsed from MLIR text, with older or newer spellings too, in the current context.

    Raises CandidateError(BIND) with MLIR's first messages; ``what``: the text's name in these, such as
    "script".
    """
    add_named_ops(text)
    try:
        module = ir.Module.parse(with_current_spellings(text))
    except (ir.MLIRError, ValueError) as error:
        said = UNREGISTERED.sub(lambda match: _unregistered(match, text), first_diagnostic(error))
        if said == NO_PLACE and (short_form := _short_form(text)):
            raise CandidateError(Stage.BIND, f"{what}:{short_form}") from error
        said = f"{what}: {UNKNOWN_OP.sub(_with_similar_op, said)}"
        if what != PAYLOAD:  # of which the caller knows the file: ``tuner.models.payload_errors.in_file``
            said = AT_LINE.sub(rf"{what}:\1", said.removeprefix(f"{what}: "), count=1)
        raise CandidateError(Stage.BIND, said) from error
    if APPLY_REGISTERED in text:
        sort_pass_options(module)
    return module


def _with_similar_op(match: re.Match[str]) -> str:
    dialect, _, name = match[1].partition(".")
    near = nearest(name, op_names(dialect))
    if near:
        return f"{match[0]}; did you mean {dialect}.{near}?"
    return match[0]


def _short_form(text: str) -> str:
    """Returns place and message of an op of ``tuner`` in a short form, which none has; "" without one."""
    for number, line in enumerate(text.splitlines(), 1):
        match = SHORT_FORM.search(line.partition("//")[0])
        if match is not None:
            found = f"{number}:{match.start() + 1}: found {match[1]} in a short form"
            return f'{found}, allowed "{match[1]}"(%handle) {{...}} : (!transform.any_op) -> ()'
    return ""


def _unregistered(match: re.Match[str], text: str) -> str:
    """Returns a message that names the op which MLIR does not know: MLIR's own has only its location."""
    line = int(match[1])
    column = int(match[2])
    names = QUOTED.findall(text.splitlines()[line - 1][: column - 1])  # MLIR points after the name
    found = f"{names[-1] if names else 'an op'} of an unregistered dialect"
    return f"line {line}:{column}: found {found}, allowed dialects that MLIR or GPUX has"


def apply_script(
    payload: ir.Module, script: ir.Module, *, allows_effects: bool = False, trailing: tuple[str, ...] = ()
) -> None:
    """Applies a transform script to a payload, in place: runs the script's entry sequence.

    The script may have schedules in nested modules, which are applied one after another. ``trailing`` has
    texts for the entry's arguments after the first, see ``bind_trailing_arguments``. Unless
    ``allows_effects``, passes that write files, start programs or print are rejected. Matches that find
    nothing are errors, see ``tuner.mlir.empty_matches``. Raises CandidateError: BIND for a script without an
    entry sequence or with a rejected pass, and for unsuitable ``trailing``, COMPILE where an op fails.
    """
    if not allows_effects:
        require_no_effects(script)
    link_modules(script)
    for schedule in schedules_of(script):
        sequence = entry_sequence(schedule)
        bind_trailing_arguments(sequence, trailing)
        locations = OpLocations(payload)
        last_step = ""
        try:
            with script_steps.ops_as_steps(schedule), empty_matches.empty_matches_refused(schedule):
                try:
                    interpreter.apply_named_sequence(payload, sequence, schedule)
                finally:
                    last_step = current_step()
        except (ir.MLIRError, ValueError, RuntimeError) as error:
            said = locations.diagnostic(error, schedule)
            if said == NO_DIAGNOSTIC:
                said = f"{last_step}: failed, and MLIR does not say why: are its attributes valid?"
            raise CandidateError(Stage.COMPILE, said) from error


def verify(payload: ir.Module) -> None:
    """Raises CandidateError(COMPILE) if a script left the payload invalid.

    The transform interpreter does not verify the payload.
    """
    try:
        payload.operation.verify()
    except ir.MLIRError as error:
        raise CandidateError(Stage.COMPILE, f"after the script: {first_diagnostic(error)}") from error


def schedules_of(script: ir.Module) -> list[ir.Module]:
    """Returns the modules that have a script's sequences: the script, or copies of its nested modules.

    Copies, since MLIR applies only sequences of a module without a parent.
    """
    nested = [op.operation for op in script.body.operations if _is_schedule(op.operation)]
    if not nested or any(op.operation.name == SEQUENCE for op in script.body.operations):
        return [script]
    return [ir.Module.parse(op.get_asm(enable_debug_info=True, print_generic_op_form=True)) for op in nested]


def without_schedules(payload: ir.Module) -> ir.Module:
    """Removes nested modules of schedules, and sequences next to functions, in place; returns the payload."""
    for op in ops_in(payload.body):
        if op.name == SEQUENCE or _is_schedule(op):
            op.erase()
    return payload


def _is_schedule(op: ir.Operation) -> bool:
    return op.name == "builtin.module" and SCHEDULE in op.attributes


def entry_sequence(script: ir.Module) -> ir.Operation:
    """Returns the sequence that runs: ``@__transform_main``, else the only sequence.

    Raises CandidateError(BIND) if there is no sequence, or several of which none has this name.
    """
    sequences = [op for op in script.body.operations if op.operation.name == SEQUENCE]
    if not sequences and any(op.operation.name == "transform.sequence" for op in script.body.operations):
        old = "script: found transform.sequence, the old form of a script"
        raise CandidateError(Stage.BIND, f"{old}, allowed transform.named_sequence @__transform_main")
    named = [op for op in sequences if op.attributes["sym_name"].value == "__transform_main"]
    if not sequences:
        raise CandidateError(Stage.BIND, "script: has no transform.named_sequence @__transform_main")
    if not named and len(sequences) != 1:
        found = ", ".join(op.attributes["sym_name"].value for op in sequences)
        raise CandidateError(
            Stage.BIND, f"script: found sequences {found}, allowed one named @__transform_main"
        )
    return (named or sequences)[0].operation


def bind_trailing_arguments(sequence: ir.Operation, trailing: tuple[str, ...]) -> None:
    """Replaces a sequence's arguments after the first, in place, by what each text of ``trailing`` names.

    Texts are those of mlir-opt's option ``debug-bind-trailing-args``: "linalg.matmul" for all such ops,
    "^linalg.matmul" for their results, "#8;16" for parameters. Raises CandidateError(BIND) for another number
    of texts, and for a text that does not fit its argument's type.
    """
    signature = sequence.attributes["function_type"].value
    allowed = max(len(signature.inputs) - 1, 0)
    if allowed != len(trailing):
        found = f"found {len(trailing)} bindings of the entry's arguments after the first"
        option = "tuner apply --debug-bind-trailing-args"
        raise CandidateError(Stage.BIND, f"script: {found}, allowed {allowed} ({option})")
    blocks = list(sequence.regions[0].blocks)
    if not trailing or not blocks:  # of a declaration MLIR says that it has no body
        return
    root, *arguments = blocks[0].arguments
    with ir.InsertionPoint.at_block_begin(blocks[0]), sequence.location:
        for argument, text in zip(arguments, trailing, strict=True):
            argument.replace_all_uses_with(_bound_argument(root, text, argument.type))
    for argument in reversed(arguments):
        blocks[0].erase_argument(argument.arg_number)
    sequence.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get([root.type], signature.results)
    )
    if "arg_attrs" in sequence.attributes:
        sequence.attributes["arg_attrs"] = ir.ArrayAttr.get([sequence.attributes["arg_attrs"][0]])


def _bound_argument(root: ir.Value, text: str, type_: ir.Type) -> ir.Value:
    def made(op: str, result: ir.Type, operands: list[ir.Value], **attributes: str) -> ir.Value:
        parsed = {name: ir.Attribute.parse(text_) for name, text_ in attributes.items()}
        built = ir.Operation.create(op, [result], operands, parsed)
        built.verify()  # the interpreter trusts the types of a script
        return built.result

    try:
        if text.startswith("#"):
            constants = [
                made("transform.param.constant", type_, [], value=f"{int(number)} : i64")
                for number in text[1:].split(";")
            ]
            return made("transform.merge_handles", type_, constants)
        name = f'["{text.removeprefix("^")}"]'
        if not text.startswith("^"):
            return made("transform.structured.match", type_, [root], ops=name)
        ops = made("transform.structured.match", ir.Type.parse("!transform.any_op"), [root], ops=name)
        return made("transform.get_result", type_, [ops], raw_position_list="array<i64>", is_all="unit")
    except (ir.MLIRError, ValueError) as error:
        reason = f"script: {text!r}: cannot be bound to an argument of type {type_}"
        raise CandidateError(Stage.BIND, reason) from error


def first_diagnostic(error: Exception) -> str:
    """Returns the first two "error:" or "note:" lines of an MLIR exception as one line.

    Without such lines, the first two lines of its text; for an empty text the name of the exception's type.
    The line has at most 500 characters.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("error:", "note:"))]
    said = " ".join(errors[:2] or lines[:2]).replace('"-":', "line ")  # "-": MLIR's file name for parsed text
    said = UNKNOWN_DIALECT.sub(r"found \2 of dialect \1, allowed dialects that MLIR or GPUX has", said)
    return said[:500] or type(error).__name__


def failing_op(script: str, payload: str) -> OpPlace | None:
    """Returns the top-level op of a transform script that fails on a payload, and its place in the script.

    A binary search finds the shortest prefix of the entry sequence that fails. None for a script that does
    not fail, does not parse, has no entry sequence or one with further arguments, or has a rejected pass.
    Raises CandidateError(BIND) for a payload that does not parse.
    """
    with new_context(), ir.Location.unknown():
        try:
            bound = parse(script, SCRIPT)
            block = entry_sequence(bound).regions[0].blocks[0]
        except CandidateError:
            return None
        ops = ops_in(block)
        # lengths of prefixes; the last op is transform.yield
        applied = 0
        failing = len(ops) - 1
        if not _fails(script, payload, failing):
            return None
        while failing - applied > 1:
            middle = (applied + failing) // 2
            if _fails(script, payload, middle):
                failing = middle
            else:
                applied = middle
        at = ops[failing - 1].location
        assert isinstance(at, ir.FileLineColLoc)  # the script was parsed from text above
        return OpPlace(SCRIPT, ops[failing - 1].name, at.start_line, at.start_col)


def _fails(script: str, payload: str, count: int) -> bool:
    module = parse(payload, "payload")
    bound = parse(script, SCRIPT)
    block = entry_sequence(bound).regions[0].blocks[0]
    for op in reversed(list(block.operations)[count:]):  # users of a value come after its definition
        op.operation.erase()
    ir.Operation.create("transform.yield", ip=ir.InsertionPoint(block))
    try:
        apply_script(module, bound)
    except CandidateError as error:
        return error.stage is Stage.COMPILE
    return False
