"""The names, arguments and help of `pp-leader fence`."""

from __future__ import annotations

import argparse
from typing import Any

from pp_hostd.leader.commands.arguments import new_parser, runs, take_json, take_kubeconfig, take_who, take_yes


def add_fence(commands: argparse._SubParsersAction[Any]) -> None:
    fence = new_parser(commands, "fence", "show NodeFences, and let them begin again or end; ask fence agents", "")
    actions = fence.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_list(actions)
    _add_show(actions)
    _add_retry(actions)
    _add_abort(actions)
    _add_test(actions)


def _add_list(actions: argparse._SubParsersAction[Any]) -> None:
    listing = new_parser(actions, "list", "show the NodeFence of each node that is being fenced", "")
    take_kubeconfig(listing)
    take_json(listing)
    listing.set_defaults(command=runs("fence", "list_fences"))


def _add_show(actions: argparse._SubParsersAction[Any]) -> None:
    show = _about(
        actions,
        "show",
        "show how far the fencing of a node has come, and which methods each step would run now",
        "Works for a healthy node, too: nothing is run, and every error in its configuration is shown.",
    )
    take_json(show)
    show.set_defaults(command=runs("fence", "show"))


def _add_retry(actions: argparse._SubParsersAction[Any]) -> None:
    retry = _about(
        actions,
        "retry",
        "have the fencing of a node begin again that gave up, or has failed",
        "Refused for any other one.",
    )
    take_who(retry)
    retry.set_defaults(command=runs("fence", "retry"))


def _add_abort(actions: argparse._SubParsersAction[Any]) -> None:
    abort = _about(
        actions,
        "abort",
        "end the fencing of a node: delete its NodeFence",
        "The leader takes its marks off the Node, and frees nothing more. A host that is off stays off.",
    )
    take_yes(abort)
    abort.set_defaults(command=runs("fence", "abort"))


def _add_test(actions: argparse._SubParsersAction[Any]) -> None:
    test = _about(
        actions,
        "test",
        "ask every fence agent of a node's methods for the status of its device, and for nothing else",
        "Run it as root on a control-plane host, where the leader's agents are. Exit code 1: not all of them answer.",
    )
    text = "the helper that runs agents (default: %(default)s)"
    test.add_argument("--socket", metavar="PATH", default="/run/pp-leader-fence.sock", help=text)
    test.set_defaults(command=runs("fence_agents", "test"))


def _about(actions: argparse._SubParsersAction[Any], name: str, text: str, epilog: str) -> Any:
    parser = new_parser(actions, name, text, epilog)
    parser.add_argument("node", metavar="NODE", help="the name of a Node")
    take_kubeconfig(parser)
    return parser
