"""Which copies between host and device a function needs, and their insertion."""
