"""Programs of one dynamic size next to the same programs of static sizes."""
