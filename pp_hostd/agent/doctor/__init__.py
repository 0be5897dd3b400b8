"""`pp-hostd doctor`: probe/ looks at the host and its cluster, diagnose/ says what the facts mean. No daemon imports
any of it."""
