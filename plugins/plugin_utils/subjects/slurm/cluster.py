# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of a cluster that the role installs: slurm.conf and what belongs to it, from the request and the model.

slurmctld sends all of it to the nodes (doc/html/configless_slurm.shtml).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ....module_utils.settings.slurm import OURS
from ....module_utils.settings.slurm_probe import ACCOUNTING_PORT
from . import health, limits, lines, switches, versions
from .model import SlurmModel
from .programs import CONTROLLER_PORT, NODE_PORT, SRUN_PORTS, Distribution
from .request import Request

DIRECTORY = "/etc/slurm"
# Its package's own directory goes with the package, and with it the queue.
STATE = "/var/spool/slurmctld"
SPOOL, LOGS = "/var/lib/slurm/slurmd", "/var/log/slurm"
DATABASE, USER = "slurm_acct_db", "slurm"
# Seconds: the default drains nodes whose processes end slowly, such as those that write a checkpoint.
UNKILLABLE = 180
# Seconds that a node has to come back after scontrol reboot, or it is down: Slurm's 60 are less than the memory test of a GPU server.
BOOT = 1800
HEAD = f"{OURS}; slurm_extra_lines adds to it.\n"
# What slurmctld and slurmd take over only as they start (slurm.conf(5), each key, and scontrol(1), reconfigure).
AT_START = (
    "AuthType", "ClusterName", "GresTypes", "JobAcctGatherType", "ProctrackType", "PrologFlags", "SelectType", "SelectTypeParameters",
    "SlurmctldHost", "SlurmctldParameters", "SlurmdParameters", "SlurmctldPort", "SlurmdPort", "StateSaveLocation", "SlurmdSpoolDir",
    "AccountingStorageEnforce", "AccountingStorageHost", "AccountingStorageType", "AccountingStorageTRES", "PriorityType", "TaskPlugin", "TopologyPlugin",
)  # fmt: skip


@dataclass(frozen=True)
class Cluster:
    """controller: its host name; address: where the nodes reach it; nodes: with their autodetect; firewalled: whether any host has rules;
    checked: whether any node's health is watched; switches: node -> its switch, empty without declarations; logins: address of each host
    that users log in to.
    """

    controller: str
    address: str
    version: str
    distribution: Distribution
    wanted: Request
    nodes: Mapping[str, tuple[SlurmModel, str]]
    firewalled: bool = False
    checked: bool = False
    switches: Mapping[str, str] = field(default_factory=dict)
    logins: Mapping[str, str] = field(default_factory=dict)


def contents(cluster: Cluster) -> dict[str, str]:
    """Return the texts of the files in the directory of slurm.conf, by their names; those that others name come first."""
    settings = _words(cluster)
    enforced = limits.COMMENT if "AccountingStorageEnforce" in settings else ""
    return {
        **lines.files(cluster.nodes.values()),
        "gres.conf": f"{HEAD}Include {lines.GRES}\n",
        **({switches.FILE: switches.content(cluster.switches)} if cluster.switches else {}),
        "cgroup.conf": HEAD + _text(_cgroups(cluster)),
        "slurm.conf": HEAD + enforced + _text(settings) + "\n".join([*cluster.wanted.extra, *_tail(cluster), ""]),
    }


def unwanted(cluster: Cluster) -> list[str]:
    """Return the names of files that go: the tree of switches, once no node declares one; a tree of the user's own stays."""
    keys = {one.partition("=")[0].lower() for one in cluster.wanted.extra}
    return [] if cluster.switches or "topologyplugin" in keys else [switches.FILE]


def at_start(cluster: Cluster, daemon: str) -> str:
    """Return a digest of what a daemon, slurmctld or slurmd, takes over only as it starts: with another one it has to be restarted."""
    if daemon == "slurmdbd":
        return _digest([accounting(cluster)])
    words = _words(cluster)
    told = [f"{name}={words[name]}" for name in AT_START if name in words]
    told += [*lines.files(cluster.nodes.values()).values(), _text(_cgroups(cluster))]
    told += [one for one in cluster.wanted.extra if one.partition("=")[0].lower() in map(str.lower, AT_START)]
    return _digest([daemon, *told])


