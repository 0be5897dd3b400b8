"""The commands that people run beside the leader, each in its own process. Here: their names, arguments and help."""

from __future__ import annotations

import argparse
from functools import partial
from importlib import import_module
from typing import Any

from pp_hostd.leader.commands.arguments import (
    new_parser,
    runs,
    take_config,
    take_json,
    take_kubeconfig,
    take_no_color,
    take_node,
    take_output,
    take_timeout,
    take_wait,
    take_who,
    take_yes,
)
from pp_hostd.leader.commands.fence_arguments import add_fence
from pp_hostd.service.commands import add_metrics


def add(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    """Add every command of the leader; modules are imported when a command runs."""
    _add_run(commands, config_path)
    _add_fence_helper(commands)
    add_for_administrators(commands, config_path)


def add_for_administrators(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    """Add those that a person runs with a kubeconfig."""
    _add_install(commands)
    _add_uninstall(commands)
    _add_enroll(commands)
    _add_unenroll(commands, config_path)
    _add_rotate_key(commands, config_path)
    _add_status(commands)
    _add_timeline(commands)
    _add_explain(commands, config_path)
    _add_health(commands)
    _add_condemn(commands, config_path)
    _add_confirm_dead(commands, config_path)
    _add_restore(commands, config_path)
    _add_pause(commands)
    _add_maintenance(commands)
    add_fence(commands)
    add_metrics(partial(new_parser, commands), "pp-leader", config_path)


def _add_run(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    run = new_parser(commands, "run", "run the leader itself; systemd does that (pp-leader.service)", "")
    run.add_argument("--config", metavar="FILE", default=config_path, help="default: %(default)s")
    run.set_defaults(command=_run)


def _run(arguments: argparse.Namespace) -> int:
    code: int = import_module("pp_hostd.leader.daemon").run(arguments.config)
    return code


def _add_fence_helper(commands: argparse._SubParsersAction[Any]) -> None:
    text = "run one fence agent for the leader; systemd does that (pp-leader-fence.socket)"
    helper = new_parser(commands, "fence-helper", text, "The standard input is the socket.")
    where = "look for agents here and nowhere else; may be given again (default: /usr/sbin, /usr/bin, /sbin, /bin)"
    helper.add_argument("--agents-in", metavar="DIRECTORY", action="append", help=where)
    helper.set_defaults(command=_fence_helper)


def _fence_helper(arguments: argparse.Namespace) -> int:
    helper = import_module("pp_hostd.fencing.helper")
    code: int = helper.answer(arguments.agents_in or helper.DIRECTORIES)
    return code


def _add_install(commands: argparse._SubParsersAction[Any]) -> None:
    install = new_parser(
        commands,
        "install",
        "set up the cluster: namespace, rights of leader and agents, admission policies",
        "You may run it again at any time: it changes only what differs.",
    )
    take_kubeconfig(install)
    install.add_argument("--dry-run", action="store_true", help="print the manifests, for kubectl apply; touch nothing")
    install.add_argument(
        "--agents-use",
        choices=("certificate", "kubelet"),
        help="the agents' credential: a certificate that pp-leader enroll makes, or the kubelet's "
        "(default: as installed, else certificate)",
    )
    install.add_argument(
        "--machines",
        choices=("openshift", "cluster-api", "node"),
        help="the kind of object that stands for a host, as in the setting api.machines of leader and agents "
        "(default: as installed, else node)",
    )
    install.add_argument(
        "--flows",
        type=_flows,
        metavar="FLOW,...",
        help="what the leader gets rights for: poison-pill (always), power-cycle (BareMetalHosts), "
        "external-remediation (remediation objects; defines their kinds), health-check (NodeHealthChecks; defines "
        "their kind), machine-health-check (the health checks of the Machines' own API), node-fence "
        "(NodeRemedyConfigurations and NodeFences; defines their kinds). Rights of flows that are not named "
        "are taken away (default: as installed, else poison-pill)",
    )
    install.add_argument(
        "--health-check",
        action="store_true",
        help="add the flow health-check, and make the NodeHealthCheck `workers` if there is no such check yet: "
        "sick workers are then remediated without a person's request",
    )
    install.add_argument(
        "--max-unhealthy",
        type=_most_unhealthy,
        metavar="NUMBER|PERCENT",
        help="with --health-check: nobody is remediated while more Nodes than these are not healthy (default: 40%%, "
        "rounded down)",
    )
    install.add_argument(
        "--control-plane", action="store_true", help="with --health-check: select control-plane Nodes, too"
    )
    take_wait(install, 60, "for the API to serve NodeHealthChecks")
    install.set_defaults(command=runs("install", "install"))


def _most_unhealthy(text: str) -> str:
    from pp_hostd.leader.facts.limits import parse_limit
    from pp_hostd.model.record import Refused

    try:
        parse_limit(text, None)
    except Refused:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a whole number nor a part from 0% to 100%") from None
    return text


def _flows(text: str) -> tuple[str, ...]:
    from pp_hostd.leader.registry import REGISTRY

    names = text.split(",")
    if not set(REGISTRY.flows) >= set(names):
        raise argparse.ArgumentTypeError(f"{text!r} names something else than {', '.join(REGISTRY.flows)}")
    return tuple(names)


def _add_uninstall(commands: argparse._SubParsersAction[Any]) -> None:
    uninstall = new_parser(
        commands,
        "uninstall",
        "remove everything that belongs to pp-hostd from the cluster",
        "Refused while a leader leads, a Node is missing or condemned, or a host is armed. You may run it again.",
    )
    take_kubeconfig(uninstall)
    uninstall.set_defaults(command=runs("install", "uninstall"))


def _add_enroll(commands: argparse._SubParsersAction[Any]) -> None:
    enroll = new_parser(
        commands,
        "enroll",
        "put a node under pp-hostd's care, and make the files that its host needs: kubeconfig and peer key",
        "You may run it again, for a new certificate; the peer key stays the same.",
    )
    enroll.add_argument("node", metavar="NODE", nargs="?", help="the name of a Node")
    take_kubeconfig(enroll)
    enroll.add_argument("--leader", action="store_true", help="in place of a node: the files that a leader needs")
    enroll.add_argument("--out", metavar="DIR", help="where the files go (default: a directory of the node's name)")
    text = "make no certificate: the agent shows the kubelet's (install --agents-use kubelet)"
    enroll.add_argument("--kubelet", action="store_true", help=text)
    take_wait(enroll, 30, "for the certificate")
    take_who(enroll)
    enroll.set_defaults(command=runs("enroll", "enroll"))


def _add_unenroll(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    unenroll = new_parser(
        commands,
        "unenroll",
        "take a node out of pp-hostd's care, once its host has withdrawn its promise",
        "Refused while its remediation is requested. If it was interrupted, run it again.",
    )
    take_node(unenroll, config_path)
    take_wait(unenroll, 120, "for the host, and then for the leader")
    unenroll.add_argument("--force", action="store_true", help="the host is gone for good, and can withdraw nothing")
    take_yes(unenroll)
    unenroll.set_defaults(command=runs("enroll", "unenroll"))


def _add_rotate_key(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    rotate = new_parser(
        commands,
        "rotate-key",
        "show how far a change of the cluster's peer key is, or go to its next step",
        "Steps: add the new key on all hosts, make it the first one, drop the old one.",
    )
    rotate.add_argument("move", metavar="next", nargs="?", choices=("next",), help="go on (default: change nothing)")
    take_kubeconfig(rotate)
    take_config(rotate, config_path)
    rotate.add_argument("--out", metavar="FILE", help="write the key file that every host should have now")
    text = "ask every host of the roster, over the peer port, which keys it uses"
    rotate.add_argument("--ask", action="store_true", help=text)
    text = "do not ask before `next`, which otherwise refuses if a host is behind or away"
    rotate.add_argument("--unasked", action="store_true", help=text)
    take_json(rotate)
    rotate.set_defaults(command=runs("rotate_key", "rotate_key"), machines="node")  # which does not matter here


def _add_status(commands: argparse._SubParsersAction[Any]) -> None:
    status = new_parser(
        commands,
        "status",
        "show who leads, what happens now, and whether each enrolled host is protected",
        "Exit code 3: nobody leads; the command then shows the report of the last leader.",
    )
    take_output(status)
    text = "follow it until Ctrl-C: drawn again in place on a terminal, else a line for each change"
    status.add_argument("-w", "--watch", action="store_true", help=text)
    history = new_parser(commands, "history", "list what the leaders did about nodes, oldest first", "")
    take_json(history)
    for parser, name in ((status, "status"), (history, "history")):
        take_kubeconfig(parser)
        parser.set_defaults(command=runs("status", name))


def _add_timeline(commands: argparse._SubParsersAction[Any]) -> None:
    text = "draw the last remediation of a node: its stages, the promised end and the measured one"
    timeline = new_parser(commands, "timeline", text, "It is drawn from the leaders' history, which has whole seconds.")
    timeline.add_argument("node", metavar="NODE", help="the name of a Node")
    take_kubeconfig(timeline)
    take_json(timeline)
    timeline.add_argument("--svg", metavar="FILE", help="write it as a picture, too")
    take_no_color(timeline)
    timeline.set_defaults(command=runs("timeline", "timeline"))


def _add_explain(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    explain = new_parser(
        commands,
        "explain",
        "show the state of a node, what the leader does about it and why, and what would change that",
        "For a healthy node, the command says what a condemnation would lead to.",
    )
    take_node(explain, config_path)
    take_json(explain)
    explain.set_defaults(command=runs("explain", "explain"))


def _add_health(commands: argparse._SubParsersAction[Any]) -> None:
    health = new_parser(
        commands,
        "health",
        "show what each health check thinks of the Nodes or Machines now, and whether it may have them remediated",
        "These are NodeHealthChecks, and MachineHealthChecks of OpenShift and Cluster API with who carries them out. "
        "The command judges as the leader does, by the clock of this host.",
    )
    health.add_argument("--check", metavar="NAME", help="this one only, with or without its namespace (default: all)")
    take_kubeconfig(health)
    take_json(health)
    health.set_defaults(command=runs("health", "health"))


def _add_condemn(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    condemn = new_parser(
        commands,
        "condemn",
        "request the remediation of a node: its host is reset, its workloads start elsewhere",
        "The leader frees the workloads only once the host is certainly dead, and says what keeps it from that.",
    )
    take_node(condemn, config_path)
    take_yes(condemn)
    condemn.add_argument("--why", metavar="TEXT", default="", help="shown in an Event on the machine")
    text = "follow it to its end; Ctrl-C ends the following and not the request"
    condemn.add_argument("--wait", action="store_true", help=text)
    take_timeout(condemn, 900, "with --wait: how long to follow it")
    take_no_color(condemn)
    condemn.set_defaults(command=runs("condemn", "condemn"))
    absolve = new_parser(
        commands,
        "absolve",
        "withdraw the request for a node's remediation, or lift its condemnation",
        "This stops neither a reset that the host has decided nor workloads that the leader has begun to free.",
    )
    take_node(absolve, config_path)
    absolve.set_defaults(command=runs("condemn", "absolve"))


def _add_confirm_dead(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    confirm = new_parser(
        commands,
        "confirm-dead",
        "confirm that a host is off, so that its workloads are freed without waiting",
        "If the host still runs, there will be two copies of its workloads.",
    )
    take_node(confirm, config_path)
    take_yes(confirm)
    take_who(confirm)
    confirm.set_defaults(command=runs("condemn", "confirm_dead"))


def _add_restore(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    restore = new_parser(
        commands,
        "restore",
        "recreate a missing Node from its backup, where no leader is left to do so",
        "Refused while the Node is there, or a leader leads.",
    )
    take_node(restore, config_path)
    restore.add_argument("--drop-backup", action="store_true", help="delete the backup afterwards")
    restore.set_defaults(command=runs("restore", "restore"))


def _add_pause(commands: argparse._SubParsersAction[Any]) -> None:
    pause = new_parser(
        commands,
        "pause",
        "make the leader stand still: it begins no remediation, and frees no workloads",
        "It counts at once, and until pp-leader resume.",
    )
    pause.add_argument("--why", metavar="TEXT", required=True, help="shown wherever the pause is shown")
    take_who(pause)
    resume = new_parser(
        commands,
        "resume",
        "end a pause, of the whole leader or of one node; or grant more remediations",
        "Prints whose pause it was, and why.",
    )
    whose = resume.add_mutually_exclusive_group()
    whose.add_argument(
        "--more",
        metavar="NUMBER",
        type=int,
        help="allow that many more remediations in the next hour than leader.resets_per_hour",
    )
    take_who(resume)
    for parser, choices, name in ((pause, pause, "pause"), (resume, whose, "resume")):
        take_kubeconfig(parser)
        choices.add_argument("--node", metavar="NODE", help="this one only (default: all)")
        parser.set_defaults(command=runs("pause", name))


def _add_maintenance(commands: argparse._SubParsersAction[Any]) -> None:
    maintenance = new_parser(
        commands,
        "maintenance",
        "disarm all hosts for planned work on the network, or show whether they are",
        "Every host withdraws its promise, then disarms; a condemned host does not. The order ends by itself. "
        "Exit code 1: hosts are still armed.",
    )
    what = maintenance.add_mutually_exclusive_group()
    what.add_argument("--for", dest="duration", metavar="TIME", help="a duration from 1m to 24h: 90s, 30m, 4h")
    what.add_argument("--off", action="store_true", help="end it now")
    maintenance.add_argument("--why", metavar="TEXT", default="planned work", help="shown wherever it is shown")
    take_kubeconfig(maintenance)
    take_who(maintenance)
    take_wait(maintenance, 60, "for all hosts to withdraw")
    maintenance.set_defaults(command=runs("pause", "maintenance"))
