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
        self._known: dict[tuple[str, str], tuple[str, bool]] = {}

    async def of_pod(self, pod: Json) -> set[str] | None:
        """The PersistentVolumes of a pod, if all that it can write to is of that storage. None if it is not."""
        names: set[str] = set()
        for volume in pod["spec"].get("volumes") or ():
            claim = _claim(pod, volume)
            if claim is None and not volume.keys() <= _HARMLESS:
                return None
            if claim is not None:
                name, is_cut_off = await self._volume(pod["metadata"]["namespace"], claim)
                if not is_cut_off:
                    return None
                names.add(name)
        return names

    async def all_of_pod(self, pod: Json) -> set[str]:
        """All PersistentVolumes of a pod, of whichever storage."""
        claims = filter(None, (_claim(pod, volume) for volume in pod["spec"].get("volumes") or ()))
        return {(await self._volume(pod["metadata"]["namespace"], claim))[0] for claim in claims}

    async def _volume(self, namespace: str, claim: str) -> tuple[str, bool]:
        """The PersistentVolume of a claim, and whether it is of that storage. One that is not there is of none."""
        if (namespace, claim) not in self._known:
            self._known[namespace, claim] = await self._read(namespace, claim)
        return self._known[namespace, claim]

    async def _read(self, namespace: str, claim: str) -> tuple[str, bool]:
        found = await if_there(self._port.api.get(VOLUME_CLAIMS, claim, namespace=namespace))
        name = ((found or {}).get("spec") or {}).get("volumeName") or ""
        volume = await if_there(self._port.api.get(VOLUMES, name)) if name else None
        spec = (volume or {}).get("spec") or {}
        called = {spec.get("storageClassName"), (spec.get("csi") or {}).get("driver")}
        return name, not called.isdisjoint(self._storage)


def _claim(pod: Json, volume: Json) -> str | None:
    """The name of the claim that this volume of a pod stands for; None if it stands for none."""
    if "persistentVolumeClaim" in volume:
        return str(volume["persistentVolumeClaim"]["claimName"])
    return f"{pod['metadata']['name']}-{volume['name']}" if "ephemeral" in volume else None
