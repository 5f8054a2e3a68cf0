"""The base class of compiled programs on this processor, and the error of a failing assertion."""

import abc
import re
from typing import Any, Never

from tuner.core.errors import CandidateError, IndexOutOfRange, Stage, reason_of
from tuner.runtime.process_state import LoadedCode

INDEX = "index"  # in assertions of indices, of tuner (``assert_indirect_indices``) and of torch-mlir
# The message of generate-runtime-verification: operation, reason, location
VERIFICATION = re.compile(
    r'.*verification failed\s*(?:%\S+ = )?"?([\w.]+).*\^ (.*)\s*Location: loc\(.*?:(\d+:\d+)', re.DOTALL
)


def failed_assertion(text: str) -> CandidateError:
    """Returns the CandidateError(RUN) for a failed assertion with the message ``text``.

    A message that contains "index" gives an IndexOutOfRange, which is also an IndexError.
    """
    if match := VERIFICATION.match(text):
        wrong = " ".join(match[2].split())
        reason = f"host: {match[1]} at line {match[3]}: found {wrong}, allowed what lies in its memory"
    else:
        reason = reason_of(f"the program's assertion fails: {text}")
    error = IndexOutOfRange if INDEX in text else CandidateError
    return error(Stage.RUN, reason)


class AbstractHostProgram(LoadedCode, abc.ABC):
    """A compiled program on this processor as a callable.

    Calls from several threads run one after the other.
    """

    @abc.abstractmethod
    def __call__(self, *arguments: Any, stream: object = None) -> Any:
        """Calls the program and waits for its end.

        Args:
            arguments: C-contiguous numpy arrays, or other arrays in host memory (DLPack), of the program's
                shapes and types; numbers for its scalars.
            stream: None; a program on the host takes no stream.

        Returns:
            The result; a tuple of several results; None without a result. Its memory may be used for another
            result when nobody refers to it.

        Raises:
            UsageError: arguments of another number, shape, type or strides, or a stream.
            CandidateError: an interpreted kernel or an assertion failed (stage RUN); it is an IndexError,
                too, where an index is out of range.

        Example:
            >>> import numpy as np
            >>> import tuner
            >>> twice = "func.func @twice(%x: !t) -> !t { %y = arith.addf %x, %x : !t return %y : !t }"
            >>> payload = f"!t = tensor<4xf32> {twice}"
            >>> program = tuner.compile_program(payload, target="cpu")
            >>> program(np.ones(4, np.float32))
            array([2., 2., 2., 2.], dtype=float32)
        """

    @abc.abstractmethod
    def prepare(self, *arguments: Any) -> Any:
        """Checks the arguments of a call and lays them out in memory, for ``repeat``.

        Args:
            arguments: those of a call of the program.

        Returns:
            The prepared call, which keeps the arguments alive.

        Raises:
            UsageError: arguments of another number, shape, type or strides.

        Example:
            >>> import tuner
            >>> payload = "func.func @twice(%x: f32) -> f32 { %y = arith.addf %x, %x : f32 return %y : f32 }"
            >>> program = tuner.compile_program(payload, target="cpu")
            >>> call = program.prepare(1.0)
            >>> program.repeat(call, 3)
        """

    @abc.abstractmethod
    def repeat(self, call: Any, times: int) -> None:
        """Calls the program several times on the same arguments and drops the results, for timing.

        Args:
            call: what ``prepare`` returned.
            times: number of calls.

        Returns:
            None.

        Raises:
            CandidateError: an interpreted kernel or an assertion failed (stage RUN); it is an IndexError,
                too, where an index is out of range.

        Example:
            >>> import tuner
            >>> payload = "func.func @twice(%x: f32) -> f32 { %y = arith.addf %x, %x : f32 return %y : f32 }"
            >>> program = tuner.compile_program(payload, target="cpu")
            >>> program.repeat(program.prepare(1.0), 3)
            >>> program.allocations
            0
        """

    @abc.abstractmethod
    def as_graph(self, *_arguments: object) -> Never:
        """Always raises: only a program on a GPU or on the simulator can be captured as a graph.

        Args:
            _arguments: not used.

        Returns:
            Never.

        Raises:
            UsageError: always.

        Example:
            >>> import tuner
            >>> payload = "func.func @twice(%x: f32) -> f32 { %y = arith.addf %x, %x : f32 return %y : f32 }"
            >>> program = tuner.compile_program(payload, target="cpu")
            >>> try:
            ...     program.as_graph()
            ... except tuner.UsageError as error:
            ...     print(error)
            twice: the program runs on the host: only a program on a GPU has a graph
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Does nothing, unlike ``DeviceFunction.close``: the code is freed with this object.

        Returns:
            None.

        Raises:
            Nothing.

        Example:
            >>> import tuner
            >>> payload = "func.func @twice(%x: f32) -> f32 { %y = arith.addf %x, %x : f32 return %y : f32 }"
            >>> tuner.compile_program(payload, target="cpu").close()
        """
