"""The command ``tuner``, also ``python -m tuner``; ``measure --bundle`` needs nothing but numpy."""

import atexit
import gc
import os
import signal
import sys
import time

COLLECTED_AFTER = 500_000  # new objects; after 700, the default, a tenth of a start is searches for cycles
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
STANDARD_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))  # in the order of their descriptors


def main() -> None:
    """Runs the ``tuner`` command in ``sys.argv`` and exits the process with the command's exit code.

    Ctrl-C prints no traceback, even while modules are imported or the interpreter ends: the exit code is 130.
    ``measure --bundle``, or ``measure`` where click is missing, runs without the command-line packages.
    """
    began_s = time.monotonic()
    gc.set_threshold(COLLECTED_AFTER)
    atexit.register(gc.freeze)  # at the end, else the interpreter searches all objects for cycles: 0.5 s
    before = signal.getsignal(signal.SIGINT)
    _exit_on_interrupts(before)
    exit_on_dropped_interrupts()
    # Closed streams (``>&-``) are opened on the null device: else the next file that is opened, such as the
    # database's, would get their descriptor, and with it what is printed
    for name, mode in STANDARD_STREAMS:
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115 - open for the process's life
    options = sys.argv[1:]
    try:
        if _is_bundle_measured(options):
            _measure_bundle(options, before)
        else:
            _run_command(began_s, before)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        _exit_on_interrupts(before)  # the interpreter's own end would print where it was interrupted


def _run_command(began_s: float, handler: object) -> None:
    from tuner.cli import main as command  # slow: Ctrl-C during it is caught above

    signal.signal(signal.SIGINT, handler)  # type: ignore[arg-type]  # as it was
    command(prog_name="tuner", began_s=began_s)


def _measure_bundle(options: list[str], handler: object) -> None:
    from tuner.elsewhere.bundle.command import main as measure  # numpy alone, where click may be missing

    signal.signal(signal.SIGINT, handler)  # type: ignore[arg-type]  # as it was
    sys.exit(measure(options[1:]))


def _is_bundle_measured(options: list[str]) -> bool:
    if options[:1] != ["measure"]:
        return False
    import importlib.util

    has_bundle = any(text.split("=")[0] == "--bundle" for text in options)
    return has_bundle or importlib.util.find_spec("click") is None


def _exit_on_interrupts(before: object) -> None:
    # Ctrl-C ends the process at once, where Python would print a traceback; nothing is lost here. A process
    # that ignores it, such as one in the background of a shell's script, goes on to do so.
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(INTERRUPTED))


def exit_on_dropped_interrupts() -> None:
    """Installs a ``sys.unraisablehook`` that exits with 130 where Python would drop a KeyboardInterrupt.

    Python drops exceptions in finalizers and weak-reference callbacks, which run during imports. The hook
    acts only while SIGINT has Python's default handler; it passes all other exceptions to the earlier hook.
    """
    report = sys.unraisablehook

    def end(unraisable: "sys.UnraisableHookArgs") -> None:
        is_interrupt = issubclass(unraisable.exc_type, KeyboardInterrupt)
        if is_interrupt and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            os._exit(INTERRUPTED)
        report(unraisable)

    sys.unraisablehook = end


if __name__ == "__main__":
    main()
