"""The leader: condemns, waits for certainty, frees the workloads and gives the Node back."""
