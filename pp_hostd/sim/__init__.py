"""A simulator: whole clusters in virtual time, run by the daemons' own judge, plan and drivers, on bad days.

The world      time, network: what happens when; api, stream: the store behind its quorum; cluster, filled: its content
Inhabitants    host, with its kubelet; agent, leader: processes around the real drivers; bare_metal; people
Bad days       schedule: what goes wrong; themes, attack_themes, days: by chance; named_days: by name
               play, attacks: how it happens; disturbance, truth: the facts; invariants: what must hold
Without rules  mutant: how one is taken out; mutants, named_day: all of them; hunt: the shortest schedule that shows it
Many of them   run: one of them; campaign: many, added up; commands: pp-hostd simulate
"""
