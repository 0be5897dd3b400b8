"""Scenarios of real agents on a bed's hosts while the world around them fails: one sentence of the design per test."""
