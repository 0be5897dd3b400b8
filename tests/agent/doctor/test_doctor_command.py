"""`pp-hostd doctor` as a person runs it on a host where next to nothing is there: it ends, and says so."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

from tests.agent.command_line import ENVIRONMENT, PP_HOSTD, make_host, run
from tests.harness.isolated import isolated


def write(directory: Path, text: str) -> str:
    path = directory / "pp-hostd.toml"
    path.write_text(text)
    return str(path)


@isolated
async def test_a_host_with_nothing_on_it_gets_a_whole_diagnosis(tmp_path: Path) -> None:
    make_host()
    config = write(tmp_path, f'[api]\nkubeconfig = "{tmp_path}/none"\n[peers]\nkey_file = "{tmp_path}/none"\n')
    result = await run("doctor", "--config", config, "--json")
    assert (result.code, result.complaint) == (1, "")
    lines = json.loads(result.output)
    assert all(set(line) == {"check", "outcome", "found", "advice"} for line in lines)
    assert {line["check"] for line in lines if line["outcome"] == "failure"} >= {"kubeconfig", "peer-key"}
    assert not any("unforeseen" in line["found"] for line in lines)
    table = (await run("doctor", "--config", config)).output
    assert "-> Have a credential made: pp-leader enroll NODE" in table
    assert table.splitlines()[-1].endswith("failures")


@isolated
async def test_every_error_of_a_broken_configuration_is_told_and_the_host_is_looked_at(tmp_path: Path) -> None:
    make_host()
    result = await run("doctor", "--config", write(tmp_path, "[api]\nretry = 1\n[peers]\nrounds = 0\n"), "--json")
    lines = json.loads(result.output)
    assert (result.code, [line["check"] for line in lines].count("configuration")) == (1, 2)
    assert {"kernel-panic", "other-agents", "links", "daemon"} <= {line["check"] for line in lines}


@isolated
async def test_misuse_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    result = await run("doctor", "--config", write(tmp_path, ""), "--peers", "0")
    assert (result.code, result.output) == (2, "")
    assert result.complaint.startswith("pp-hostd: --peers 0: is no number of peers")
    assert (await run("doctor", "--peers", "many")).code == 2


def test_what_takes_long_is_told_on_a_terminal_and_goes_away_again(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "systemctl").write_text("#!/bin/sh\nexec sleep 60\n")
    (tools / "systemctl").chmod(0o755)
    environment = {**ENVIRONMENT, "PATH": f"{tools}:{ENVIRONMENT['PATH']}"}
    ours, theirs = pty.openpty()
    command = [str(PP_HOSTD), "doctor", "--config", write(tmp_path, ""), "--json"]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, env=environment, timeout=90, check=False)
    os.close(theirs)
    told = os.read(ours, 65536).decode()
    os.close(ours)
    assert "waiting for: " in told and "systemd" in told
    assert told.endswith("\r\x1b[K")
    assert any("did not end within 5 s" in line["found"] for line in json.loads(result.stdout))
