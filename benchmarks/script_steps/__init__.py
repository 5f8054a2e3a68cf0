"""What each step of a script does to the code, and whether two versions of the templates are equal."""
