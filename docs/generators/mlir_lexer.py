"""Colours for MLIR, which Pygments does not know."""

from typing import ClassVar

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, String, Text


class MlirLexer(RegexLexer):  # type: ignore[misc] # untyped
    """Distinguishes comments, strings, values, symbols, types and operations."""

    name = "MLIR"
    tokens: ClassVar = {
        "root": [
            (r"//[^\n]*", Comment.Single),
            (r'"(?:[^"\\\n]|\\.)*"', String),
            (r"%[\w$.#:]+", Name.Variable),
            (r"@[\w$.:@]+", Name.Function),
            (r"[!#][\w.]+", Keyword.Type),
            (r"\^\w+", Name.Label),
            (r"\b(?:tensor|memref|vector)(?=<)|\b(?:[fi]\d+|bf16|tf32|index)\b", Keyword.Type),
            (r"\b[a-z]\w*(?:\.\w+)+", Name.Builtin),
            (r"-?\b\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\b", Number),
            (r"\w+|.|\n", Text),
        ]
    }
