"""What `pp-hostd doctor` knows: probe/ looks at the host and its cluster, diagnose/ says what that means. No daemon
imports any of it."""
