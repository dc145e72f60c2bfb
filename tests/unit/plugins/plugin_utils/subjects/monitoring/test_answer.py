# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From variables and facts to files and services; Prometheus' own programs take what is written."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import bcrypt
import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.door import told
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.answer import (
    SUBJECT,
    files,
    is_recorded,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.configuration import DIRECTORY, secrets
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.content import removed
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.password import password_hash
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.programs import known_services
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.request import READS_OF_OTHERS

from tests.support.prometheus import program, promtool
from tests.support.subjects import compare_node
from tests.support.subjects import monitored as answer

sys.path.insert(0, str(Path(__file__).parent))

from watched import (  # noqa: E402 (beside this file)
    DEBIAN,
    GROUPS,
    NVIDIA,
    PACKAGES,
    PASSWORD,
    REPOSITORY,
    ask,
    facts,
    free_port,
    inventory,
    place,
    written,
)  # fmt: skip


def test_programs_of_each_group():
    both = {**GROUPS, "controllers": ["gpu-1"]}
    services = [
        [one["name"] for one in answer(name, inventory(), groups, facts())["services"]]
        for name, groups in (("ctl", GROUPS), ("gpu-1", GROUPS), ("gpu-1", both))
    ]
    first = ["prometheus", "prometheus-alertmanager"]
    assert services == [first, ["prometheus-node-exporter"], [*first, "prometheus-node-exporter"]]


def test_nvidia_s_exporter_comes_with_nvidia_s_repository():
    hostvars = inventory()
    hostvars["gpu-1"]["ansible_facts"] = {"gpu_stack": NVIDIA}
    found = answer("gpu-1", hostvars, GROUPS, facts(NVIDIA))
    assert "datacenter-gpu-manager-exporter" in found["packages"]
    assert json.loads(written("ctl", hostvars)[f"{DIRECTORY}/targets/dcgm.json"]["content"]) == [
        {"targets": ["10.0.0.1:9400"], "labels": {"node": "gpu-1"}}
    ]
    csv = written("gpu-1", hostvars, stack=NVIDIA)[f"{DIRECTORY}/dcgm-counters.csv"]["content"]
    rows = [line.split(", ") for line in csv.splitlines()[1:]]
    assert all(len(row) == 3 and row[1] in ("gauge", "counter") for row in rows)
    # What NVIDIA's own file leaves out, and alerts are about.
    wanted = {"ECC_DBE_VOL_TOTAL", "ROW_REMAP_PENDING", "ROW_REMAP_FAILURE", "SLOWDOWN_TEMP"}
    assert {f"DCGM_FI_DEV_{name}" for name in wanted} <= {row[0] for row in rows}
    off = inventory(monitoring_dcgm_exporter="no")
    assert answer("gpu-1", off, GROUPS, facts(NVIDIA))["packages"] == ["prometheus-node-exporter"]


@pytest.mark.parametrize(
    ("system", "has"),
    [
        (("debian", "12", "debian"), True),
        (("ubuntu", "24.04", "debian"), True),
        (("rocky", "8.10", "el"), True),
        (("debian", "13", "debian"), False),
        (("ubuntu", "26.04", "debian"), False),
    ],
)
def test_nvidia_s_exporter_only_where_nvidia_has_it(system, has):
    """Without a word of the user it is left out; who asks for it is refused in one sentence, and nothing is written."""
    stack = {**NVIDIA, "os": dict(zip(("id", "version", "family"), system, strict=True))}
    quiet, asked = (
        inventory(monitoring_repository=REPOSITORY, **more) for more in ({}, {"monitoring_dcgm_exporter": True})
    )
    found = [answer("gpu-1", hostvars, GROUPS, facts(stack)) for hostvars in (quiet, asked)]
    assert ("datacenter-gpu-manager-exporter" in found[0]["packages"]) is has
    if has:
        assert found[0] == found[1]
    else:
        (sentence,) = found[1]["problems"]
        assert "There is no dcgm-exporter for gpu-1 (NVIDIA's repository has none for" in sentence
        assert files("gpu-1", asked, GROUPS, facts(stack))["files"] == []


def test_nvidia_s_exporter_needs_nvidia_s_repository_in_the_plan():
    asked = inventory(monitoring_dcgm_exporter="yes")
    (sentence,) = answer("gpu-1", asked, GROUPS, facts({**NVIDIA, "repository": None}))["problems"]
    assert "its plan has no NVIDIA repository); set monitoring_dcgm_exporter: false there" in sentence
    for name, stack in (("gpu-1", DEBIAN), ("ctl", {**NVIDIA, "repository": None})):  # no GPU; no node
        assert answer(name, asked, GROUPS, facts(stack))["problems"] == []


@pytest.mark.parametrize(("version", "has"), [("3.3.9", False), ("4.6.1", True)])
def test_nvidia_s_exporter_takes_dcgm_4(version, has):
    stack = {**NVIDIA, "dcgm": {"version": version}}
    assert ("datacenter-gpu-manager-exporter" in answer("gpu-1", inventory(), GROUPS, facts(stack))["packages"]) is has
    found = answer("gpu-1", inventory(monitoring_dcgm_exporter=True), GROUPS, facts(stack))["problems"]
    assert [("the plan has DCGM 3.3.9" in one) for one in found] == ([] if has else [True])


@pytest.mark.parametrize(
    ("key", "value"),
    [("url", "repo.example.org"), ("key", "key.asc"), ("fingerprint", "ABCD"), ("fingerprint", 41 * "A")],
)
def test_a_declared_repository_that_cannot_be_one(key, value):
    declared = inventory(monitoring_repository={**REPOSITORY, key: value})
    (sentence,) = answer("gpu-1", declared, GROUPS, facts())["problems"]
    assert sentence.startswith(f"monitoring_repository.{key} is {value!r}; use a form such as ")


def test_targets_are_the_inventory_s_hosts():
    path = f"{DIRECTORY}/targets/node.json"
    everyone = json.loads(written("ctl")[path]["content"])
    assert [one["targets"] for one in everyone] == [["10.0.0.1:9100"], ["10.0.0.2:9100"]]
    left = written("ctl", groups={**GROUPS, "gpu_nodes": ["gpu-2"]})[path]["content"]
    assert [one["labels"]["node"] for one in json.loads(left)] == ["gpu-2"]
    alone = inventory()
    alone["gpu-2"]["monitoring_state"] = "absent"
    assert "gpu-2" not in written("ctl", alone)[path]["content"]
    assert json.loads(written("ctl")[f"{DIRECTORY}/targets/prometheus.json"]["content"])[0]["targets"] == [
        "[fd00::9]:9090"
    ]


def test_a_host_whose_address_nobody_knows_is_not_forgotten():
    hostvars = inventory()
    hostvars["gpu-2"].pop("gpu_cluster_address")
    assert answer("gpu-1", hostvars, GROUPS, facts())["problems"] == []
    (said,) = answer("ctl", hostvars, GROUPS, facts())["problems"]
    assert (
        said.startswith("The address of gpu-2 is not known") and files("ctl", hostvars, GROUPS, facts())["files"] == []
    )


@pytest.mark.parametrize(
    ("gpu_node", "shaped", "more"),
    [
        ({}, False, set()),
        ({"gpus": [{"numa_node": 0}, {"numa_node": 1}], "nics": [{"numa_node": 0}]}, True, {"meminfo_numa", "infiniband", "qdisc"}),
        ({"gpus": [{"numa_node": 0}, {"numa_node": None}], "nics": []}, False, set()),
    ],
)  # fmt: skip
def test_collectors_for_the_hardware(gpu_node, shaped, more):
    hostvars = inventory(**({"qos_state": "present"} if shaped else {}))
    (unit, *_rest) = answer("gpu-1", hostvars, GROUPS, {**facts(), "gpu_node": gpu_node})["units"]
    given = {word.removeprefix("--collector.") for word in unit["content"].split() if word.startswith("--collector.")}
    assert {"textfile", "disable-defaults"} <= given
    assert given & {"meminfo_numa", "infiniband", "qdisc"} == more
    known = subprocess.run([program("prometheus-node-exporter"), "--help"], capture_output=True, text=True, check=False)
    unknown = [one for one in given if f"--collector.{one.partition('=')[0]}" not in known.stderr + known.stdout]
    assert not unknown


def test_older_systems_have_other_names():
    ubuntu = {**DEBIAN, "os": {"id": "ubuntu", "version": "22.04", "family": "debian"}}
    assert "--web.config=/etc" in written("gpu-1", stack=ubuntu)[UNIT]["content"]
    rocky = {**DEBIAN, "os": {"id": "rocky", "version": "9", "family": "el"}}
    declared = inventory(monitoring_repository=REPOSITORY)
    found = answer("gpu-1", declared, GROUPS, facts(rocky))
    assert found["packages"] == ["node_exporter"] and "gpgcheck=1" in found["repository"]["content"]
    # dnf would import whatever the address has then.
    assert f"gpgkey=file://{found['repository']['key_file']}\n" in found["repository"]["content"]
    assert REPOSITORY["key"] not in found["repository"]["content"]
    assert found["repository"]["fingerprint"] == "".join(REPOSITORY["fingerprint"].split()).upper()
    assert found["repository"]["key_file"] in {one["path"] for one in removed(facts(rocky))["files"]}
    # A host that only watches has no plan: Ansible's own facts tell.
    plain = {"os_family": "Debian", "distribution": "Debian", "distribution_version": "12.9", "gpu_node_state": {}}
    assert answer("ctl", inventory(), GROUPS, plain)["packages"] == ["prometheus", "prometheus-alertmanager"]


UNIT = "/etc/systemd/system/prometheus-node-exporter.service.d/allreduce.conf"


def test_secrets_are_for_the_services_alone():
    found = written(
        "ctl",
        inventory(
            monitoring_alertmanager={"receivers": [{"name": "x", "slack_configs": [{"api_url": "https://a/b"}]}]}
        ),
    )
    bare = [
        path for path, one in found.items() if PASSWORD in one.get("content", "") or "$2b$" in one.get("content", "")
    ]
    assert sorted(bare) == [f"{DIRECTORY}/password", f"{DIRECTORY}/web.yml"]
    closed = {path for path, one in found.items() if one.get("mode") == "0640"}
    assert closed == {*bare, f"{DIRECTORY}/alertmanager.yml"}
    assert {one["group"] for one in found.values() if one.get("mode") == "0640"} == {"prometheus"}
    fresh = files("ctl", inventory(), GROUPS, facts(packages={}))["files"]
    assert {one["group"] for one in fresh if one.get("mode") == "0640"} == {"root"}  # no package has made the group yet
    receivers = [
        {"name": "x", "slack_configs": [{"api_url": "https://a/b"}]},
        {"webhook_configs": [{"url": "https://c"}]},
    ]
    mail = {"global": {"smtp_auth_password": "pw", "smtp_from": "me"}, "receivers": receivers}
    assert secrets(mail) == ["pw", "https://a/b", "https://c"]
    hidden = files("ctl", inventory(monitoring_alertmanager=mail), GROUPS, facts())["secrets"]
    assert {PASSWORD, "pw", "https://a/b"} <= set(hidden)


def test_the_hash_is_one_of_bcrypt_and_the_same_each_time():
    hashed = password_hash(PASSWORD, "gpu-1")
    assert bcrypt.checkpw(PASSWORD.encode(), hashed.encode()) and not bcrypt.checkpw(b"another one", hashed.encode())
    assert hashed == password_hash(PASSWORD, "gpu-1") != password_hash(PASSWORD, "gpu-2")


def test_promtool_and_amtool_take_the_configuration(tmp_path):
    directory = place(written("ctl"), tmp_path)
    status, said = promtool("check", "config", f"{directory}/prometheus.yml")
    assert status == 0 and "1 rule files found" in said, said
    assert promtool("check", "web-config", f"{directory}/web.yml")[0] == 0
    done = subprocess.run(
        [program("amtool"), "check-config", f"{directory}/alertmanager.yml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "2 inhibit rules" in done.stdout, done.stdout + done.stderr


def test_certificates(tmp_path):
    paths = {f"monitoring_tls_{name}": f"{tmp_path}/{name}" for name in ("certificate", "key", "authority")}
    for path in paths.values():
        with open(path, "w", encoding="utf-8") as stream:
            stream.write("")
    found = written("ctl", inventory(**paths))
    job = yaml.safe_load(found[f"{DIRECTORY}/prometheus.yml"]["content"])["scrape_configs"][0]
    assert job["scheme"] == "https" and job["tls_config"] == {"ca_file": f"{tmp_path}/authority"}
    web = yaml.safe_load(found[f"{DIRECTORY}/web.yml"]["content"])
    assert web["tls_server_config"]["key_file"] == f"{tmp_path}/key" and web["basic_auth_users"]


def test_with_certificates_the_units_change_so_that_the_services_restart():
    paths = {f"monitoring_tls_{name}": f"/etc/ssl/{name}" for name in ("certificate", "key", "authority")}
    plain, encrypted = written("ctl"), written("ctl", inventory(**paths))
    units = [path for path in plain if path.endswith(".service.d/allreduce.conf")]
    assert units and all(plain[path]["content"] != encrypted[path]["content"] for path in units)


def test_the_real_exporter_asks_for_the_password(tmp_path):
    found = written("gpu-1", inventory(monitoring_textfile_directory=str(tmp_path)))
    place(found, tmp_path)
    port = free_port()
    line = next(line for line in found[UNIT]["content"].splitlines() if line.startswith("ExecStart=/"))
    words = line.replace(DIRECTORY, f"{tmp_path}{DIRECTORY}").replace("10.0.0.1:9100", f"127.0.0.1:{port}").split()[1:]
    log = tmp_path / "log"  # a pipe could not be read while the program runs
    with (
        log.open("w", encoding="utf-8") as stream,
        subprocess.Popen([program("prometheus-node-exporter"), *words], stderr=stream) as process,
    ):
        try:
            url, deadline = f"http://127.0.0.1:{port}/metrics", time.monotonic() + 60
            while True:
                try:
                    nobody = ask(url)
                    break
                except OSError:
                    assert time.monotonic() < deadline and process.poll() is None, log.read_text("utf-8")[-2000:]
                    time.sleep(0.2)
            assert (nobody, ask(url, "allreduce", "wrong"), ask(url, "allreduce", PASSWORD)) == (401, 401, 200)
        finally:
            process.terminate()


@pytest.mark.parametrize(
    ("known", "others", "expected"),
    [
        ({"gpu_node_state": {"records": ["monitoring"]}}, {}, True),
        ({"gpu_node_state": {}}, {"gpu_node_state": {"records": ["monitoring"]}}, False),
        ({}, {"gpu_node_state": {"records": ["monitoring"]}}, True),
        ({}, {}, False),
    ],
)
def test_what_may_have_to_go(known, others, expected):
    assert is_recorded("ctl", {"ctl": {}, "gpu-1": {"ansible_facts": others}}, known) is expected


# What gpu-2 has, so that what is written or taken back on the controller is something else without it.
OTHERS = [
    ({}, "gpu_cluster_address"),
    ({"gpu_cluster_address": "", "ansible_facts": {"default_ipv4": {"address": "10.0.0.7"}}}, "ansible_facts.default_ipv4.address"),
    ({"monitoring_state": "absent"}, "monitoring_state"),
    ({"monitoring_dcgm_exporter": False, "ansible_facts": {"gpu_stack": NVIDIA}}, "monitoring_dcgm_exporter"),
    *(({"ansible_facts": {"gpu_stack": NVIDIA}}, f"ansible_facts.gpu_stack.{name}") for name in ("gpus", "os", "repository")),
    ({"ansible_facts": {"gpu_stack": {**NVIDIA, "dcgm": {"version": "3.3.9"}}}}, "ansible_facts.gpu_stack.dcgm"),
    ({"ansible_facts": {"gpu_node_state": {"records": ["monitoring"]}}}, "ansible_facts.gpu_node_state.records"),
]  # fmt: skip


@pytest.mark.parametrize(("variables", "path"), OTHERS)
def test_what_is_read_of_other_hosts_is_what_the_controller_needs(variables, path):
    hostvars = inventory()
    hostvars["gpu-2"] |= variables

    def decided(known):
        return (
            answer("ctl", known, GROUPS, facts()),
            files("ctl", known, GROUPS, facts()),
            is_recorded("ctl", known, {}),
        )

    def without(paths):
        return decided({**told(hostvars, hostvars, paths).values, "ctl": hostvars["ctl"]})

    assert without(READS_OF_OTHERS) == decided(hostvars)
    assert without([one for one in READS_OF_OTHERS if one != path]) != decided(hostvars)


def test_each_of_them_has_a_case():
    assert {path for _variables, path in OTHERS} == set(READS_OF_OTHERS)


RUNS = {"prometheus-node-exporter": {"enabled": True, "active": True}}
STOPPED = {"prometheus-node-exporter": {"enabled": True, "active": False}}


@pytest.mark.parametrize(
    ("seen", "state", "statuses"),
    [
        ({"changed_paths": []}, {"services": RUNS}, [Status.AS_PLANNED, Status.AS_PLANNED]),
        ({"changed_paths": [UNIT]}, {"services": RUNS}, [Status.DIFFERS, Status.AS_PLANNED]),
        ({"changed_paths": []}, {"services": STOPPED}, [Status.AS_PLANNED, Status.DIFFERS]),
        ({"changed_paths": []}, {"services": {}}, [Status.AS_PLANNED, Status.UNKNOWN]),
        ({}, {"services": RUNS}, [Status.UNKNOWN]),
    ],
)
def test_what_verify_says(seen, state, statuses):
    hostvars = inventory(__verify_monitoring=seen)
    found = compare_node(SUBJECT, "gpu-1", hostvars, GROUPS, facts(records=["monitoring"], **state))
    assert [one.status for one in found] == statuses


def test_what_verify_says_where_it_is_off():
    off = inventory(monitoring_state="absent")
    assert compare_node(SUBJECT, "gpu-1", off, GROUPS, facts()) == []
    assert [one.status for one in compare_node(SUBJECT, "gpu-1", off, GROUPS, facts(records=["monitoring"]))] == [
        Status.UNWANTED
    ]


def test_a_grafana_that_is_there_gets_its_dashboards():
    wanted = inventory(monitoring_grafana=True)
    (said,) = answer("ctl", wanted, GROUPS, facts())["problems"]
    assert "ctl has no Grafana" in said
    assert answer("gpu-1", wanted, GROUPS, facts())["problems"] == []
    found = written("ctl", wanted, packages={**PACKAGES, "grafana": "11.0"})
    source = yaml.safe_load(found["/etc/grafana/provisioning/datasources/allreduce.yml"]["content"])["datasources"][0]
    assert source["url"] == "http://[fd00::9]:9090" and source["secureJsonData"] == {"basicAuthPassword": PASSWORD}
    (provider,) = yaml.safe_load(found["/etc/grafana/provisioning/dashboards/allreduce.yml"]["content"])["providers"]
    directory = provider["options"]["path"]
    assert sorted(path.rpartition("/")[2] for path in found if path.startswith(directory)) == [
        "cluster.json", "fabric.json", "gpu.json", "node.json", "training.json",
    ]  # fmt: skip
    assert found["/etc/grafana/provisioning/datasources/allreduce.yml"]["group"] == "grafana"


def test_a_service_is_told_of_what_it_reads_only_then():
    """By the module that writes it: a task of its own would be lost with the run, or with a service that does not start before it."""
    hostvars = inventory(monitoring_grafana=True)
    hostvars["gpu-1"]["ansible_facts"] = {"gpu_stack": NVIDIA}
    found = written("ctl", hostvars, packages={**PACKAGES, "grafana": "11.0"}) | written(
        "gpu-1", hostvars, stack=NVIDIA
    )
    assert {path: " ".join(one["then"]) for path, one in found.items() if "then" in one} == {
        f"{DIRECTORY}/rules/allreduce.yml": "systemctl try-reload-or-restart prometheus",
        f"{DIRECTORY}/prometheus.yml": "systemctl try-reload-or-restart prometheus",
        f"{DIRECTORY}/alertmanager.yml": "systemctl try-reload-or-restart prometheus-alertmanager",
        f"{DIRECTORY}/dcgm-counters.csv": "systemctl try-restart nvidia-dcgm-exporter",
        "/etc/grafana/provisioning/datasources/allreduce.yml": "systemctl try-restart grafana-server",
        "/etc/grafana/provisioning/dashboards/allreduce.yml": "systemctl try-restart grafana-server",
    }


def test_whatever_is_written_goes_again_and_nothing_else():
    gone = [one["path"] for one in removed(facts())["files"]]
    hosts = inventory(monitoring_grafana=True)
    grafana = {**PACKAGES, "grafana": "11.0"}
    ours = {**written("ctl", hosts, packages=grafana), **written("gpu-1", hosts, stack=NVIDIA)}
    assert set(ours) <= set(gone) and gone[-1] == "/var/lib/allreduce/monitoring.json"
    assert removed(facts(services=STOPPED))["services"] == ["prometheus-node-exporter"]


def test_systemd_forgets_a_drop_in_that_goes():
    """It would start the services of another owner with our command line, and not at all as our web.yml has gone."""
    files = removed(facts())["files"]
    units = [one for one in files if one["path"].startswith("/etc/systemd/system/")]
    assert len(units) == len(known_services()) and files[-1] not in units
    assert [one for one in files if one.get("then") == ["systemctl", "daemon-reload"]] == units
