# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys of a request: the constraints about every component, and how environments are shared."""

from __future__ import annotations

from .components import TOLD
from .keys import Key

ENVIRONMENTS = Key(
    name="environments",
    docs=("One environment for all frameworks, or one for each.",),
    sample="one",
    comment="split: one environment per framework",
    choices=("one", "split"),
)
NAME = Key(
    name="environment_name",
    docs=("Name of the one environment for all frameworks, a directory below C(/opt/allreduce/envs).",),
    sample="main",
    comment="the directory below /opt/allreduce/envs, such as dl_env",
    free=True,
)
# In the order they are documented: the host, frameworks, and what all of them share.
KEYS: dict[str, Key] = {
    key.name: key
    for place in ("host", "framework", "environment")
    for one in TOLD
    for key in one.keys
    if one.place == place and key.request
} | {one.name: one for one in (ENVIRONMENTS, NAME)}
# What is asked for in addition to a stack and no role installs in a version of the plan: where it comes from.
ELSEWHERE = {
    "aws_ofi_nccl": "the AWS OFI plugin of NCCL is released as source (aws/aws-ofi-nccl), to be compiled for the libfabric of the hosts",
}
