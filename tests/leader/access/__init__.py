"""What `pp-leader install` and its tests share: a cluster of their own with the manifests applied."""
