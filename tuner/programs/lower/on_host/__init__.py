"""The same program without a GPU: launches as loops, streams dropped."""
