"""The commands that people run beside the leader, each in its own process. Here: their names, arguments and help."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any, Callable

LONGEST_SECONDS = 86400


def add(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    """Add every command of the leader; modules are imported when a command runs."""
    _add_run(commands, config_path)
    _add_fence_helper(commands)
    _add_install(commands)
    _add_uninstall(commands)
    _add_enroll(commands)
    _add_unenroll(commands, config_path)
    _add_rotate_key(commands, config_path)
    _add_status(commands)
    _add_explain(commands, config_path)
    _add_health(commands)
    _add_condemn(commands, config_path)
    _add_confirm_dead(commands, config_path)
    _add_restore(commands, config_path)
    _add_pause(commands)
    _add_maintenance(commands)


def _add_run(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    run = _parser(commands, "run", "run the leader itself; systemd does that (pp-leader.service)", "")
    run.add_argument("--config", metavar="FILE", default=config_path, help="default: %(default)s")
    run.set_defaults(command=_run)


def _run(arguments: argparse.Namespace) -> int:
    code: int = import_module("pp_hostd.leader.daemon").run(arguments.config)
    return code


def _add_fence_helper(commands: argparse._SubParsersAction[Any]) -> None:
    text = "run one fence agent for the leader; systemd does that (pp-leader-fence.socket)"
    helper = _parser(commands, "fence-helper", text, "The standard input is the socket.")
    where = "look for agents here and nowhere else; may be given again (default: /usr/sbin, /usr/bin, /sbin, /bin)"
    helper.add_argument("--agents-in", metavar="DIRECTORY", action="append", help=where)
    helper.set_defaults(command=_fence_helper)


def _fence_helper(arguments: argparse.Namespace) -> int:
    helper = import_module("pp_hostd.fencing.helper")
    code: int = helper.answer(arguments.agents_in or helper.DIRECTORIES)
    return code


def _add_install(commands: argparse._SubParsersAction[Any]) -> None:
    install = _parser(
        commands,
        "install",
        "set up the cluster: namespace, rights of leader and agents, admission policies",
        "You may run it again at any time: it changes only what differs.",
    )
    _kubeconfig(install)
    install.add_argument("--dry-run", action="store_true", help="print the manifests, for kubectl apply; touch nothing")
    install.add_argument(
        "--agents-use",
        choices=("certificate", "kubelet"),
        help="what agents show: a certificate that pp-leader enroll makes, or the kubelet's "
        "(default: as installed, else certificate)",
    )
    install.add_argument(
        "--machines",
        choices=("openshift", "cluster-api", "node"),
        help="as the setting api.machines of leader and agents, who may use no other kind "
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
        help="add the flow health-check, and make the NodeHealthCheck `workers` if there is none yet: it has nodes "
        "remediated by itself",
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
    _wait(install, 60, "for the API to serve NodeHealthChecks")
    install.set_defaults(command=_command("install", "install"))


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
    uninstall = _parser(
        commands,
        "uninstall",
        "take everything of pp-hostd's out of the cluster",
        "Refused while a leader leads, a Node is missing or condemned, or a host is armed. You may run it again.",
    )
    _kubeconfig(uninstall)
    uninstall.set_defaults(command=_command("install", "uninstall"))


def _add_enroll(commands: argparse._SubParsersAction[Any]) -> None:
    enroll = _parser(
        commands,
        "enroll",
        "put a node under pp-hostd's care, and make the files that its host needs: kubeconfig and peer key",
        "You may run it again, for a new certificate; the peer key stays the same.",
    )
    enroll.add_argument("node", metavar="NODE", nargs="?", help="the name of a Node")
    _kubeconfig(enroll)
    enroll.add_argument("--leader", action="store_true", help="in place of a node: the files that a leader needs")
    enroll.add_argument("--out", metavar="DIR", help="where the files go (default: a directory of the node's name)")
    text = "make no certificate: the agent shows the kubelet's (install --agents-use kubelet)"
    enroll.add_argument("--kubelet", action="store_true", help=text)
    _wait(enroll, 30, "for the certificate")
    _who(enroll)
    enroll.set_defaults(command=_command("enroll", "enroll"))


def _add_unenroll(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    unenroll = _parser(
        commands,
        "unenroll",
        "take a node out of pp-hostd's care, once its host has withdrawn its promise",
        "Refused while its remediation is requested. If it was interrupted, run it again.",
    )
    _about_node(unenroll, config_path)
    _wait(unenroll, 120, "for the host, and then for the leader")
    unenroll.add_argument("--force", action="store_true", help="the host is gone for good, and can withdraw nothing")
    _yes(unenroll)
    unenroll.set_defaults(command=_command("enroll", "unenroll"))


def _add_rotate_key(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    rotate = _parser(
        commands,
        "rotate-key",
        "show how far a change of the cluster's peer key is, or go to its next step",
        "Steps: add the new key on all hosts, make it the first one, drop the old one.",
    )
    rotate.add_argument("move", metavar="next", nargs="?", choices=("next",), help="go on (default: change nothing)")
    _kubeconfig(rotate)
    _config(rotate, config_path)
    rotate.add_argument("--out", metavar="FILE", help="write the key file that every host should have now")
    text = "ask every host of the roster, over the peer port, which keys it uses"
    rotate.add_argument("--ask", action="store_true", help=text)
    text = "do not ask before `next`, which otherwise refuses if a host is behind or away"
    rotate.add_argument("--unasked", action="store_true", help=text)
    _json(rotate)
    rotate.set_defaults(command=_command("rotate_key", "rotate_key"), machines="node")  # which does not matter here


def _add_status(commands: argparse._SubParsersAction[Any]) -> None:
    status = _parser(
        commands,
        "status",
        "show who leads, and the state of each remediation that is requested or running",
        "Exit code 3: nobody leads; the command then shows the report of the last leader.",
    )
    history = _parser(commands, "history", "list what the leaders did about nodes, oldest first", "")
    for parser, name in ((status, "status"), (history, "history")):
        _kubeconfig(parser)
        _json(parser)
        parser.set_defaults(command=_command("status", name))


def _add_explain(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    explain = _parser(
        commands,
        "explain",
        "show the state of a node, what the leader does about it and why, and what would change that",
        "For a healthy node, the command says what a condemnation would lead to.",
    )
    _about_node(explain, config_path)
    _json(explain)
    explain.set_defaults(command=_command("explain", "explain"))


def _add_health(commands: argparse._SubParsersAction[Any]) -> None:
    health = _parser(
        commands,
        "health",
        "show what each health check thinks of the Nodes or Machines now, and whether it may have them remediated",
        "These are NodeHealthChecks, and MachineHealthChecks of OpenShift and Cluster API with who carries them out. "
        "The command judges as the leader does, by the clock of this host.",
    )
    health.add_argument("--check", metavar="NAME", help="this one only, with or without its namespace (default: all)")
    _kubeconfig(health)
    _json(health)
    health.set_defaults(command=_command("health", "health"))


def _add_condemn(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    condemn = _parser(
        commands,
        "condemn",
        "request the remediation of a node: its host is reset, its workloads start elsewhere",
        "The leader frees the workloads only once the host is certainly dead, and says what keeps it from that.",
    )
    _about_node(condemn, config_path)
    _yes(condemn)
    condemn.add_argument("--why", metavar="TEXT", default="", help="shown in an Event on the machine")
    condemn.set_defaults(command=_command("condemn", "condemn"))
    absolve = _parser(
        commands,
        "absolve",
        "withdraw the request for a node's remediation, or lift its condemnation",
        "This stops neither a reset that the host has decided nor workloads that the leader has begun to free.",
    )
    _about_node(absolve, config_path)
    absolve.set_defaults(command=_command("condemn", "absolve"))


def _add_confirm_dead(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    confirm = _parser(
        commands,
        "confirm-dead",
        "confirm that a host is off, so that its workloads are freed without waiting",
        "If the host still runs, there will be two copies of its workloads.",
    )
    _about_node(confirm, config_path)
    _yes(confirm)
    _who(confirm)
    confirm.set_defaults(command=_command("condemn", "confirm_dead"))


def _add_restore(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    restore = _parser(
        commands,
        "restore",
        "recreate a missing Node from its backup, where no leader is left to do so",
        "Refused while the Node is there, or a leader leads.",
    )
    _about_node(restore, config_path)
    restore.add_argument("--drop-backup", action="store_true", help="delete the backup afterwards")
    restore.set_defaults(command=_command("restore", "restore"))


def _add_pause(commands: argparse._SubParsersAction[Any]) -> None:
    pause = _parser(
        commands, "pause", "keep the leader from condemning and freeing", "Effective at once, until resume."
    )
    pause.add_argument("--why", metavar="TEXT", required=True, help="shown wherever the pause is shown")
    _who(pause)
    resume = _parser(
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
    _who(resume)
    for parser, choices, name in ((pause, pause, "pause"), (resume, whose, "resume")):
        _kubeconfig(parser)
        choices.add_argument("--node", metavar="NODE", help="this one only (default: all)")
        parser.set_defaults(command=_command("pause", name))


def _add_maintenance(commands: argparse._SubParsersAction[Any]) -> None:
    maintenance = _parser(
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
    _kubeconfig(maintenance)
    _who(maintenance)
    _wait(maintenance, 60, "for all hosts to withdraw")
    maintenance.set_defaults(command=_command("pause", "maintenance"))


def _parser(commands: argparse._SubParsersAction[Any], name: str, text: str, epilog: str) -> Any:
    about = f"{text[0].upper()}{text[1:]}."
    return commands.add_parser(name, help=text, description=about, epilog=epilog, allow_abbrev=False)


def _kubeconfig(parser: argparse.ArgumentParser) -> None:
    text = "an administrator's; default: $KUBECONFIG, else ~/.kube/config"
    parser.add_argument("--kubeconfig", metavar="FILE", help=text)


def _about_node(parser: argparse.ArgumentParser, config_path: str) -> None:
    parser.add_argument("node", metavar="NODE", help="the name of a Node")
    _kubeconfig(parser)
    _config(parser, config_path)
    text = "the kind of machines of this cluster, in place of the setting api.machines"
    parser.add_argument("--machines", choices=("openshift", "cluster-api", "node"), help=text)


def _config(parser: argparse.ArgumentParser, config_path: str) -> None:
    text = f"a leader's configuration (default: {config_path}, if there is one)"
    parser.add_argument("--config", metavar="FILE", help=text)
    parser.set_defaults(config_path=config_path)


def _wait(parser: argparse.ArgumentParser, default: float, whom: str) -> None:
    text = f"how long to wait {whom} (default: %(default)s)"
    parser.add_argument("--wait", metavar="SECONDS", type=_seconds, default=default, help=text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= LONGEST_SECONDS:  # nor is NaN
        raise argparse.ArgumentTypeError(f"{text!a} is no number of seconds from 0 to {LONGEST_SECONDS}")
    return seconds


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _yes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask for the node's name to be typed back")


def _who(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--who", metavar="NAME", default="", help="default: the user who runs this, before any sudo")


def _command(module: str, function: str) -> Callable[[argparse.Namespace], int]:
    def run(arguments: argparse.Namespace) -> int:
        code: int = getattr(import_module(f"pp_hostd.leader.commands.{module}"), function)(arguments)
        return code

    return run
