"""CUDA C compiled in this process by NVRTC, of the wheel ``nvidia-cuda-nvrtc``; no GPU is needed."""

import ctypes
import importlib.metadata
from pathlib import Path
from typing import Any

DISTRIBUTION = "nvidia-cuda-nvrtc"


class Nvrtc:
    """NVIDIA's runtime compiler. Raises PackageNotFoundError where its wheel is not installed."""

    def __init__(self) -> None:
        wheel = importlib.metadata.distribution(DISTRIBUTION)
        (name,) = (file for file in wheel.files or () if file.name.startswith("libnvrtc.so"))
        self._library = ctypes.CDLL(str(Path(str(wheel.locate_file(name)))))

    def compile(self, source: str, options: tuple[str, ...]) -> tuple[str, bytes]:
        """Returns PTX and cubin of a translation unit. Raises ValueError with the compiler's log."""
        program = ctypes.c_void_p()
        self._call("CreateProgram", ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
        try:
            texts = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            if self._library.nvrtcCompileProgram(program, len(options), texts):
                raise ValueError(self._text(program, "ProgramLog").decode())
            return self._text(program, "PTX").decode().rstrip("\0"), self._text(program, "CUBIN")
        finally:
            self._call("DestroyProgram", ctypes.byref(program))

    def _text(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"Get{what}Size", program, ctypes.byref(size))
        content = ctypes.create_string_buffer(size.value)
        self._call(f"Get{what}", program, content)
        return content.raw

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, f"nvrtc{name}")(*arguments)
        if status:
            raise ValueError(f"nvrtc{name}: status {status}")
