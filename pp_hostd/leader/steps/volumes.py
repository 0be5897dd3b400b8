"""The volumes of pods, and whether they are of a certain storage: that which a storage fence has cut off."""

from __future__ import annotations

from pp_hostd.kube.resources import VOLUME_CLAIMS, VOLUMES
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import Port, if_there

_HARMLESS = frozenset({"name", "emptyDir", "configMap", "secret", "projected", "downwardAPI"})
"""Volumes that no other pod writes to."""


class Volumes:
    """Of one look. `storage` names the StorageClasses or CSI drivers that are cut off."""

    def __init__(self, port: Port, storage: tuple[str, ...]) -> None:
        self._port, self._storage = port, storage
        self._names: dict[tuple[str, str], str] = {}
        self._cut_off: dict[str, bool] = {"": False}

    async def of_pod(self, pod: Json) -> set[str] | None:
        """The PersistentVolumes of a pod, if all that it can write to is of that storage. None if it is not."""
        names: set[str] = set()
        for volume in pod["spec"].get("volumes") or ():
            claim = _claim(pod, volume)
            if claim is None and not volume.keys() <= _HARMLESS:
                return None
            if claim is not None:
                name = await self._name(pod["metadata"]["namespace"], claim)
                if not await self.is_cut_off(name):
                    return None
                names.add(name)
        return names

    async def all_of_pod(self, pod: Json) -> set[str]:
        """All PersistentVolumes of a pod, of whichever storage."""
        claims = filter(None, (_claim(pod, volume) for volume in pod["spec"].get("volumes") or ()))
        return {await self._name(pod["metadata"]["namespace"], claim) for claim in claims}

    async def is_cut_off(self, name: str) -> bool:
        """Whether the PersistentVolume of this name is of that storage. One that is not there is of none."""
        if name not in self._cut_off:
            volume = await if_there(self._port.api.get(VOLUMES, name))
            spec = (volume or {}).get("spec") or {}
            called = {spec.get("storageClassName"), (spec.get("csi") or {}).get("driver")}
            self._cut_off[name] = not called.isdisjoint(self._storage)
        return self._cut_off[name]

    async def _name(self, namespace: str, claim: str) -> str:
        """Of the PersistentVolume of a claim; empty if there is none."""
        if (namespace, claim) not in self._names:
            found = await if_there(self._port.api.get(VOLUME_CLAIMS, claim, namespace=namespace))
            self._names[namespace, claim] = ((found or {}).get("spec") or {}).get("volumeName") or ""
        return self._names[namespace, claim]


def _claim(pod: Json, volume: Json) -> str | None:
    """The name of the claim that this volume of a pod stands for; None if it stands for none."""
    if "persistentVolumeClaim" in volume:
        return str(volume["persistentVolumeClaim"]["claimName"])
    return f"{pod['metadata']['name']}-{volume['name']}" if "ephemeral" in volume else None
