"""Three exchanges as sequences: a cable is pulled, the control plane fails, a host is power-cycled."""

from __future__ import annotations

import re

from tests.pages import DOCS
from tests.pictures.figures import SETTINGS, outage, pulled_cable
from tests.pictures.sequence import Exchange, Step
from tests.pictures.svg import Tone

WORKER, OTHERS, API, LEADER = "the worker", "the other hosts", "Kubernetes API", "pp-leader"
HOST, PEERS = "one host", "its peers"
OPERATOR, BMC = "BareMetalHost", "the host's BMC"


def cable() -> Exchange:
    failed, silent, condemned, known, reset, over, given_back, runs = (each.after for each in pulled_cable())
    return Exchange(
        f"A worker's cable is pulled: its pod runs elsewhere after {runs}",
        (WORKER, OTHERS, API, LEADER),
        (
            Step("0 s", WORKER, "its cable is pulled", tone=Tone.BAD),
            Step(failed, WORKER, "am I condemned?", API, Tone.BAD, lost=True),
            Step(silent, OTHERS, "the worker is silent", LEADER, Tone.ACT),
            Step("", LEADER, "can't reach it either: the health check requests its remediation", tone=Tone.ACT),
            Step(condemned, LEADER, "cordon its Node, condemn it", API, Tone.ACT),
            Step(known, LEADER, "the worker is condemned: remember that", OTHERS, Tone.ACT),
            Step("", OTHERS, "half of the nodes know: nobody can keep the worker up", LEADER, Tone.WAIT),
            Step("", WORKER, "does the API say that I am condemned?", OTHERS, Tone.BAD, lost=True),
            Step(reset, WORKER, "nobody confirms that it is healthy: it resets itself", tone=Tone.BAD),
            Step(over, LEADER, "the wait is over: it asks and looks once more", tone=Tone.WAIT),
            Step("", LEADER, "delete the Node, its pods, its attachments", API, Tone.ACT),
            Step(given_back, LEADER, "recreate the Node", API, Tone.ACT),
            Step(runs, API, "start the pod, attach its volume", OTHERS, Tone.GOOD),
        ),
    )


def api_outage() -> Exchange:
    stops, failed, asks, verdict, back, well = (each.after for each in outage())
    return Exchange(
        "The control plane fails for an hour: nobody is reset",
        (HOST, PEERS, API),
        (
            Step(stops, API, "stops: it refuses every connection", tone=Tone.BAD),
            Step(failed, HOST, "am I condemned?", API, Tone.BAD, lost=True),
            Step("", HOST, "two more reads fail", tone=Tone.BAD),
            Step(asks, HOST, "does the API say that I am condemned?", PEERS, Tone.ACT),
            Step("", PEERS, "reads it for the host", API, Tone.BAD, lost=True),
            Step("", PEERS, "I can't read the API either", HOST, Tone.ACT),
            Step(
                verdict,
                HOST,
                "more than half of all nodes say so: the control plane is out, and I stay up",
                tone=Tone.GOOD,
            ),
            Step("", HOST, "feeds its watchdog, reads on, and asks again", tone=Tone.GOOD),
            Step(back, API, "is back", tone=Tone.GOOD),
            Step(well, HOST, "am I condemned? No.", API, Tone.GOOD),
        ),
    )


def power_cycle() -> Exchange:
    taken = re.search(r"to the deletion of the Node it takes ([\d.]+ s) \(median", (DOCS / "power.md").read_text())
    assert taken is not None, "docs/power.md no longer says how soon the Node is deleted"
    power = SETTINGS.power
    return Exchange(
        "A host is power-cycled through its BareMetalHost",
        (LEADER, API, OPERATOR, BMC),
        (
            Step("0 s", API, "a health check requests its remediation", tone=Tone.ACT),
            Step("", LEADER, "reboot annotation: keep it off", OPERATOR, Tone.ACT),
            Step("", OPERATOR, "off", BMC, Tone.ACT),
            Step("", BMC, "it is off", OPERATOR, Tone.WAIT),
            Step("off", OPERATOR, "read after our request: it is off", LEADER, Tone.WAIT),
            Step(f"+ {taken[1]}", LEADER, "back the Node up, delete it and its pods", API, Tone.ACT),
            Step("", LEADER, "take the annotation back", OPERATOR, Tone.ACT),
            Step("", OPERATOR, "on", BMC, Tone.GOOD),
            Step("", API, "the host boots, and its Node is Ready", tone=Tone.GOOD),
            Step("", LEADER, "labels, annotations and taints back", API, Tone.GOOD),
            Step(
                "else",
                LEADER,
                f"still on after {power.off_timeout_seconds:g} s: it reports that. Not back after "
                f"{power.on_timeout_seconds:,g} s: it deletes the Machine, if its owner makes a new one",
                tone=Tone.WAIT,
            ),
        ),
    )
