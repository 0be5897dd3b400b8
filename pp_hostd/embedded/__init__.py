"""A Kubernetes API in memory: the store, to which no socket and no clock belongs, and a server on top of it.

The objects          store: the calls, and merge patches; history: one kind's objects, now, then, and as they change;
                     paging, selectors: which of them
Semantics            kinds: how they differ; validation: what is refused; lifecycle: what is written; status: how a
                     refusal looks; garbage: what follows a deletion
Rights               access: users, their rules, and what a node may do
On a socket          server: bytes, TLS and watches; api: requests; __main__: the program
"""
