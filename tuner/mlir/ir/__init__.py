"""Functions that read and build IR, shared by transform ops and passes; no module here is a pass."""
