# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person would have typed for what `site` did to a bare Debian host, from the record of what its modules were told.

Every change becomes a command, in the same order: the same package transactions, files, builds, environments and users.
What only asks is left out, as are the steps that only a program needs (measuring again, index reads where no source has
changed, solving an environment before it is installed). What has no command is an error, so nothing is left out unseen.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Action = Mapping[str, Any]
Files = Mapping[str, Mapping[str, str]]

# Modules that look at a host and leave it as it is.
ASKING = {"setup", "stat", "find", "read_file", "node_state", "node_probe", "gpu_facts", "gpu_health", "ping"}
# The first words of commands that do, of tasks that do more; a person has no use for them.
QUESTIONS = ["apt-cache", "madison"]
APT = (
    "DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold"
)
SOURCES = ("/etc/apt/sources.list", "/etc/apt/keyrings/", "/usr/share/keyrings/")
END = "END-OF-FILE"


def script(actions: Iterable[Action], files: Files) -> str:
    """Return a shell script. ``files``: {path: {content, mode, owner, group}} as `site` left them."""
    typist = Typist(files)
    lines = [line for action in actions for line in typist.type(action)]
    return "\n".join(["set -eu", *lines, ""])


def paths(actions: Iterable[Action]) -> list[str]:
    """Return the files that were written and whose content no module was told."""
    found = [_edited(action) for action in actions if action["changed"]]
    return sorted({path for path in found if path})


def _edited(action: Action) -> str | None:
    arguments = action["arguments"]
    name = _name(action)
    if name in ("copy", "blockinfile", "lineinfile", "replace"):
        return str(arguments.get("dest") or arguments.get("path"))
    return None


def _name(action: Action) -> str:
    return str(action["module"]).rpartition(".")[2]


