"""How traffic grows with the cluster: an hour of thousands of hosts, of whom a few live in full for all.

run         one case at one size: what happens to the cluster and when, the leader's work, and the figures
crowd       a simulated world in which representatives stand for hosts that are alike; a shorter list of peers
tally       messages, requests and bytes by the second, and how large each is
"""
