# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of sacctmgr for limits of QoS and accounts: what it is told, and what it prints with ``--parsable2 --noheader``.

Of TRES (sacctmgr(1), GrpTRES) only gres/gpu is read and set: each is set by itself, so that limits of others stay. ``-1`` takes a limit
away. Times are printed as [days-]hours:minutes:seconds (src/common/parse_time.c of slurm-22.05 and slurm-24.11, mins2time_str).
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

GPU = "gres/gpu"
_TIME = re.compile(r"(?:([0-9]+)-)?([0-9]{2}):([0-9]{2}):([0-9]{2})")
_TRES = re.compile(r"([^=,]+)=([^=,]+)")


def number(text):
    """Return the number, None for nothing; ValueError for anything else, as all of these."""
    if text and not re.match(r"[0-9]{1,19}\Z", text):
        raise ValueError("%r is no number" % text)
    return int(text) if text else None


def shares(text):
    """Return the number of shares, None for those of the account above."""
    return None if text == "parent" else number(text)


def minutes(text):
    """Return the minutes of a time."""
    if not text:
        return None
    found = _TIME.match(text)
    if not found or found.end() != len(text):
        raise ValueError("%r is no time" % text)
    days, hours, rest = int(found.group(1) or 0), int(found.group(2)), int(found.group(3))
    return (days * 24 + hours) * 60 + rest


def gpus(text):
    """Return the number of GPUs among limits such as cpu=10,gres/gpu=4."""
    pairs = [_TRES.match(one) for one in text.split(",")] if text else []
    if not all(pairs):
        raise ValueError("%r are no limits" % text)
    return number(dict(pair.groups() for pair in pairs).get(GPU, ""))


def names(text):
    """Return the names in their order; those that only add to a list or take from it keep their sign."""
    return sorted(text.split(",")) if text else []


def name(text):
    """Return the name, empty for none."""
    return text


def _number_word(value):
    return "-1" if value is None else str(value)


def _gpus_word(value):
    return "%s=%s" % (GPU, _number_word(value))


def _name_word(value):
    return value or "-1"


# Of each setting: its key, its word both in commands and in formats, what reads it, and what writes it.
QOS = (
    ("priority", "Priority", number, _number_word),
    ("max_minutes", "MaxWall", minutes, _number_word),
    ("gpus", "GrpTRES", gpus, _gpus_word),
    ("gpus_per_user", "MaxTRESPerUser", gpus, _gpus_word),
    ("jobs_per_user", "MaxJobsPerUser", number, _number_word),
    ("preempts", "Preempt", names, ",".join),
)
ACCOUNT = (
    ("parent", "ParentName", name, _name_word),
    ("shares", "FairShare", shares, _number_word),
    ("gpus", "GrpTRES", gpus, _gpus_word),
    ("gpus_per_job", "MaxTRESPerJob", gpus, _gpus_word),
    ("qos", "QOSLevel", names, ",".join),
    ("default_qos", "DefaultQOS", name, _name_word),
)


def is_set(value):
    """Return True if it is more than nothing, which is neither told of something new nor shown."""
    return value not in (None, "", [])


def told(settings, kinds, keys):
    """Return the words that set these keys, such as GrpTRES=gres/gpu=4. ParentName is Parent in commands."""
    return [
        "%s=%s" % ("Parent" if key == "parent" else word, write(settings[key]))
        for key, word, dummy, write in kinds
        if key in keys
    ]


def fields(kinds):
    """Return the words of a format."""
    return [word for dummy, word, dummy_read, dummy_write in kinds]


def read(values, kinds):
    """Return {key: value} of the fields of a line; ValueError for one that means nothing."""
    return {key: reader(text) for (key, dummy, reader, dummy_write), text in zip(kinds, values)}


def described(settings, kinds):
    """Return the settings, such as gpus=4 qos=long,normal, for a person."""
    pairs = [(key, settings[key]) for key, dummy, dummy_read, dummy_write in kinds]
    return " ".join(
        "%s=%s" % (key, ",".join(value) if isinstance(value, list) else value) for key, value in pairs if is_set(value)
    )
