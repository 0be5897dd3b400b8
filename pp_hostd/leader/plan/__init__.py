"""What the leader decides: pure, with time as an argument."""
