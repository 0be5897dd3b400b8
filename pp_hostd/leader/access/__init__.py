"""pp-hostd's rights in a cluster, and the marks that it has left there: values only, commands send them to the API."""
