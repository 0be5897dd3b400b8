"""A Kubernetes API in memory: the store, to which no socket and no clock belongs, and a server on top of it.

What is stored       store: the calls; table, history, subscription: one kind's objects, now, then, and as they change;
                     paging, selectors: which of them
What the API adds    kinds: how they differ; preconditions, validation, content, syntax: what is refused; lifecycle,
                     merge_patch: what is written; status: how a refusal looks; garbage: what follows a deletion
Who may              access, rules, nodes
On a socket          server, tls, watching: bytes; api, routes, options: requests; __main__: the program
"""
