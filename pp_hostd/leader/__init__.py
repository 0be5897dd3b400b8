"""The leader: condemns, waits for certainty, frees the workloads and recreates the Node."""
