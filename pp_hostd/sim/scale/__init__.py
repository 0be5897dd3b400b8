"""How traffic grows with the cluster: an hour of thousands of hosts, of whom a few live in full for all.

cases       what happens to the cluster, and when
crowd       a simulated world in which representatives stand for hosts that are alike; representative: their agents
tally       messages, requests and bytes by the second; sizes: how large each is; leader_work: what the leader did
jury        the same with a shorter list of peers, as docs/scale.md proposes
run         one case at one size, and its figures
"""
