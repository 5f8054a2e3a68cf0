"""Scripts that start nodes on other machines. Only text is made: no process is started."""
