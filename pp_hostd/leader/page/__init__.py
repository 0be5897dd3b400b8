"""The leader's page, for people: what it shows, how it is served, and its files."""
