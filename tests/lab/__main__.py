# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line of the lab."""

import argparse
import fcntl
import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

from . import demo, hosts, leftovers, paths, podman, queued, reference, replicas, wheels
from .machines import guests, qemu
from .mirror import build, faults
from .progress import LabError, Working, say

TOOLS = ("podman", "runc", "mmdebstrap", "nsenter", "ip", "ssh-keygen")


def main(argv=None):
    """Run one command; exit status."""
    args = _parser().parse_args(argv)
    paths.find_own_programs()
    try:
        _check_machine()
        return args.run(args) or 0
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1


def _parser():
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description="Hosts on one machine, reached over SSH.")
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("up", help="bring hosts up and write their inventory")
    one.add_argument("--name", default="gpu", help="the lab; its hosts are NAME-1 … NAME-N")
    one.add_argument("--nodes", type=_positive, default=2)
    one.add_argument("--machine", help="simulated machine that new hosts are, e.g. a100-nvlink (default: none)")
    one.add_argument("--distribution", default=replicas.DEFAULT, help=f"one of {', '.join(replicas.names())}")
    one.add_argument("--mirror", action="store_true", help="NVIDIA's packages from the stub mirror on Debian, too")
    one.add_argument("--wheels", default=wheels.DEFAULT, help="what hosts install from, a name in tests/lab/wheels.yml")
    one.add_argument("--proxied", action="store_true", help="no way outside but a proxy that inspects")
    one.add_argument("--inventory", help="file to write (default .cache/lab/labs/NAME/hosts.yml)")
    one.set_defaults(run=_up)
    one = commands.add_parser("demo", help="bring hosts up and run plan, site, verify, train, report")
    one.add_argument("--nodes", type=_positive, default=2)
    one.set_defaults(run=_demo)
    one = commands.add_parser("reference", help="the same for a reference system, on replicas, and site once more")
    one.add_argument("system", help=f"one of {', '.join(reference.names())}")
    one.add_argument("--slurm", action="store_true", help="on Debian 12, with a controller, as jobs of Slurm's")
    one.add_argument("--down", action="store_true", help="remove the hosts afterwards")
    one.set_defaults(run=_reference)
    one = commands.add_parser("down", help="remove the hosts of one lab")
    one.add_argument("--name", default="gpu")
    one.set_defaults(run=_down)
    commands.add_parser("purge", help="remove everything but downloads").set_defaults(run=_purge)
    commands.add_parser("list", help="hosts and addresses").set_defaults(run=_list)
    one = commands.add_parser("exec", help="run a command in a host as root")
    one.add_argument("host")
    one.add_argument("command", nargs=argparse.REMAINDER)
    one.set_defaults(
        run=lambda a: hosts.execute(a.host, [word for i, word in enumerate(a.command) if i or word != "--"])
    )
    one = commands.add_parser("machine", help="machines with a kernel of their own: emulated, reached over SSH")
    one.add_argument("action", choices=["up", "down", "cut", "start", "list"], help="cut: as when the power fails")
    one.add_argument("name", nargs="?", default="machine", help="the lab (up, down) or the machine (cut, start)")
    one.add_argument("--nodes", type=_positive, default=1)
    one.add_argument(
        "--disk", type=int, action="append", default=[], metavar="MIB", help="an NVMe device of new machines"
    )
    one.add_argument("--inventory", type=Path, help="file to write (default .cache/lab/labs/NAME/hosts.yml)")
    one.add_argument("--memory", type=int, default=2048, metavar="MIB")
    one.add_argument("--secure-boot", action="store_true", help="new machines boot what is signed only")
    one.add_argument("--mirror", action="store_true", help="NVIDIA's packages from the stub mirror")
    one.set_defaults(run=_machine)
    one = commands.add_parser("wheels", help="collect wheels")
    one.add_argument("sets", nargs="+", help="names in tests/lab/wheels.yml")
    one.set_defaults(run=_wheels)
    one = commands.add_parser("mirror", help="build stub repositories, or make them misbehave for one lab")
    one.add_argument("repositories", nargs="*", help="what to build, e.g. ubuntu2204 jammy rhel8 el8")
    one.add_argument("--name", help="the lab whose hosts see the faults")
    one.add_argument(
        "--fault", action="append", default=[], help="NAME or NAME:PATTERN; none with --name: behave again"
    )
    one.set_defaults(run=_mirror)
    return parser


def _positive(text):
    if not text.isdigit() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError(f"{text!r} hosts: give a number from 1 to 64")
    return int(text)


def _check_machine():
    if os.geteuid() != 0:
        raise LabError("systemd containers with addresses of their own need root: run it with sudo")
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        raise LabError(f"{', '.join(missing)} not found: `make bootstrap` installs what the lab needs")


@contextmanager
def _alone():
    """Two `up`s at once would both build the image."""
    paths.CACHE.mkdir(exist_ok=True)
    with (
        open(paths.CACHE / "lab.lock", "w", encoding="utf-8") as lock,
        Working("waiting for another command of the lab") as working,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        working.shown("this command of the lab")
        leftovers.clear_when_orphaned()
        yield


def _up(args):
    with _alone():
        hosts.ensure_ssh_key()
        print(
            hosts.up(
                args.name,
                args.nodes,
                args.inventory,
                args.machine,
                args.distribution,
                args.mirror,
                wheel_set=args.wheels,
                proxied=args.proxied,
            )
        )


def _demo(args):
    with _alone():
        hosts.ensure_ssh_key()
        demo.up(args.nodes)
    demo.job(args.nodes).run()


def _reference(args):
    system = (queued if args.slurm else reference).get(args.system)
    with _alone():
        hosts.ensure_ssh_key()
        system.up()
    say(system.remark)
    try:
        system.job().run()
    finally:
        if args.down:
            with _alone():
                hosts.down(system.lab)


def _down(args):
    with _alone():
        podman.prepare()
        hosts.down(args.name)


def _machine(args):
    if args.action == "list":
        for one in qemu.machines():
            print(one.name, one.address, "on" if qemu.pid(one) else "off", one.directory / "console.log")
        return
    with _alone():
        podman.prepare()
        if args.action == "up":
            hosts.ensure_ssh_key()
            hardware = {"disks": tuple(args.disk), "memory": args.memory, "secure_boot": args.secure_boot}
            print(guests.up(args.name, args.nodes, args.inventory, use_mirror=args.mirror, **hardware))
        elif args.action == "down":
            guests.down(args.name)
        else:
            found = [one for one in qemu.machines() if one.name == args.name]
            if not found:
                raise LabError(
                    f"no machine is called {args.name!r}: `python -m tests.lab machine list` shows those that are there"
                )
            (qemu.cut_power if args.action == "cut" else guests.start)(found[0])


def _wheels(args):
    with _alone():
        for name in args.sets:
            wheels.ensure(name)


def _mirror(args):
    build.ensure(*args.repositories)
    if args.name:
        faults.set_faults(args.name, *args.fault)


def _purge(_args):
    with _alone():
        say("removing hosts, network, images, keys and reports (usually half a minute)")
        hosts.purge()


def _list(_args):
    podman.prepare()
    for host in podman.containers("allreduce.address"):
        print(f"{host['name']}\t{host['address']}")


if __name__ == "__main__":
    sys.exit(main())
