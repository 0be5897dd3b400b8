"""What real agents on real hosts do when the world around them fails: one sentence of the design per test."""
