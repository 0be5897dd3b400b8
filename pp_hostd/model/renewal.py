"""When a client certificate is renewed, under which name that is requested, and which requests a leader approves."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from pp_hostd.frozen import frozen
from pp_hostd.model.keys import AGENTS, LEADER_USER, LEADERS, NODE_USER, NODES_GROUP

SIGNER = "kubernetes.io/kube-apiserver-client"
"""The one that signs for any groups but system:masters; the kubelets' own signer takes system:nodes alone."""
USAGES = ("digital signature", "client auth")
EARLIEST_SHARE, LATEST_SHARE = 0.7, 0.8
"""Of the lifetime, as kubelets do it: hosts that were enrolled together do not renew together."""
BACKDATED, SHORT = timedelta(minutes=5), timedelta(hours=8)
"""The signer dates certificates back, and takes that from the lifetime only of those that are not short."""
SOON, SOON_SHARE = timedelta(days=30), 0.15
"""So long before its end, or at so small a rest of a shorter life, a certificate is reported that nobody renewed."""
LEADERS_REQUESTS = "pp-leader."
"""How the names of leaders' requests begin."""


@frozen
class Life:
    """From when to when a certificate is of use."""

    begins: datetime
    ends: datetime

    @property
    def used(self) -> timedelta:
        """From the signature to the end."""
        lasts = self.ends - self.begins
        return lasts - BACKDATED if BACKDATED < lasts < SHORT + BACKDATED else lasts

    @property
    def signed(self) -> datetime:
        """When it was made, whatever it says of its beginning."""
        return self.ends - self.used

    def renewal_at(self, luck: float) -> datetime:
        """When to renew it; `luck` is from 0 to 1, and always the same for the same certificate."""
        return self.ends - self.used * (1 - EARLIEST_SHARE - (LATEST_SHARE - EARLIEST_SHARE) * luck)

    def ends_soon(self, now: datetime) -> bool:
        """Whether its renewal should have come long ago."""
        return self.ends - now < min(SOON, self.used * SOON_SHARE)


def requests_of(user: str) -> str:
    """How the names of this user's requests begin; policies let it use no other. Empty if it is none of ours."""
    if user == LEADER_USER:
        return LEADERS_REQUESTS
    return f"pp-hostd.{user[len(NODE_USER) :]}." if user.startswith(NODE_USER) else ""


def own_groups(user: str) -> frozenset[str]:
    """The groups of this leader or agent; empty if it is none of ours. A kubelet's certificate has fewer."""
    if user == LEADER_USER:
        return frozenset({LEADERS})
    return frozenset({NODES_GROUP, AGENTS}) if user.startswith(NODE_USER) else frozenset()


@frozen
class Renewal:
    """A CertificateSigningRequest: what the API knows of the requester, and what the request itself wants."""

    name: str
    requester: str
    requester_groups: Collection[str]
    signer: str
    usages: Sequence[str]
    bounded: bool
    """Whether it names a duration of its own."""
    user: str
    groups: Collection[str]


def refusal(renewal: Renewal, enrolled: Collection[str]) -> str:
    """Returns why this is no renewal that a leader approves; empty if it approves it."""
    if renewal.user != renewal.requester:
        return f"{renewal.requester} wants a certificate of {renewal.user or 'nobody'}, and gets none but its own"
    node = renewal.user[len(NODE_USER) :] if renewal.user.startswith(NODE_USER) else ""
    own = own_groups(renewal.user)
    if not own:
        return f"{renewal.user} is neither a leader nor an agent"
    if set(renewal.groups) != own or not own <= set(renewal.requester_groups):
        return f"the groups of {renewal.user} are {' and '.join(sorted(own))}, no more and no less"
    if node and node not in enrolled:
        return f"{node} is not enrolled"
    if renewal.signer != SIGNER or sorted(renewal.usages) != sorted(USAGES) or renewal.bounded:
        return f"a renewal is signed by {SIGNER} for {' and '.join(USAGES)}, for as long as the cluster signs"
    if not renewal.name.startswith(requests_of(renewal.user)):
        return f"the name of such a request begins with {requests_of(renewal.user)}"
    return ""
