# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab: systemd containers on one machine that are reached over SSH like any server.

`python -m tests.lab --help` is its command line. Nothing in roles/ or plugins/ knows of it.
"""
