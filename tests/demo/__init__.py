"""`make demo`: what exists, shown live to a person."""
