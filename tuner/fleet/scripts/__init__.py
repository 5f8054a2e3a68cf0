"""What starts nodes on machines of others. Text is all that is made: nothing is started."""
