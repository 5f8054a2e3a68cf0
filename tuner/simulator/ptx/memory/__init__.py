"""State spaces, asynchronous copies and mbarriers."""
