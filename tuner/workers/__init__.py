"""Child processes that compile, judge and time candidates, and the benches made of them."""
