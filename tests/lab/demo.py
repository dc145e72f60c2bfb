# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The full run on hosts of the lab's own inventory."""

import shutil
from pathlib import Path

import yaml

from . import hosts, paths, wheels
from .job import Job, Step, steps

INVENTORY = paths.CHECKOUT / "inventories" / "lab"
MACHINE = "a100-nvlink"  # what its hosts are: 4 x A100 40 GB, simulated


def up(nodes: int) -> None:
    """Bring the hosts up, and Horovod's source to where they find it."""
    wheels.ensure("horovod")
    hosts.up("gpu", nodes, INVENTORY / "hosts.yml", MACHINE, pythons=False)


def job(nodes: int) -> Job:
    """Return the job that is done on them."""
    *most, report = steps(nodes, first="twelve minutes, as it builds the driver and Horovod,")
    options = ("-e", "train_launcher=horovodrun", "-e", "train_script=examples/train_horovod.py")
    where = "one host" if nodes == 1 else f"{nodes} hosts"
    return Job(
        INVENTORY,
        (*most, Step("train", f"with Horovod on {where}", options, usual="half a minute"), report),
        "make demo",
    )


def copy_settings(inventory: Path, horovod: bool = False) -> None:
    """Give other hosts the settings of the demo's; Horovod, whose compilation takes minutes, only where it is asked for."""
    shutil.copytree(INVENTORY / "group_vars", inventory / "group_vars", dirs_exist_ok=True)
    if horovod:
        return
    path = inventory / "group_vars" / "gpu_nodes.yml"
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    del settings["gpu_stack_request"]["horovod"]
    path.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
