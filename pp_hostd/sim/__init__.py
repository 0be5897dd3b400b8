"""A simulator: whole clusters in virtual time, run by the daemons' own judge, plan and drivers, on bad days.

The world      time, network: what happens when; api, stream: the store behind its quorum; cluster, filled: its content
Who lives      host, kubelet; agent, leader, leader_term: processes around the real drivers; process; people
Bad days       schedule: what goes wrong; kinds, themes, days: by chance; named_day, named_days: those with names
               play, weather, attacks: how it happens; disturbance, truth: the facts; invariants: what must hold
Without rules  mutant: how one is taken out; mutants, mutants_of_days: all of them
               hunt, shrink: the shortest schedule that shows it
Many of them   run: one of them; campaign, jobs, resume: many, added up
               commands/: pp-hostd simulate
"""