def _digest(told: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


def _text(words: Mapping[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in words.items())


def _words(cluster: Cluster) -> dict[str, str]:
    wanted, pids = cluster.wanted, cluster.distribution.pids
    found = {
        "ClusterName": wanted.cluster,
        "SlurmctldHost": f"{cluster.controller}({cluster.address})",
        "SlurmctldPort": str(CONTROLLER_PORT),
        "SlurmdPort": str(NODE_PORT),
        "SlurmUser": USER,
        "AuthType": "auth/munge",
        "SlurmctldParameters": "enable_configless",
        "StateSaveLocation": STATE,
        "SlurmdSpoolDir": SPOOL,
        "SlurmctldLogFile": f"{LOGS}/slurmctld.log",
        "SlurmdLogFile": f"{LOGS}/slurmd.log",
        "SlurmctldPidFile": f"{pids['slurmctld']}/slurmctld.pid",
        "SlurmdPidFile": f"{pids['slurmd']}/slurmd.pid",
        **_confinement(wanted.cgroups),
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "DefMemPerCPU": str(memory_per_processor(model for model, _autodetect in cluster.nodes.values())),
        "GresTypes": "gpu",
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": cluster.address,
        "AccountingStoragePort": str(ACCOUNTING_PORT),
        "AccountingStorageTRES": "gres/gpu",
        # Locked memory is what RDMA needs, and who submits a job may have little of it.
        "PropagateResourceLimitsExcept": "MEMLOCK",
        # A node that boots without having been asked stays down until a person has looked at it.
        "ReturnToService": "1",
        "RebootProgram": "/sbin/reboot",
        "ResumeTimeout": str(BOOT),
        "UnkillableStepTimeout": str(UNKILLABLE),
        "PriorityType": "priority/multifactor",
        "PriorityWeightFairshare": "10000",
        "PriorityWeightAge": "1000",
    }
    found.update(limits.keys(wanted.qos, wanted.accounts))
    if cluster.switches:
        found["TopologyPlugin"] = switches.PLUGIN
    if wanted.numa_node_as_socket:
        found["SlurmdParameters"] = "numa_node_as_socket"
    if cluster.checked:
        found.update(health.KEYS)
    if cluster.firewalled:
        found["SrunPortRange"] = f"{SRUN_PORTS[0]}-{SRUN_PORTS[1]}"
    # What a user says of a key that is neither the nodes' nor the services' counts.
    said = {one.partition("=")[0].lower() for one in wanted.extra}
    return {key: value for key, value in found.items() if key.lower() not in said}


def _confinement(cgroups: bool) -> dict[str, str]:
    if cgroups:
        return {
            "ProctrackType": "proctrack/cgroup",
            "TaskPlugin": "task/cgroup,task/affinity",
            "JobAcctGatherType": "jobacct_gather/cgroup",
            "PrologFlags": "Contain",
        }
    return {
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/affinity",
        "JobAcctGatherType": "jobacct_gather/linux",
    }


def _cgroups(cluster: Cluster) -> dict[str, str]:
    """Return the text of cgroup.conf. A slurmd that cannot do without a plugin gets the one that is content with nothing mounted."""
    if cluster.wanted.cgroups:
        return {"ConstrainCores": "yes", "ConstrainDevices": "yes", "ConstrainRAMSpace": "yes"}
    return {"CgroupPlugin": "disabled" if versions.can(cluster.version, "no_cgroups") else "cgroup/v1"}


def memory_per_processor(nodes: Iterable[SlurmModel]) -> int:
    """Return MiB that a job gets for a processor unless it says otherwise: without that, one job takes all memory of a node."""
    return min((node.memory // node.processors for node in nodes), default=0)


def _tail(cluster: Cluster) -> Iterator[str]:
    """Yield the nodes, and one partition with all of them, in which a GPU weighs as much as its share of the processors."""
    yield f"Include {lines.NODES}"
    nodes = [model for model, _autodetect in cluster.nodes.values() if model.devices]
    weight = max((-(-node.processors // len(node.devices)) for node in nodes), default=0)
    weights = f" TRESBillingWeights=CPU=1.0,GRES/gpu={weight}.0" if weight else ""
    yield f"PartitionName={cluster.wanted.partition} Nodes=ALL Default=YES State=UP MaxTime=INFINITE{weights}"


def accounting(cluster: Cluster) -> str:
    """Return slurmdbd.conf. The database knows slurmdbd by the user that it runs as: there is no password (unix_socket)."""
    return HEAD + _text({
        "AuthType": "auth/munge",
        "DbdHost": cluster.controller,
        "DbdAddr": cluster.address,
        "DbdPort": str(ACCOUNTING_PORT),
        "SlurmUser": USER,
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "localhost",
        "StorageUser": USER,
        "StorageLoc": DATABASE,
        "LogFile": f"{LOGS}/slurmdbd.log",
        "PidFile": f"{cluster.distribution.pids['slurmdbd']}/slurmdbd.pid",
    })  # fmt: skip
