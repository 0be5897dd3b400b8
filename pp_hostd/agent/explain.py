"""Why the verdict is what it is, and what would change it, in plain sentences made from the report alone."""

from __future__ import annotations

from pp_hostd.agent.report import Report
from pp_hostd.model.verdict import State


def explain(report: Report) -> list[str]:
    """One sentence after the other: what is so, why, what it means for this host, what would change it."""
    state = State(report["state"])
    return [
        _sentence(report["sentence"]),
        *_proof(report),
        *_ABOUT[state](report),
        *_gate(report),
        *_promise(report),
        *(_sentence(trouble) for trouble in report["troubles"]),
    ]


def _proof(report: Report) -> list[str]:
    proof = report["proof"]
    if proof is None:
        return ["There is no proof yet that this host's machine is not condemned."]
    detail = f" ({proof['detail']})" if proof["detail"] else ""
    return [
        f"The last proof that it is not condemned began {proof['age_seconds']:.1f} s ago: {proof['source']}{detail}."
    ]


def _waiting(report: Report) -> list[str]:
    return ["This host is not armed: nothing resets it, and the leader may not count on its death.", remedy(report)]


def _healthy(report: Report) -> list[str]:
    settings = report["settings"]
    return [
        f"Its watchdog {_fed(report)}, and longer with each new proof; it reads its machine every "
        f"{settings['read_interval_seconds']:g} s.",
        f"{settings['failed_reads']} failed reads in a row would make it ask its peers; a condemnation would reset it.",
        *_remaining_wish(report),
    ]


def _suspect(report: Report) -> list[str]:
    reads, inquiry = report["reads"], report["inquiry"]
    if inquiry is None:
        failed, enough = reads["failed_in_a_row"], report["settings"]["failed_reads"]
        asks = f"{failed} of {enough} reads in a row have failed; after {enough} it asks its peers." if failed else ""
    else:
        asks = (
            f"It has been asking its peers for {inquiry['age_seconds']:.1f} s, in round {inquiry['round']} of "
            f"{inquiry['rounds']}: {inquiry['summary']}."
        )
    return [
        *([asks] if asks else []),
        'One good read, or one peer that says "healthy", proves that it may live on.',
        'It resets itself if no peer says "healthy", and no more than half of all nodes, this one counted, say that '
        "they can't read the API.",
        f"Without a new proof it {_fed(report)}.",
    ]


def _outage(report: Report) -> list[str]:
    return [
        "More than half of all nodes, this one counted, can't read the API: the control plane is what failed, so it "
        "stays up.",
        f"It reads on and asks again; without a new proof it {_fed(report)}.",
        "A good read ends this.",
    ]


def _condemned(report: Report) -> list[str]:
    if report["gate"]["state"] != "closed":
        return _waiting(report)
    return ["Nothing was started in this boot, so nothing has to be reset; it is not armed.", remedy(report)]


def _resetting(report: Report) -> list[str]:
    if report["mode"] == "dry-run":
        return ["A dry run does nothing about it; the next proof ends this state.", remedy(report)]
    return ["The decision is final: nothing can talk this host out of it.", *_deadline(report)]


_ABOUT = {
    State.WAITING: _waiting,
    State.HEALTHY: _healthy,
    State.SUSPECT: _suspect,
    State.OUTAGE: _outage,
    State.CONDEMNED: _condemned,
    State.RESETTING: _resetting,
}


def remedy(report: Report) -> str:
    """Returns how the wait ends, and who can end it: orders and settings come first, then the cluster's state."""
    return _remedy_for_orders(report) or _remedy_in_cluster(report)


def _remedy_for_orders(report: Report) -> str:
    roster = report["roster"]
    if report["stopping"]:
        return "Start it again with: systemctl start pp-hostd"
    if report["mode"] == "dry-run":
        return 'To have it act, set agent.mode = "enforce" and do: systemctl restart pp-hostd'
    if report["maintenance"] is not None:
        return f"It ends at {report['maintenance']['until']}, or at once with: pp-hostd maintenance off"
    if roster is not None and roster["nodes"] <= 2 and roster["lists_this_node"] and not report["armed"]:
        return "With three nodes in the roster it is armed by itself; with two, if agent.arm_pairs is true."
    return ""


def _remedy_in_cluster(report: Report) -> str:
    seen, roster, node = report["node_object"]["seen"], report["roster"], report["node"]
    if report["condemned_id"] is not None:
        lifted = f"It waits until condemnation {report['condemned_id']} is lifted"
        return f"{lifted}: the leader does that once it has released the workloads."
    if seen == "missing":
        return f"The agent continues by itself as soon as Node {node} exists."
    if report["node_object"]["freeing"]:
        return "The agent continues by itself once the leader has made the Node usable again."
    if roster is None and seen == "present":
        return "pp-leader writes the roster: see that it runs on the control-plane hosts."
    if roster is not None and not roster["lists_this_node"]:
        return f"To have it armed, enrol it with: pp-leader enroll {node}"
    if report["waiting_for"].startswith("the roster names machine"):
        return f"If its own machine is the right one, enrol it again with: pp-leader enroll {node}"
    return (
        "The agent continues by itself as soon as the API answers: see that this host reaches it, and that the "
        f"credentials in {report['settings']['kubeconfig']} are valid."
    )


def _remaining_wish(report: Report) -> list[str]:
    wish = report["waiting_for"]
    return [_sentence(wish), remedy(report)] if wish else []


def _gate(report: Report) -> list[str]:
    gate, unit = report["gate"], report["settings"]["kubelet_unit"]
    if gate["state"] == "open":
        return []
    if gate["state"] == "closed" and gate["kind"] == "taint":
        return ["No promise is stored in this boot; the leader's taint is what keeps workloads away meanwhile."]
    if gate["state"] == "closed":
        return [f"The gate holds {unit} until then, so no workload starts. By hand: pp-hostd gate open --i-know"]
    return [f"Nothing holds {unit} in this boot: the gate was not in its way when it started, or is not wanted."]


def _promise(report: Report) -> list[str]:
    unknown = report["promise"]["outcome_unknown"]
    if not unknown:
        return []
    return [
        f"The outcome of {len(unknown)} write(s) to its Node is unknown; until the agent knows it, the agent "
        "keeps every promise in them."
    ]


def _fed(report: Report) -> str:
    verb = "would be" if report["mode"] == "dry-run" else "is"
    return f"{verb} fed for {_seconds(report['feed_until_seconds'])} more"


def _deadline(report: Report) -> list[str]:
    due = report["next"]
    return [] if due is None else [_sentence(f"{due['what']}, in {_seconds(due['seconds'])}")]


def _seconds(seconds: float | None) -> str:
    return "an unknown time" if seconds is None else f"{max(0.0, seconds):.1f} s"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
