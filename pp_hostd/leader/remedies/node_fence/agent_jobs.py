"""Fence agents in Jobs, where fence-cluster-config says executor=job: the pod that carries out one action of an agent.

The Job is complete only if the device's own status agrees at the end. The agent reads its parameters from its standard
input, as it does on a host; values of Secrets come to the pod as variables that refer to them.
"""

from __future__ import annotations

import json

from pp_hostd.fencing.call import is_secret
from pp_hostd.leader.remedies.node_fence.config_maps import JOB, ClusterConfig
from pp_hostd.leader.remedies.node_fence.configuration import Fences, RemedyConfig
from pp_hostd.leader.remedies.node_fence.methods import OFF, ON, STATUS, AgentMethod, JobMethod, Method
from pp_hostd.leader.steps.api import Json
from pp_hostd.model.record import Unreadable

START_SECONDS = 120
"""For the pod to be scheduled, and its image to be pulled."""
_ENDS = {
    OFF: "call off && { call status; test $? -eq 2; }",
    ON: "call on && call status",
    STATUS: "call status; code=$?; test $code -eq 0 || test $code -eq 2",
}


def by_executor(methods: tuple[Method, ...], config: ClusterConfig) -> tuple[Method, ...] | Unreadable:
    """The methods, with Jobs in place of agents' calls if agents run in Jobs. An agent that fences storage runs beside
    the leader all the same: a pod that a partition holds up might give storage back when that is fenced again."""
    if config.executor != JOB:
        return methods
    found: list[Method] = []
    for each in methods:
        if not isinstance(each, AgentMethod) or each.fences is Fences.STORAGE:
            found.append(each)
            continue
        plain = next((key for key, value in each.parameters if value and is_secret(key)), None)
        if plain is not None:
            told = f"{plain} is in a ConfigMap, and with executor=job everybody could read it in the Job"
            return Unreadable(f"method {each.name}", f"{told}. Put it into a Secret ({plain}_secret=NAME/KEY)")
        found.append(_job(each, config.agent_image))
    return tuple(found)


def _job(method: AgentMethod, image: str) -> JobMethod:
    seconds = START_SECONDS + 2 * int(method.seconds)
    pod = json.dumps(_pod(method, image), sort_keys=True)
    config = RemedyConfig(method.name, pod, seconds, method.fences, method.storage)
    return JobMethod(method.name, config, method.action)


def _pod(method: AgentMethod, image: str) -> Json:
    given = "\n".join(f"{key}={value}" for key, value in method.parameters)
    env: list[Json] = [{"name": "PARAMETERS", "value": given.replace("$", "$$")}]  # a pod's own $(NAME) is no parameter
    lines = ["""printf '%s\\n' "$PARAMETERS" """]
    for number, each in enumerate(method.secrets):
        source = {"secretKeyRef": {"name": each.name, "key": each.key}}
        env.append({"name": f"SECRET_{number}", "valueFrom": source})
        lines.append(f"""printf '{each.parameter}=%s\\n' "$SECRET_{number}" """)
    lines.append("""printf 'action=%s\\n' "$1" """)
    given_to = "; ".join(line.strip() for line in lines)
    script = f"call() {{ {{ {given_to}; }} | {method.agent}; }}\n{_ENDS[method.action]}"
    container = {"name": "agent", "image": image, "command": ["/bin/sh", "-c", script], "env": env}
    return {"spec": {"containers": [container], "automountServiceAccountToken": False}}
