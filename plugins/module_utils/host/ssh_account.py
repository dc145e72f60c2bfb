# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SSH access of a user to the other nodes, read back: who may log in, and how their client checks whom it meets."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import hashlib
import json
import os
import pwd

from . import config_files
from .as_user import as_user

RECORD = "/etc/allreduce/nodes.json"
OPTIONS = ("stricthostkeychecking", "forwardagent")


def read_account(user, peer, run, record=RECORD, root="root"):
    """Return the account's values to be judged; None where role cluster_ssh has not worked.

    ``run(arguments, user=...)`` returns (exit code, lines); peer: the host that the client is asked about.
    """
    if not os.path.isfile(record):
        return None
    with open(record, "rb") as stream:
        nodes = json.loads(stream.read().decode("utf-8"))
    try:
        home = pwd.getpwnam(user).pw_dir
    except KeyError:
        return {"nodes": nodes, "authorized_keys": None, "root_keys": root_keys(nodes, root), "client": None}
    code, lines = run(["ssh", "-G", peer], user=user)
    return {
        "nodes": nodes,
        "authorized_keys": authorized_keys(user, home),
        "root_keys": root_keys(nodes, root),
        "client": client(lines) if code == 0 else None,
    }


def authorized_keys(user, home):
    """Return {state, mode, owner, sha256} of the user's file, as far as the user can read it."""
    path = os.path.join(home, ".ssh", "authorized_keys")
    try:
        found = as_user(user, lambda: config_files.read(path, follow=False))
    except (EnvironmentError, ValueError):
        return {"state": "unreadable", "mode": None, "owner": None, "sha256": None}
    content = found.pop("content")
    sha256 = None if content is None else hashlib.sha256(config_files.as_bytes(content)).hexdigest()
    return {"state": found["state"], "mode": found["mode"], "owner": found["owner"], "sha256": sha256}


def root_keys(nodes, root="root"):
    """Return the names of the nodes whose keys root takes."""
    text = ""
    for name in ("authorized_keys", "authorized_keys2"):
        path = os.path.join(pwd.getpwnam(root).pw_dir, ".ssh", name)
        if os.path.isfile(path):
            with open(path, "rb") as stream:
                text += stream.read().decode("utf-8", "replace")
    words = set(text.split())
    keys = {node["name"]: [node.get("public_key"), node.get("next_key")] for node in nodes}
    return sorted(name for name, own in keys.items() if any(key and key.split()[1] in words for key in own))


def client(lines):
    """Return the options of the client that count, as ssh -G prints them."""
    found = dict(line.split(None, 1) for line in lines if len(line.split(None, 1)) == 2)
    return {option: found.get(option) for option in OPTIONS}
