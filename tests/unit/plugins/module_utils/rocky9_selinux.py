# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a Rocky Linux 9 with SELinux, written by hand after public examples; no such machine was at hand.

The kernel's files as "The SELinux Notebook" has them (SELinuxProject/selinux-notebook, lsm_selinux.md), the booleans and their
defaults of fedora-selinux/selinux-policy (branch c9s), the records of a denial of execmem as Mark Montague published one
(gist.github.com/markmont/dcd20d632fa753438f6fc1b3bb3711ec), with the lines that auditd writes beside it.
"""

from binascii import hexlify

BOOT = 1763900000
TRAINER = 1001

CONFIG = """\
# This file controls the state of SELinux on the system.
# SELINUX= can take one of these three values:
#     enforcing - SELinux security policy is enforced.
#     permissive - SELinux prints warnings instead of enforcing.
#     disabled - No SELinux policy is loaded.
SELINUX={mode}
# SELINUXTYPE= can take one of these three values:
#     targeted - Targeted processes are protected,
#     minimum - Modification of targeted policy. Only selected processes are protected.
#     mls - Multi Level Security protection.
SELINUXTYPE=targeted
"""

SERVICE = "system_u:system_r:unconfined_service_t:s0"


def machine(enforce="1", configured="enforcing", booleans=(), log=None):
    """The files; booleans: names of those that are on; log: the text of the audit log, None without one."""
    names = ("deny_execmem", "deny_ptrace", "secure_mode", "secure_mode_insmod", "httpd_can_network_connect")
    files = {f"/sys/fs/selinux/booleans/{name}": "1 1" if name in booleans else "0 0" for name in names}
    files["/etc/selinux/config"] = CONFIG.format(mode=configured)
    files["/proc/stat"] = f"cpu  1 2 3\nbtime {BOOT}\nprocesses 9\n"
    for path, content in {"/sys/fs/selinux/enforce": enforce, "/var/log/audit/audit.log": log}.items():
        if content is not None:
            files[path] = content
    return files


def event(
    number, denial, time=BOOT + 60, uid=TRAINER, comm="python", exe="/usr/bin/python3.11", command=("python",), paths=()
):
    """The records of one denied system call; denial: from the brace on."""
    stamp = f"msg=audit({time}.234:{number})"
    title = hexlify("\0".join(command).encode()).decode().upper()
    lines = [
        f"type=AVC {stamp}: avc:  denied  {denial}",
        f"type=SYSCALL {stamp}: arch=c000003e syscall=9 success=no exit=-13 a0=0 a1=1000 a2=7 a3=22 items={len(paths)} ppid=1 pid=14572 "
        f'auid=4294967295 uid={uid} gid={uid} euid={uid} tty=(none) ses=4294967295 comm="{comm}" exe="{exe}" subj={SERVICE} key=(null)',
        *(
            f'type=PATH {stamp}: item={item} name="{path}" inode=7 dev=fd:00 mode=0100644 nametype=NORMAL'
            for item, path in enumerate(paths)
        ),
        f"type=PROCTITLE {stamp}: proctitle={title}",
    ]
    return "\n".join(lines) + "\n"


EXECMEM = (
    f'{{ execmem }} for  pid=14572 comm="python" scontext={SERVICE} tcontext={SERVICE} tclass=process permissive=0'
)
HTTPD = (
    '{ read } for  pid=700 comm="httpd" name="index.html" dev="dm-0" ino=45 scontext=system_u:system_r:httpd_t:s0 '
    "tcontext=unconfined_u:object_r:user_home_t:s0 tclass=file permissive=0"
)
