"""Users, what they want to do, and rules that allow it."""

from __future__ import annotations

from pp_hostd.frozen import frozen


@frozen
class User:
    """A name and the groups it is in."""

    name: str
    groups: tuple[str, ...] = ()

    @property
    def node(self) -> str:
        """The node whose credentials these are; empty for everyone else."""
        prefix = "system:node:"
        return self.name[len(prefix) :] if "system:nodes" in self.groups and self.name.startswith(prefix) else ""


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


@frozen
class Action:
    """A request as rules see it."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""

    @property
    def what(self) -> str:
        """The resource, with its subresource if one is meant."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


@frozen
class Rule:
    """What some users and groups may do; `*` stands for everything, no names at all for every object."""

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def allows(self, user: User, action: Action) -> bool:
        """Whether this rule is for that user and covers that action."""
        if user.name not in self.users and not set(user.groups) & set(self.groups):
            return False
        wanted = ((self.verbs, action.verb), (self.api_groups, action.group), (self.resources, action.what))
        return all(one in some or "*" in some for some, one in wanted) and (not self.names or action.name in self.names)
