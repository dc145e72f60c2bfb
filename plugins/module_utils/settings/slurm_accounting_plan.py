# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of sacctmgr that bring QoS and accounts to what is declared, as lists of arguments, in an order that it takes.

wanted: {cluster, qos: {name: settings}, accounts: {name: settings}, users: [(account, user)]}, in the order of the declaration.
state: the same without the cluster as it is, with ``defaults`` {user: account}, ``partitions`` [(account, user)]: users of an account
in a single partition, which are nobody's of ours, and ``elsewhere``: accounts that other clusters of the same accounting have.
ours: {qos, accounts, users} that we made. What is neither wanted nor ours is left alone.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from . import slurm_accounting_text as text

ROOT = "root"
KINDS = ("qos", "accounts", "users")


def plan(wanted, state, ours):
    """Return the commands. Each is without the name of the program; ValueError where something of others would go with what is ours."""
    gone = leaving(wanted, state, ours)
    refuse(wanted, state, gone)
    return (
        _qos(wanted["qos"], state["qos"])
        + _accounts(wanted, state["accounts"])
        + _users(wanted, state["users"])
        + _removed_users(wanted, state, gone["users"])
        + [
            _delete_account(one, wanted["cluster"], state["elsewhere"])
            for one in _deepest_first(gone["accounts"], state)
        ]
        + [["delete", "qos", "where", "name=%s" % one] for one in gone["qos"]]
    )


def leaving(wanted, state, ours):
    """Return {kind: what goes}: ours, there, and no longer wanted."""
    return {kind: [one for one in ours[kind] if one in state[kind] and one not in wanted[kind]] for kind in KINDS}


def kept(wanted, state, ours):
    """Return {kind: what is ours} once the plan was carried out: what was there before we came stays others'."""
    return {kind: sorted(one for one in wanted[kind] if one in ours[kind] or one not in state[kind]) for kind in KINDS}


def refuse(wanted, state, gone):
    """Raise ValueError where an account that goes has users or accounts that are not ours, which would go with it."""
    for account in gone["accounts"]:
        users = [user for place, user in state["users"] if place == account and (place, user) not in gone["users"]]
        users += [user for place, user in state["partitions"] if place == account]
        below = [one for one, settings in state["accounts"].items() if settings["parent"] == account]
        # Those that are declared under another account are moved first.
        below = [one for one in below if one not in gone["accounts"] and one not in wanted["accounts"]]
        if users or below:
            raise ValueError(
                "account %s is no longer declared, and has %s, which this role did not make; remove them with sacctmgr, or declare the "
                "account again"
                % (account, ", ".join(sorted(set(users)) + ["account %s" % one for one in sorted(below)]))
            )


def _qos(wanted, found):
    commands = []
    for name, settings in wanted.items():
        if name not in found:
            # One that it may preempt may not be there yet.
            keys = [key for key, value in settings.items() if key != "preempts" and text.is_set(value)]
            commands.append(["add", "qos", "name=%s" % name] + text.told(settings, text.QOS, keys))
    for name, settings in wanted.items():
        there = found.get(name, dict(settings, preempts=[]))
        changed = [key for key, value in settings.items() if value != there[key]]
        if changed:
            commands.append(
                ["modify", "qos", "where", "name=%s" % name, "set"] + text.told(settings, text.QOS, changed)
            )
    return commands


def _accounts(wanted, found):
    """Return the commands for accounts, those above first: none is ever moved below itself."""
    commands, accounts = [], wanted["accounts"]
    for name in sorted(accounts, key=lambda one: _depth(one, accounts)):
        settings = accounts[name]
        if name not in found:
            keys = [key for key, value in settings.items() if text.is_set(value)]
            place = ["add", "account", "name=%s" % name, "cluster=%s" % wanted["cluster"]]
            commands.append(place + text.told(settings, text.ACCOUNT, keys))
            continue
        changed = [key for key, value in settings.items() if value != found[name][key]]
        if changed:
            place = _where("modify", "account", name, wanted["cluster"])
            commands.append(place + ["set"] + text.told(settings, text.ACCOUNT, changed))
    return commands


def _depth(name, accounts):
    """Return how many accounts are above one; of a declaration in a circle, which is refused before, some number."""
    depth = 0
    while name in accounts and depth <= len(accounts):
        name, depth = accounts[name]["parent"], depth + 1
    return depth


def _users(wanted, found):
    """Return a command for each account with users that it lacks. A user's first account is the default one."""
    missing = {}
    for account, user in wanted["users"]:
        if (account, user) not in found:
            missing.setdefault(account, []).append(user)
    return [
        [
            "add",
            "user",
            "name=%s" % ",".join(missing[account]),
            "cluster=%s" % wanted["cluster"],
            "account=%s" % account,
        ]
        for account in wanted["accounts"]
        if account in missing
    ]


def _removed_users(wanted, state, gone):
    """Return the commands that take users out of accounts; who has others gets one of them as default first, which Slurm insists on."""
    commands, cluster = [], wanted["cluster"]
    left = [one for one in list(wanted["users"]) + list(state["users"]) if one not in gone]
    for account, user in sorted(gone, key=lambda one: state["defaults"].get(one[1]) == one[0]):
        others = [place for place, one in left if one == user]
        if others and state["defaults"].get(user) == account:
            commands.append(_where("modify", "user", user, cluster) + ["set", "DefaultAccount=%s" % others[0]])
        commands.append(_where("delete", "user", user, cluster) + ["account=%s" % account])
    return commands


def _deepest_first(accounts, state):
    return sorted(accounts, key=lambda one: -_depth(one, state["accounts"]))


def _delete_account(name, cluster, elsewhere):
    """Return the command; with a cluster, what sacctmgr show account shows would stay, so only of one that others have accounts in."""
    command = _where("delete", "account", name, cluster)
    return command if name in elsewhere else command[:-1]


def _where(verb, entity, name, cluster):
    return [verb, entity, "where", "name=%s" % name, "cluster=%s" % cluster]


def described(wanted, ours, found):
    """Return the lines of what is declared or ours, as it is in ``found``, for a person."""
    lines = []
    for kind, kinds, word in (("qos", text.QOS, "qos"), ("accounts", text.ACCOUNT, "account")):
        mine = list(wanted[kind]) + [one for one in ours[kind] if one not in wanted[kind]]
        lines += [
            "%s %s: %s" % (word, one, text.described(found[kind][one], kinds)) for one in mine if one in found[kind]
        ]
    mine = list(wanted["users"]) + [one for one in ours["users"] if one not in wanted["users"]]
    return lines + [
        "user %s: account=%s" % (user, account) for account, user in mine if (account, user) in found["users"]
    ]
