"""Approves the renewals of agents and leaders, and of nobody else; model/renewal.py decides, this talks to the API."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Callable

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.outcome import ApiError, is_unserved
from pp_hostd.kube.renewing import REQUESTS, approval, is_decided, parse_renewal
from pp_hostd.model.renewal import SIGNER, refusal, requests_of
from pp_hostd.service.journal import Journal, Message, Priority

LOOK_SECONDS = 5.0
UNSERVED_SECONDS = 300.0


class Approvals:
    """`trouble` says why requests could not be looked at, or one not be decided; empty if all is well."""

    def __init__(
        self,
        client: ApiClient,
        enrolled: Callable[[], Collection[str] | None],
        is_acting: Callable[[], bool],
        journal: Journal,
    ) -> None:
        """`enrolled` names the nodes that are; None while that is not known yet."""
        self.trouble = ""
        self._client, self._enrolled, self._is_acting, self._journal = client, enrolled, is_acting, journal

    async def run(self) -> None:
        """Look at what is requested again and again, until cancelled."""
        while True:
            pause_seconds = await self.look()
            await asyncio.sleep(pause_seconds)

    async def look(self) -> float:
        """Decide all that is requested; in how many seconds to look again."""
        enrolled = self._enrolled()
        if enrolled is None:
            return LOOK_SECONDS
        try:
            listed = await self._client.list(REQUESTS, field_selector=f"spec.signerName={SIGNER}")
            for found in listed.items:
                if _is_for_us(found) and self._is_acting():  # rule 14
                    await self._decide(found, enrolled)
        except ApiError as error:
            self.trouble = "" if is_unserved(error) else error.sentence
            return UNSERVED_SECONDS if is_unserved(error) else LOOK_SECONDS
        self.trouble = ""
        return LOOK_SECONDS

    async def _decide(self, found: Json, enrolled: Collection[str]) -> None:
        metadata, requester = found["metadata"], found["spec"]["username"]
        try:
            why_not = refusal(parse_renewal(found), enrolled)
        except ValueError as error:
            why_not = f"the request {error}"
        message = why_not or f"{requester} renews its own certificate"
        patch = approval(not why_not, "NotARenewal" if why_not else "Renewed", message)
        # Of that very version: another object under the same name would be another request.
        patch["metadata"] = {"resourceVersion": metadata["resourceVersion"]}
        await self._client.patch(REQUESTS, metadata["name"], patch, subresource="approval")
        said = f"denied {REQUESTS.describe(None, metadata['name'])} of {requester}: {message}" if why_not else message
        self._journal.say(Message.RENEWAL, said, Priority.WARNING if why_not else Priority.INFO)


def _is_for_us(found: Json) -> bool:
    """Whether it is undecided and bears the name of a renewal: all others are other approvers' business."""
    prefix = requests_of(found["spec"].get("username") or "")
    return bool(prefix) and found["metadata"]["name"].startswith(prefix) and not is_decided(found)
