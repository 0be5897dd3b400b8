"""A whole site: hosts with agents, leaders and kubelets, a real control plane, and a workload with a volume."""
