"""Functions that read, build and rewrite IR, shared by transform ops and passes."""
