"""Programs of one dynamic size n: a family of static programs, and the proof that their padding is right."""
