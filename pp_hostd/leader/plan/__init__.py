"""The leader's decisions: pure, with time as an argument."""
