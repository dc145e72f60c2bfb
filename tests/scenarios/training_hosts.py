# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two hosts on which the training user can train: an environment and keys, and nothing of the driver."""

import time

from cluster import Cluster


class TrainingHosts(Cluster):
    """Two hosts with an environment and keys, and nothing of the driver."""

    def __init__(self):
        super().__init__("launch", 2)
        run = self.play("playbooks/site.yml", "--tags", "base,python_env,frameworks,cluster_ssh")
        assert run.status == 0, run.output[-6000:]

    def is_empty(self, seconds=15):
        """No process of the training user is left after at most SECONDS."""
        deadline = time.monotonic() + seconds
        while any(self.on(host, "pgrep -u trainer -c . || true").strip() != "0" for host in self.hosts):
            assert time.monotonic() < deadline, {
                host: self.on(host, "ps -u trainer -o pid,args || true") for host in self.hosts
            }
            time.sleep(1)
