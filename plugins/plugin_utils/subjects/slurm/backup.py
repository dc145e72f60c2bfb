# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The backup of the accounting database before slurmdbd of another version starts on it.

A newer slurmdbd converts the database as it starts, whoever upgraded the packages, and no older one reads it afterwards
(doc/html/upgrades.shtml, Backup the Database).
"""

from __future__ import annotations

from ....module_utils.settings.slurm import OURS
from .cluster import DATABASE

PROGRAM = "/opt/allreduce/lib/slurm-backup"
# The version that slurmdbd last started with.
STAMP = "/var/lib/allreduce/slurmdbd_version"
DIRECTORY = "/var/backups/slurm"
# Without a backup, slurmdbd does not start: systemd tries again, and Slurm's controller keeps what is to be accounted.
UNIT = f"ExecStartPre=+{PROGRAM}\nTimeoutStartSec=infinity\n"
SCRIPT = f"""#!/bin/bash
{OURS}: saves the accounting database before slurmdbd of another version starts on it.
set -euo pipefail
umask 077
now=$(/usr/sbin/slurmdbd -V)
now=${{now##* }}
before=$(cat {STAMP} 2> /dev/null || echo unknown)
[ "$now" != "$before" ] || exit 0
tables=$(mariadb --batch --skip-column-names --execute 'SHOW TABLES FROM {DATABASE}')
if [ -n "$tables" ]; then
    file={DIRECTORY}/{DATABASE}-$before-$(date +%Y%m%dT%H%M%S).sql.gz
    mkdir -p {DIRECTORY}
    mariadb-dump --single-transaction --routines {DATABASE} | gzip > {DIRECTORY}/part
    mv {DIRECTORY}/part "$file"
    echo "before slurmdbd $now starts, the accounting of $before was saved in $file"
fi
echo "$now" > {STAMP}
"""
