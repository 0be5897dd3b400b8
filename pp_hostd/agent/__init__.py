"""The agent, on every host: sense, judge, act."""
