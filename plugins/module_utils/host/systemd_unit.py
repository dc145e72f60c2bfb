# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A transient systemd service that ends by itself when its lease is not renewed.

Works with systemd 239 (EL8) and later: what that version lacks (append: outputs, Type=exec, --working-directory)
is not used.
"""

_SHOWN = ("LoadState", "ActiveState", "SubState", "Result", "ExecMainCode", "ExecMainStatus", "ExecMainPID")

# Exit codes that systemd itself gives when it cannot even execute the command (man systemd.exec).
_SYSTEMD_EXITS = {200: "CHDIR", 203: "EXEC", 205: "LIMITS", 216: "GROUP", 217: "USER", 226: "NAMESPACE"}


class SystemdError(Exception):
    """systemd refused; the text is its own."""


def service_argv(unit, argv, user, directory, properties=None):
    """Return the systemd-run command line of a service that stays loaded after its end, for its result to be read."""
    settings = {
        "WorkingDirectory": directory,
        "KillMode": "control-group",
        "TimeoutStopSec": "15",
        "LimitMEMLOCK": "infinity",
        "LimitNOFILE": "1048576",
        "TasksMax": "infinity",
    }
    settings.update(properties or {})
    head = ["systemd-run", "--quiet", "--remain-after-exit", "--unit=" + unit, "--uid=" + user]
    return head + ["--property=%s=%s" % item for item in sorted(settings.items())] + ["--"] + list(argv)


def lease_argv(unit, seconds):
    """Return the systemd-run command line of the timer that stops UNIT after SECONDS and forgets its result."""
    script = "systemctl stop %s; systemctl reset-failed %s" % (unit, unit)
    return [
        "systemd-run", "--quiet", "--collect", "--unit=" + lease_name(unit), "--on-active=%d" % seconds,
        # Without this, systemd may fire a timer up to a minute late.
        "--timer-property=AccuracySec=1s", "--", "/bin/sh", "-c", script,
    ]  # fmt: skip


def lease_name(unit):
    """Return the name, without suffix, of the timer that belongs to UNIT."""
    return unit[: -len(".service")] + "-lease"


def parse_show(text):
    """Return {state: running|succeeded|failed|absent, result, exit_code, signal, pid} by ``systemctl show``.

    exit_code and signal are None while the service runs; one of them is set when its process has ended.
    """
    shown = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    status = int(shown.get("ExecMainStatus") or 0)
    # si_code of SIGCHLD: 1 exited, 2 killed, 3 dumped core; 0 has not ended.
    code = shown.get("ExecMainCode", "0")
    ended = {"exit_code": status if code == "1" else None, "signal": status if code in ("2", "3") else None}
    return dict(ended, state=_state(shown), result=shown.get("Result", ""), pid=int(shown.get("ExecMainPID") or 0))


def _state(shown):
    active = shown.get("ActiveState")
    if shown.get("LoadState") in (None, "not-found") or active == "inactive":
        return "absent"
    if active == "failed":
        return "failed"
    return "succeeded" if shown.get("SubState") == "exited" else "running"


def describe_end(shown):
    """Return one phrase that says how a service ended, from what parse_show returned."""
    if shown["result"] == "oom-kill":
        return "was ended by the kernel's out-of-memory killer"
    if shown["signal"]:
        return "was killed by signal %d" % shown["signal"]
    if shown["exit_code"] in _SYSTEMD_EXITS:
        return "could not be executed by systemd (status %d/%s)" % (
            shown["exit_code"], _SYSTEMD_EXITS[shown["exit_code"]])  # fmt: skip
    if shown["state"] == "absent":
        return "was stopped from outside, or its lease ran out"
    return "exited with code %s" % shown["exit_code"]


class TransientService(object):
    """The service UNIT (a name with .service). RUN takes an argv and returns (rc, stdout, stderr)."""

    def __init__(self, run, unit):
        self._run = run
        self._unit = unit

    def start(self, argv, user, directory, lease):
        """Arm the lease, then start; raise SystemdError. A service that fails to start leaves no timer."""
        self._must(lease_argv(self._unit, lease))
        try:
            self._must(service_argv(self._unit, argv, user, directory))
        except SystemdError:
            self._drop_lease()
            raise

    def show(self):
        """Return the answer of parse_show; state absent when systemd does not know the service."""
        argv = ["systemctl", "show", self._unit, "--property=" + ",".join(_SHOWN)]
        return parse_show(self._must(argv))

    def renew_lease(self, seconds):
        """Renew the lease."""
        if self._run(["systemctl", "restart", lease_name(self._unit) + ".timer"])[0] != 0:
            self._must(lease_argv(self._unit, seconds))

    def stop(self):
        """End all processes of the service (SIGTERM, after 15 s SIGKILL); returns what show() said before."""
        before = self.show()
        if before["state"] != "absent":
            # A unit that has just been collected counts as stopped by this call: only its state counts.
            self._run(["systemctl", "stop", self._unit])
            self._run(["systemctl", "reset-failed", self._unit])
        self._drop_lease()
        return before

    def _drop_lease(self):
        self._run(["systemctl", "stop", lease_name(self._unit) + ".timer"])

    def _must(self, argv):
        rc, out, err = self._run(argv)
        if rc != 0:
            raise SystemdError("%s failed: %s" % (" ".join(argv[:2]), (err or out).strip()))
        return out