class Typist:
    """Knows what was typed before."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._stale = True  # the lists of packages
        self._solved: dict[str, Any] | None = None  # what described the environment that was solved last

    def type(self, action: Action) -> Iterator[str]:
        """Yield the commands for one module execution."""
        name = _name(action)
        if name in ASKING:
            return
        if not hasattr(self, f"_{name}"):
            raise ValueError(
                f"module {action['module']} (task {action['task']!r}) has no typed equivalent: add it to {__name__}"
            )
        if action.get("asks"):
            # A person leaves uv's solution to the installation, but not what is to be solved.
            if "compile" in action["arguments"].get("argv", []):
                self._solved = action["arguments"]
        elif action["changed"]:
            yield from getattr(self, f"_{name}")(action["arguments"], action.get("environment") or {})

    def _apt(self, arguments, _environment):
        names = arguments.get("name") or []
        if arguments.get("state") == "absent":
            yield f"{APT} purge {shlex.join(names)}"
        elif names:
            if self._stale:
                yield "apt-get -q update"
                self._stale = False
            recommends = " --no-install-recommends" if arguments.get("install_recommends") is False else ""
            yield f"{APT} install --allow-downgrades{recommends} {shlex.join(names)}"

    def _config_files(self, arguments, _environment):
        for file in arguments["files"]:
            if file.get("state") == "absent":
                yield f"rm -f {shlex.quote(file['path'])}"
            elif file.get("state") == "directory":
                yield _directory(file["path"], file)
            else:
                yield from self._write(file["path"], file)

    def _copy(self, arguments, _environment):
        path = arguments["dest"]
        yield from self._write(path, {**arguments, "content": self._files[path]["content"]})

    def _blockinfile(self, arguments, _environment):
        yield from self._write(arguments["path"], self._files[arguments["path"]], in_place=True)

    _lineinfile = _replace = _blockinfile

    def _write(self, path, file, in_place=False):
        """Yield the commands for what an editor would do; ``in_place``: owner and mode stay."""
        if path.startswith(SOURCES):
            self._stale = True
        quoted = shlex.quote(path)
        if not in_place:
            yield f"install -D -m {_mode(file)} /dev/null {quoted}"
        yield f"cat > {quoted} <<'{END}'\n{file['content'].removesuffix(chr(10))}\n{END}"
        if not in_place and (file.get("owner") or "root") != "root":
            yield f"chown {file['owner']}:{file.get('group') or ''} {quoted}"

    def _file(self, arguments, _environment):
        path = arguments["path"]
        if arguments.get("state") == "directory":
            yield _directory(path, arguments)
        elif arguments.get("state") == "absent":
            yield f"rm -rf {shlex.quote(path)}"
        else:
            yield f"touch {shlex.quote(path)} && chmod {_mode(arguments)} {shlex.quote(path)}"

    def _command(self, arguments, environment):
        argv = [str(word) for word in arguments["argv"]]
        if argv[: len(QUESTIONS)] == QUESTIONS:
            return
        if "sync" in argv and self._solved:
            argv = ["install" if word == "sync" else word for word in argv if word not in ("-", "--require-hashes")]
            argv += ["-r", self._solved["argv"][self._solved["argv"].index("compile") + 1]]
            arguments, self._solved = {"chdir": self._solved["chdir"]}, None
        yield _line(argv, arguments, environment)

    def _systemd_service(self, arguments, _environment):
        unit = shlex.quote(arguments["name"])
        if arguments.get("daemon_reload"):
            yield "systemctl daemon-reload"
        if arguments.get("enabled") is not None:
            yield f"systemctl {'enable' if arguments['enabled'] else 'disable'} {unit}"
        verb = {"started": "start", "restarted": "restart", "stopped": "stop", None: None}[arguments.get("state")]
        if verb:
            yield f"systemctl {verb} {unit}"

    def _group(self, arguments, _environment):
        yield f"groupadd {shlex.quote(arguments['name'])}"

    def _user(self, arguments, _environment):
        name, home = shlex.quote(arguments["name"]), shlex.quote(arguments["home"])
        yield f"useradd -m -d {home} -g {shlex.quote(arguments['group'])} -s {arguments['shell']} -p '*' {name}"

    def _ssh_keys(self, arguments, _environment):
        directory = shlex.quote(arguments["directory"])
        key = f"ssh-keygen -q -t {arguments['kind']} -N '' -C {shlex.quote(arguments['comment'])} -f {directory}/id_{arguments['kind']}"
        yield f"runuser -u {shlex.quote(arguments['user'])} -- sh -c {shlex.quote(f'mkdir -m 700 {directory} && {key}')}"

    def _package_hold(self, arguments, _environment):
        if arguments.get("state") != "released":
            installed = "dpkg-query -W -f '${db:Status-Abbrev}${Package}\\n'"
            patterns = shlex.join(arguments["packages"])
            yield f"{installed} {patterns} 2>/dev/null | sed -n 's/^ii //p' | xargs -r apt-mark hold"

    def _gpu_settings(self, arguments, _environment):
        for entry in arguments["declaration"]:
            for setting, value in entry.items():
                option = {"persistence_mode": f"-pm {int(value)}", "power_limit_watts": f"-pl {value}"}[setting]
                yield f"nvidia-smi {option}"


def _directory(path: str, arguments: Mapping[str, Any]) -> str:
    owner, group = arguments.get("owner") or "root", arguments.get("group") or "root"
    return f"install -d -m {arguments.get('mode') or '0755'} -o {owner} -g {group} {shlex.quote(path)}"


def _mode(arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("mode") or "0644")


def _line(argv: list[str], arguments: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """Return a command with its environment, its directory and what it reads."""
    words = shlex.join(
        [*(["env", *[f"{key}={value}" for key, value in environment.items()]] if environment else []), *argv]
    )
    if arguments.get("chdir"):
        words = f"(cd {shlex.quote(arguments['chdir'])} && {words})"
    if arguments.get("stdin"):
        return f"{words} <<'{END}'\n{arguments['stdin'].removesuffix(chr(10))}\n{END}"
    return f"{words} </dev/null"
