"""Reading and building IR: what transform ops and passes share. None of it is a pass."""
