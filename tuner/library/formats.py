"""The formats that several entries can be exported in."""

from collections.abc import Callable, Mapping

from tuner.library.entry import LibraryEntry, LibraryFile

Writer = Callable[[tuple[LibraryEntry, ...]], tuple[LibraryFile, ...]]  # raises UsageError, TunerError
# Name of a format -> a function that returns its writer, so that only the chosen one is imported.
FORMATS: Mapping[str, Callable[[], Writer]] = {}
