# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a check and its faults."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from collections import namedtuple

from .xid_table import CLASSES

# ``options``: {name: specification} of the module's options that are this check's thresholds.
# ``over_time``: it needs what was in earlier runs, and only the program of role health keeps that. ``across``: it compares nodes, and
# only role verify sees several.
Check = namedtuple("Check", "code category subject source faults options over_time across")
# ``severity``: one of findings.SEVERITIES. ``action_class``: one of ACTION_CLASSES.
Fault = namedtuple("Fault", "code meaning severity action_class action")

# What cures a fault, for programs: the classes of Xids, and one for what is not a matter of the hardware.
ACTION_CLASSES = tuple(CLASSES) + ("configure",)


def check(code, category, subject, source, *faults, **options):
    """Return a record; each fault as the fields of Fault."""
    return Check(code, category, subject, source, tuple(Fault(*fault) for fault in faults), options, False, False)


def check_over_time(*fields, **options):
    """Return the record of a check that compares several runs."""
    return check(*fields, **options)._replace(over_time=True)


def check_across(*fields, **options):
    """Return the record of a check that compares the nodes of a cluster."""
    return check(*fields, **options)._replace(across=True)


def of_class(name, code, meaning):
    """Return the fields of a fault that is dealt with as an Xid of the class is."""
    severity, action = CLASSES[name]
    return code, meaning, severity, name, action
