# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import systemd_unit
from ansible_collections.allreduce.gpu.plugins.module_utils.host.systemd_unit import SystemdError, TransientService

UNIT = "allreduce-train-r1.service"


def shown(load="loaded", active="active", sub="running", result="success", code=0, status=0, pid=7):
    """What systemctl show prints (systemd 252)."""
    return (
        f"LoadState={load}\nActiveState={active}\nSubState={sub}\nResult={result}\n"
        f"ExecMainCode={code}\nExecMainStatus={status}\nExecMainPID={pid}\n"
    )


STATES = [
    (shown(), "running", None, None),
    (shown(sub="exited", code=1), "succeeded", 0, None),
    (shown(active="failed", sub="failed", result="exit-code", code=1, status=3), "failed", 3, None),
    (shown(active="failed", sub="failed", result="signal", code=2, status=9), "failed", None, 9),
    (shown(active="deactivating", sub="stop-sigterm"), "running", None, None),
    (shown(load="not-found", active="inactive", sub="dead", pid=0), "absent", None, None),
    ("", "absent", None, None),
]


@pytest.mark.parametrize(("text", "state", "exit_code", "signal"), STATES)
def test_what_systemd_shows_is_read(text, state, exit_code, signal):
    found = systemd_unit.parse_show(text)
    assert (found["state"], found["exit_code"], found["signal"]) == (state, exit_code, signal)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        (shown(active="failed", result="exit-code", code=1, status=1), "exited with code 1"),
        (shown(active="failed", result="signal", code=2, status=9), "was killed by signal 9"),
        (shown(active="failed", result="oom-kill", code=2, status=9), "was ended by the kernel's out-of-memory killer"),
        (shown(active="failed", code=1, status=203), "could not be executed by systemd (status 203/EXEC)"),
        ("", "was stopped from outside, or its lease ran out"),
    ],
)
def test_an_end_is_described(text, phrase):
    assert systemd_unit.describe_end(systemd_unit.parse_show(text)) == phrase


def test_the_service_runs_as_the_user_with_memory_unlocked_and_dies_as_a_whole():
    argv = systemd_unit.service_argv(UNIT, ["/env/bin/python", "agent.py"], "trainer", "/runs/r1/work")
    assert argv[-3:] == ["--", "/env/bin/python", "agent.py"]
    assert {
        "--uid=trainer",
        "--property=KillMode=control-group",
        "--property=LimitMEMLOCK=infinity",
        "--property=WorkingDirectory=/runs/r1/work",
    } <= set(argv)


def test_the_lease_stops_the_service():
    argv = systemd_unit.lease_argv(UNIT, 60)
    assert "--unit=allreduce-train-r1-lease" in argv
    assert "--on-active=60" in argv
    assert argv[-1] == f"systemctl stop {UNIT}; systemctl reset-failed {UNIT}"


class Systemd:
    """Answers like systemd-run and systemctl; FAIL names words of a command that fails."""

    def __init__(self, show="", fail=None):
        self.show, self.fail, self.calls = show, fail, []

    def __call__(self, argv):
        self.calls.append(argv)
        if self.fail and self.fail in argv:
            return 1, "", "no such user"
        return 0, self.show if argv[1] == "show" else "", ""

    def verbs(self):
        return [argv[0] if argv[0] == "systemd-run" else argv[1] for argv in self.calls]


def test_the_lease_is_armed_before_the_service_starts():
    systemd = Systemd()
    TransientService(systemd, UNIT).start(["true"], "trainer", "/", 60)
    assert "--on-active=60" in systemd.calls[0]
    assert "--uid=trainer" in systemd.calls[1]


def test_a_service_that_does_not_start_leaves_no_lease():
    systemd = Systemd(fail="--uid=nobody9")
    with pytest.raises(SystemdError, match="no such user"):
        TransientService(systemd, UNIT).start(["true"], "nobody9", "/", 60)
    assert systemd.calls[-1] == ["systemctl", "stop", "allreduce-train-r1-lease.timer"]


def test_a_lease_is_renewed_by_restarting_its_timer():
    systemd = Systemd()
    TransientService(systemd, UNIT).renew_lease(60)
    assert systemd.calls == [["systemctl", "restart", "allreduce-train-r1-lease.timer"]]


def test_a_lease_that_is_gone_is_armed_again():
    systemd = Systemd(fail="restart")
    TransientService(systemd, UNIT).renew_lease(60)
    assert systemd.verbs() == ["restart", "systemd-run"]


def test_stopping_returns_the_state_before():
    systemd = Systemd(show=shown())
    assert TransientService(systemd, UNIT).stop()["state"] == "running"
    assert systemd.verbs() == ["show", "stop", "reset-failed", "stop"]


def test_stopping_what_is_not_there_only_drops_the_lease():
    systemd = Systemd()
    assert TransientService(systemd, UNIT).stop()["state"] == "absent"
    assert systemd.verbs() == ["show", "stop"]
