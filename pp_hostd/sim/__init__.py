"""A simulator: whole clusters in virtual time, run by the daemons' own judge, plan and drivers, on bad days.

The world      time, clock, network: what happens when; api: the cluster's store behind its quorum
Who lives      host: kernel, watchdog, gate, kubelet; agent, leader: processes around the real drivers; process
Bad days       schedule: what goes wrong; play: how; invariants: what must hold; mutants: rules taken out
               scenarios: bad days that have a name
Many of them   run: one of them; campaign, jobs, resume: many, added up; shrink, hunt: the shortest that shows it
               commands/: pp-hostd simulate
"""
