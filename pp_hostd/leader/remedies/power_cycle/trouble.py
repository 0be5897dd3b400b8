"""Why a BareMetalHost is not switched off, or its power not believed: what is wrong, and what to do about it."""

from __future__ import annotations

from pp_hostd.leader.plan.view import View
from pp_hostd.leader.remedies.power_cycle.bare_metal_host import BareMetalHost, HostsSeen, PowerRequest, request_of
from pp_hostd.model.keys import EXTERNAL_REMEDIATION
from pp_hostd.model.machine_details import HostReference
from pp_hostd.model.record import Unreadable

ACTUATORS_KEY = "reboot.metal3.io/capbm-requested-power-off"
_WITHDRAW = f"or remove {EXTERNAL_REMEDIATION} from the Machine"


def without_host(view: View) -> str:
    """Why no host is found for this machine."""
    reference = None if view.machine_seen is None else view.machine_seen.host.host
    if view.observed.part(HostsSeen).late:
        return f"its BareMetalHost can't be seen: {view.observed.part(HostsSeen).late}"
    if isinstance(reference, Unreadable):
        return f"{reference}. Correct spec.providerID of Machine {view.machine_key}, {_WITHDRAW}"
    if reference is None:
        return f"Machine {view.machine_key} names no BareMetalHost (spec.providerID). Correct that, {_WITHDRAW}"
    found = view.observed.part(HostsSeen).seen.get(reference.machine_key)
    if found is not None:
        return (
            f"BareMetalHost {reference} has uid {found.uid}, and Machine {view.machine_key} was made for "
            f"{reference.uid}: its host was replaced. Correct spec.providerID, {_WITHDRAW}"
        )
    return f"there is no BareMetalHost {reference}, which Machine {view.machine_key} names. Correct that, {_WITHDRAW}"


def rival(view: View, host: BareMetalHost) -> str:
    """Why OpenShift's own bare-metal actuator has this machine, which acts on the same request; empty if it has not."""
    mark = "" if view.machine_seen is None else view.machine_seen.host.actuator
    where = f"{mark} is on Machine {view.machine_key}"
    if ACTUATORS_KEY in host.others:
        mark, where = ACTUATORS_KEY, f"{ACTUATORS_KEY} is on BareMetalHost {host.machine_key}"
    if not mark:
        return ""
    return (
        f"OpenShift's own bare-metal actuator works on it ({where}), and two must not switch the same host. Set "
        "power.cycle to false; or stop that actuator (Deployment machine-api-controllers in openshift-machine-api) "
        "and remove its marks"
    )


def host_trouble(view: View, host: BareMetalHost) -> str:
    """Why this host must not be touched for this machine, and why its reported power proves nothing; empty if none."""
    others = sorted(_claimants(view, host) - {view.machine_key})
    if others:
        return (
            f"BareMetalHost {host.machine_key} is claimed by {' and '.join(others)} too. Correct their spec.providerID"
        )
    if host.consumer not in ("", view.machine_key):
        return f"BareMetalHost {host.machine_key} is in use by Machine {host.consumer} (spec.consumerRef). Correct that"
    if host.obstacle:
        return f"BareMetalHost {host.machine_key}: {host.obstacle}"
    if isinstance(host.request, Unreadable):
        return (
            f"BareMetalHost {host.machine_key}: {host.request}. Somebody else uses that annotation: choose another "
            "power.suffix, or remove it there"
        )
    if isinstance(host.request, PowerRequest) and request_of(view) is None:
        return (
            f"BareMetalHost {host.machine_key} is kept off for Machine {host.request.machine} (uid {host.request.uid})"
        )
    return ""


def unfit(host: BareMetalHost) -> str:
    """Why it makes no sense to have it switched off; empty if none."""
    if not host.online:
        return f"BareMetalHost {host.machine_key} is meant to be off (spec.online is false), and would not come back"
    if host.unheeded:
        return f"BareMetalHost {host.machine_key}: {host.unheeded}"
    if host.powered_on is None:
        return f"the operator has not reported yet whether BareMetalHost {host.machine_key} is on"
    return ""


def _claimants(view: View, host: BareMetalHost) -> set[str]:
    """The machines that name it; one that names a predecessor of the same name does not."""
    claims, machines = view.observed.claims, view.observed.machines
    found = {*claims.get(host.machine_key, ()), *claims.get(host.uid, ())}
    return {
        machine_key
        for machine_key in found
        if machine_key in machines and _names(machines[machine_key].host.host, host)
    }


def _names(reference: object, host: BareMetalHost) -> bool:
    return isinstance(reference, HostReference) and reference.uid in ("", host.uid)


def kept_off_by_others(host: BareMetalHost) -> str:
    """Returns why others keep the host off, while no time counts against the host; empty if they do not."""
    if host.powered_on is True or (host.online and not host.others):
        return ""
    return f"it is kept off by {', '.join(host.others)}" if host.others else "it is meant to be off (spec.online)"
