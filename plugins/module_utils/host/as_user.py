# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do a user's own work with the user's rights alone: links that they put in the way lead nowhere they could not go themselves."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import pwd

from ..machine import child

SECONDS = 60


def as_user(name, work, seconds=SECONDS):
    """Return the plain value of ``work()``, done in a process of the user's; a caller other than root runs it as itself.

    Raise KeyError for an unknown user, and what the work raises of OSError and ValueError.
    """
    account = pwd.getpwnam(name)

    def act(say):
        try:
            _become(account)
            say({"value": work()})
        except EnvironmentError as error:
            say({"system": [error.errno, error.strerror, error.filename]})
        except ValueError as error:
            say({"refused": str(error)})

    said, ending = child.bounded(act, seconds)
    answer = said[-1] if said else {"refused": "the process run as %s ended with %s" % (name, ending)}
    if "system" in answer:
        raise OSError(*answer["system"])
    if "refused" in answer:
        raise ValueError(answer["refused"])
    return answer["value"]


def _become(account):
    """Give up root for good; files are the user's alone."""
    os.umask(0o077)
    os.chdir("/")
    if os.geteuid() == 0:
        os.initgroups(account.pw_name, account.pw_gid)
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
