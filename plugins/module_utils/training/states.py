# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The work of module training_unit in each state: the run's directory and its service brought together.

PARAMS are the module's parameters, RUN is its run_command.
"""

import errno
import json
import os
import pwd
import re
import shutil
import socket
import time

from ..host.fapolicyd import denies, read_fapolicyd
from ..host.systemd_unit import TransientService, describe_end
from ..machine.child import bounded
from ..machine.files import FileTree
from ..machine.problems import problem
from ..packages.environments import read_versions
from ..storage.network_mounts import SECONDS, SILENT, in_words, read_network_mounts
from . import flight, stacks
from . import run as training_run
from .run import RunError

RUN_ID = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_POLL_STEP = 0.5
_FULL_BELOW = 65536


def refusals(params, run):
    """Return the problems for which a run could not start on this node, as records."""
    if params["state"] != "started":
        return []
    return [one for one in _refusals(params, run) if one]


def _refusals(params, run):
    if not RUN_ID.match(params["run_id"]):
        yield problem("wrong_run_id", params["run_id"])
    if os.geteuid() != 0:
        yield problem("not_root")
    unreached = _unreached(params["python"])
    if unreached:
        yield unreached
    elif not os.path.isfile(params["python"]):
        yield problem("no_interpreter", params["python"])
    elif denies(read_fapolicyd(FileTree()), params["python"]):
        yield problem("fapolicyd_denies", params["python"])
    if not _user(params["user"]):
        yield problem("no_user", params["user"])
    programs = params.get("programs") or []
    if programs and not any(os.access(path, os.X_OK) for path in programs):
        name = os.path.basename(programs[0])
        yield problem("no_%s" % name, programs[0] if name == "horovodrun" else name)
    yield _address_refusal(params, run)
    yield _port_refusal(params["address"], *_endpoint(params["rendezvous"]))


def changes(params, run):
    """Return True if the state that is asked for would change this node."""
    return params["state"] == "started" or (
        params["state"] == "stopped" and _service(params, run).show()["state"] == "running"
    )


def start(params, run):
    """Create the directory, start the service; with ``again``, in the directory of a run that has lost its rendezvous."""
    service = _service(params, run)
    if params.get("again"):
        service.stop()
    against = refusals(params, run)
    if against:
        raise RunError(against[0])
    user = _user(params["user"])
    name = interface(params["address"], run)
    # NCCL takes interface names as prefixes unless they begin with "=".
    variables = {"GLOO_SOCKET_IFNAME": name, "NCCL_SOCKET_IFNAME": "=" + name} if name else {}
    path = _path(params)
    if params.get("again"):
        training_run.renew(path, params["archive"], variables, user.pw_gid)
    else:
        training_run.create(path, params["archive"], variables, user.pw_uid, user.pw_gid)
    argv = [params["python"], os.path.join(path, "agent.py")]
    service.start(argv, params["user"], os.path.join(path, "work"), params["lease"])
    return {"changed": True, "interface": name}


def poll(params, run):
    """Renew the lease, wait a little for the end, and return how the run stands."""
    service = _service(params, run)
    shown = service.show()
    if shown["state"] == "running":
        service.renew_lease(params["lease"])
    deadline = time.monotonic() + params["wait"]
    while shown["state"] == "running" and time.monotonic() < deadline:
        time.sleep(_POLL_STEP)
        shown = service.show()
    result = dict(_standing(params, shown), changed=False)
    if params.get("stacks") and result["ranks"]:
        logs = os.path.join(_path(params), "logs")
        told = stacks.stacks(logs, _uid(_path(params)), [rank["rank"] for rank in result["ranks"]])
        for rank in result["ranks"]:
            rank["stack"] = told.get(rank["rank"], [])
        result["mount_faults"] = _mount_faults()
    if params["rendezvous"] and not result["ranks"]:
        result["rendezvous_error"] = _connect_error(*_endpoint(params["rendezvous"]))
    if params["python"]:
        unreached = _unreached(params["python"])
        if unreached:
            raise RunError(unreached)
        result["versions"] = read_versions(FileTree(), os.path.dirname(os.path.dirname(params["python"])))
    return result


def stop(params, run):
    """End the service if it runs; return all that is known about the run."""
    shown = _service(params, run).stop()
    path = _path(params)
    result = dict(_standing(params, shown), changed=shown["state"] == "running")
    if os.path.isdir(path):
        uid = _uid(path)
        ranks = [rank["rank"] for rank in result["ranks"]]
        result["tails"] = {str(rank): training_run.tail(path, rank, params["tail_lines"], uid) for rank in ranks}
        result["tails"]["agent"] = training_run.agent_tail(path, params["tail_lines"], uid)
        result["exceptions"] = training_run.exceptions(path, uid, result["ranks"])
        result["flight"], result["flight_errors"] = flight.collect(os.path.join(path, "logs"), uid, result["ranks"])
        result["metrics"], result["metrics_error"] = training_run.metrics(path, uid)
        result["disk_full"] = _is_full(path)
        result["mount_faults"] = [] if shown["state"] == "succeeded" else _mount_faults()
        result["logs"] = training_run.collect_logs(path, uid, params["log_limit"])
        if params["remove"]:
            shutil.rmtree(path)
    return result


def interface(address, run):
    """Return the name of the one interface that carries ADDRESS; None for none, several, or no way to tell."""
    names = _interfaces(address, run) or []
    return names[0] if len(names) == 1 else None


def _interfaces(address, run):
    """Return the names of the interfaces that carry ADDRESS; None where ip cannot be asked."""
    links = _links(address, run)
    return None if links is None else sorted({link["ifname"] for link in links})


def _links(address, run):
    rc, out, dummy = run(["ip", "-json", "address", "show", "to", address])
    if rc != 0:
        return None
    try:
        links = json.loads(out) if out.strip() else []
    except ValueError:
        return None
    # ip prints an empty object for each interface that the filter left out.
    return [link for link in links if link.get("ifname") and link.get("addr_info")]


def _standing(params, shown):
    path = _path(params)
    known = os.path.isdir(path)
    result = {
        "service": shown,
        "ranks": training_run.ranks(path, _uid(path)) if known else [],
        "agent": training_run.agent(path, _uid(path)) if known else None,
        "job": training_run.job(path, _uid(path)) if known else None,
        "metrics_written": training_run.metrics_written(path) if known else None,
        "now": time.time(),
    }
    if shown["state"] != "running":
        result["end"] = describe_end(shown)
    return result


def _address_refusal(params, run):
    """Refuse an address that the node does not have, and one of loopback, on which no packet leaves, where others take part."""
    links = _links(params["address"], run)
    if links == []:
        return problem("no_address", params["address"])
    if links and params["nodes"] > 1 and all(_is_loopback(link) for link in links):
        return problem("loopback_interface", params["address"])
    return None


def _is_loopback(link):
    return link.get("link_type") == "loopback" or "LOOPBACK" in link.get("flags", ())


def _port_refusal(address, host, port):
    """Only the node that will listen can tell whether the port is free."""
    if address != host:
        return None
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return problem("port_in_use", port)
    return None


def _connect_error(host, port):
    try:
        socket.create_connection((host, port), timeout=2).close()
    except OSError as error:
        return str(error.strerror or error)
    return None


def _endpoint(rendezvous):
    host, port = rendezvous.rsplit(":", 1)
    return host.strip("[]"), int(port)


def _mount_faults():
    """Return the faults of network file systems, in words: a rank that reads one that does not answer waits without an end."""
    return [_named(one) for one in read_network_mounts(FileTree("/proc")) if one["fault"]]


def _named(mount):
    return "%s: %s" % (mount["point"], in_words(mount))


def _unreached(python):
    """Return the problem that the file system with an environment does not answer, else None: this process would wait there without an end."""
    silent = [one for one in read_network_mounts(FileTree("/proc")) if one["fault"] == SILENT]
    if not silent or bounded(lambda say: say(os.path.isfile(python)), SECONDS)[0]:
        return None
    return problem("environment_silent", python, mounts="; ".join(map(_named, silent)))


def _is_full(path):
    """Return True if the training user can hardly write any more, which logs cannot say since they cannot be written."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize < _FULL_BELOW or (disk.f_files > 0 and disk.f_favail == 0)


def _user(name):
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _uid(path):
    # logs/ was given to the training user by root and lies in a directory of root's, so its owner can be believed.
    return os.stat(os.path.join(path, "logs")).st_uid


def _path(params):
    return os.path.join(params["directory"], params["run_id"])


def _service(params, run):
    if not RUN_ID.match(params["run_id"]):
        raise RunError(problem("wrong_run_id", params["run_id"]))
    return TransientService(run, "allreduce-train-%s.service" % params["run_id"])
