"""What pp-hostd may do in a cluster, and what it has left there: values only, the commands carry them to the API."""
