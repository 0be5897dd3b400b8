"""The helper runs agents for a caller of the right user and control group alone."""

from __future__ import annotations

import pytest

from pp_hostd.fencing.peer import is_welcome

USERS = (0, 61234)
LEADER = "0::/system.slice/pp-leader.service\n"


@pytest.mark.parametrize("user", USERS)
def test_root_and_the_helper_s_own_user_are_heard(user: int) -> None:
    assert is_welcome(user, "0::/user.slice/user-0.slice/session-1.scope\n", USERS)


@pytest.mark.parametrize(
    "groups",
    [
        LEADER,
        "0::/pp-leader.service\n",
        "0::/system.slice/system-leaders.slice/pp-leader.service\n",
        "4:memory:/elsewhere\n1:name=systemd:/system.slice/pp-leader.service\n0::/\n",
    ],
)
def test_the_leader_is_heard_whoever_its_user_is(groups: str) -> None:
    assert is_welcome(1000, groups, USERS)


@pytest.mark.parametrize(
    "groups",
    [
        "",
        "0::/\n",
        "nonsense",
        "0::/system.slice/pp-hostd.service\n",
        "0::/system.slice/pp-leader.service/child\n",
        "0::/system.slice/not-pp-leader.service\n",
        "0::/user.slice/user-1000.slice/user@1000.service/app.slice/pp-leader.service\n",
        "0::/user.slice/user-1000.slice/user@1000.service/system.slice/pp-leader.service\n",
        "0::/kubepods.slice/cri-containerd-0123.scope/system.slice/pp-leader.service\n",
        "0::/kubepods/besteffort/0123/pp-leader.service\n",
        "4:memory:/system.slice/pp-leader.service\n0::/\n",
    ],
)
def test_nobody_else_is_heard_though_they_give_their_control_group_the_name(groups: str) -> None:
    assert not is_welcome(1000, groups, USERS)
