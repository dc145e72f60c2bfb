# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences about environments of conda: for people, nothing is decided by them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

SENTENCES = {
    "conda_lock_no_mark": "the lock has no line @EXPLICIT: write it as conda list --explicit --sha256 does",
    "conda_lock_empty": "the lock names no package",
    "conda_lock_no_package": "{subject} is not an address of a package: write channel/platform/name-version-build.conda",
    "conda_lock_no_checksum": "{subject} has no SHA-256: add #sha256: and its 64 digits",
    "conda_lock_twice": "the lock has the package of {subject} twice",
    "conda_platform": "the lock has packages for {subject}, and this node is {expected}",
    "conda_defaults": (
        "{subject} is one of Anaconda's own channels, which have terms of their own: name conda-forge or a mirror, or set"
        " allow_defaults to true where your licence covers them"
    ),
    "conda_program_missing": "{subject} does not exist: install micromamba or Miniforge, or name its program",
    "conda_program_old": "{subject} is too old or does not run: conda 24.9 or mamba 2.1 is needed, which support SHA-256 in locks",
    "conda_foreign": "the prefix has files and is not an environment of conda: move them away or choose another prefix",
    "conda_not_fetched": "{subject} cannot be fetched: {reason}",
    "conda_checksum": "{subject} has SHA-256 {found}, and the lock has {expected}: solve again, or fix the mirror",
    "conda_unsolvable": "the channels have no solution: {reason}",
    "conda_unreachable": "a channel cannot be read: {reason}",
    "conda_failed": "{subject} ended with {status}: {reason}",
    "conda_not_as_locked": "{subject} is {found} after the installation, and the lock has {locked}",
    "conda_damaged": "{path} of {subject} differs from the package's, right after the installation",
    "conda_unfinished": "the program ended without an entry in conda-meta/history",
    "conda_solution_empty": "the program found no packages for these specs",
    "conda_solution_unchecked": "the channel has no SHA-256 for {subject}, so it cannot be locked",
}


def as_shown(problem):
    """Return the problem without the passwords and tokens that addresses of channels may hold."""
    detail = {key: _without_secrets(value) for key, value in problem["detail"].items()}
    return dict(problem, subject=_without_secrets(problem["subject"]), detail=detail)


def describe(problem):
    """Return the sentence for a problem, without its end."""
    detail = {key: _words(value) for key, value in problem["detail"].items()}
    subject = problem["subject"] or "a program that installs conda's packages"
    return _without_secrets(SENTENCES[problem["code"]].format(subject=subject, **detail))


def _without_secrets(value):
    if not isinstance(value, str):
        return value
    return re.sub(r"(?<=/t/)[^/\s]+(?=/)", "...", re.sub(r"(?<=://)[^/?#\s]*@", "", value))


def _words(value):
    """A package as words."""
    if isinstance(value, dict):
        return "%(version)s %(build)s with SHA-256 %(sha256)s" % value
    return "not there" if value is None else value
