"""Remediation objects, on virtual hosts with virtual power."""
