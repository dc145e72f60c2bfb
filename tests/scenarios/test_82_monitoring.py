# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real Prometheus, Alertmanager and exporters on two hosts: a fault of the simulated NVML fires the right alert, and ends with it.

The first host is node and controller in one; the outsider is the machine that the hosts run on. For dcgm-exporter see
test_84_dcgm.py.
"""

import json
import socket
import subprocess
import time
from functools import partial

import pytest
from cluster import KEEP, Cluster

pytestmark = pytest.mark.lab

PLAYBOOK = "tests/scenarios/monitoring.yml"
PASSWORD = "correct horse battery"
INTERVAL = 10
# The driver's packages are not what is tested: a library of this name is what they would bring. A sandbox of systemd has a /proc of its
# own, without what the lab puts there, so the health check does not see the module.
DRIVER = "touch /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.15; sh /srv/machine/files/lab-machine load"
OFF = {
    "gpu_stack_request": {"pytorch": "2.13.0", "pytorch_index": "cpu"}, "nvidia_driver_without_gpu": False,
}  # fmt: skip
ON = {
    **OFF,
    "firewall_state": "present",
    "health_state": "present",
    "health_skip_checks": ["module_loaded"],
    "monitoring_state": "present",
    "monitoring_password": PASSWORD,
    "monitoring_scrape_interval": f"{INTERVAL}s",
    "monitoring_dcgm_exporter": False,
}
PORTS = (9090, 9093, 9100)
STATE = (
    "find /etc /opt/allreduce /var/lib/allreduce -xdev -not -path '/etc/ssh/*' -not -path '*/__pycache__*'"
    " -printf '%p %y %m %u:%g %l\\n' 2>/dev/null | LC_ALL=C sort; systemctl list-unit-files --state=enabled --no-legend"
)
OURS = "'(' -path '*/allreduce/monitoring*' -o -path '*.service.d/allreduce.conf' ')'"
TLS = {f"monitoring_tls_{name}": f"/etc/ssl/lab/{name}.pem" for name in ("certificate", "key", "authority")}
# The status of an answer, and its text after it; 0 when the host's certificate is not trusted.
ASK = """
import base64, ssl, sys, urllib.error, urllib.request
url, password, authority = sys.argv[1:]
context = ssl.create_default_context(cafile=authority or None) if url.startswith("https") else None
request = urllib.request.Request(url)
if password:
    request.add_header("Authorization", "Basic " + base64.b64encode(b"allreduce:" + password.encode()).decode())
try:
    with urllib.request.urlopen(request, timeout=10, context=context) as answer:
        print(answer.status, answer.read().decode())
except urllib.error.HTTPError as error:
    print(error.code, "")
except urllib.error.URLError as error:
    if not isinstance(error.reason, ssl.SSLCertVerificationError):
        raise
    print(0, "")
"""
# An authority, and a certificate for the address of each host: name and address are the arguments.
AUTHORITY = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj '/CN=lab authority' -keyout authority.key -out authority.pem"
CERTIFICATE = (
    "openssl req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr && "
    "echo subjectAltName=IP:{address} > {name}.ext && "
    "openssl x509 -req -in {name}.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 2 -extfile {name}.ext -out {name}.pem"
)


class Watched:
    """Two nodes, of which the first watches both."""

    def __init__(self):
        self.cluster = Cluster("monitoring", 2, "--machine", "a100-nvlink", "--wheels", "uv")
        self.nodes = self.cluster.hosts
        self.authority = ""  # once it is set, answers are encrypted
        self.address = {node: self.on(node, "hostname -I").split()[0] for node in self.nodes}
        self.inventory = self.group(self.nodes)
        for node in self.nodes:
            self.on(node, f"{DRIVER}; cat > /root/ask.py <<'END'\n{ASK}END")
            self.repair(node)

    def on(self, node, command, check=True):
        return self.cluster.on(node, command, check)

    def group(self, nodes, controller=None):
        """An inventory in which these are the GPU nodes; the first host is the controller unless another is named."""
        controller = controller or self.nodes[0]

        def change(content):
            hosts, access = content["gpu_nodes"]["hosts"], content["gpu_nodes"]["vars"]
            content["gpu_nodes"]["hosts"] = {name: hosts[name] for name in nodes}
            content["controllers"] = {"hosts": {controller: hosts[controller]}, "vars": access}

        place = self.cluster.inventory.with_name("-".join(("monitoring", *nodes, "by", controller)))
        return self.cluster.edit_inventory(place, change)

    def play(self, variables, *options, inventory=None, playbook=PLAYBOOK):
        run = self.cluster.play(playbook, "-e", json.dumps(variables), *options, inventory=inventory or self.inventory)
        assert run.status == 0, run.output[-6000:]
        return {node: run.recap[node]["changed"] for node in self.nodes if node in run.recap}, run

    def ask(self, start, target, port, path="/metrics", password=PASSWORD, authority=None):
        """The status and the text of an answer to a host."""
        trusted = self.authority if authority is None else authority
        url = f"{'https' if self.authority else 'http'}://{self.address[target]}:{port}{path}"
        status, _space, text = self.on(start, f"python3 /root/ask.py '{url}' '{password}' '{trusted}'").partition(" ")
        return int(status), text

    def query(self, words, controller=None):
        """{node: value} of an expression."""
        first = controller or self.nodes[0]
        _status, text = self.ask(first, first, 9090, f"/api/v1/query?query={words}")
        return {one["metric"].get("node"): one["value"][1] for one in json.loads(text)["data"]["result"]}

    def alerts(self, node):
        """{name: severity} of what fires for a node, as Alertmanager has it."""
        first = self.nodes[0]
        _status, text = self.ask(first, first, 9093, "/api/v2/alerts?active=true")
        found = (one["labels"] for one in json.loads(text))
        return {one["alertname"]: one["severity"] for one in found if one.get("node") == node}

    def say(self, node, *lines):
        """Let the node's NVML answer otherwise, and judge its health at once, as the timer would within a minute."""
        healthy = "".join(f"{gpu} persistence_mode 1\\n" for gpu in range(4))
        self.on(
            node,
            f"printf '{healthy}{''.join(line + chr(92) + 'n' for line in lines)}' > /etc/simulated-nvml/profile.state",
        )
        self.on(node, "systemctl start allreduce-health 2>/dev/null || true")

    def repair(self, node):
        self.say(node)

    def certify(self, place):
        """Give each host a certificate of one authority, in files that group prometheus can read."""
        run = partial(subprocess.run, shell=True, cwd=place, check=True, capture_output=True)
        run(AUTHORITY)
        for name in self.nodes:
            run(CERTIFICATE.format(name=name, address=self.address[name]))
            self.on(name, "install -d /etc/ssl/lab")
            files = {"certificate": f"{name}.pem", "key": f"{name}.key", "authority": "authority.pem"}
            for kind, file in files.items():
                content = (place / file).read_text(encoding="ascii")
                target = f"/etc/ssl/lab/{kind}.pem"
                self.on(name, f"umask 027; printf %s '{content}' > {target}; chgrp prometheus {target}")

    def seconds_until(self, node, expected, limit):
        """How long until Alertmanager has exactly these alerts of a node."""
        began = time.monotonic()
        while (found := self.alerts(node)) != expected:
            assert time.monotonic() - began < limit, f"{found} instead of {expected} after {limit} s"
            time.sleep(0.5)
        return time.monotonic() - began


@pytest.fixture(scope="module")
def watched():
    made = Watched()
    yield made
    if not KEEP:
        made.cluster.down()


def test_10_off_it_changes_nothing(watched):
    watched.play(OFF)  # what the scenario itself brings
    before = {node: watched.on(node, STATE) for node in watched.nodes}
    changes, _run = watched.play(OFF)
    assert set(changes.values()) == {0}
    assert {node: watched.on(node, STATE) for node in watched.nodes} == before


def test_20_check_mode_predicts_and_shows_no_secret(watched):
    before = {node: watched.on(node, STATE) for node in watched.nodes}
    changes, run = watched.play({**ON, "firewall_state": "absent"}, "--check", "--diff")
    assert all(changes.values()) and "alert: GpuXidFatal" in run.output
    assert PASSWORD not in run.output and "$2b$" not in run.output
    assert {node: watched.on(node, STATE) for node in watched.nodes} == before


def test_30_it_watches_both_and_a_second_run_changes_nothing(watched):
    changes, run = watched.play(ON)
    assert all(changes.values()) and PASSWORD not in run.output
    again, run = watched.play(ON)
    assert set(again.values()) == {0}, run.output[-6000:]
    # Prometheus' package recommends an exporter, which would be open to everybody.
    installed = watched.on(
        watched.nodes[1], "dpkg-query -W -f '${db:Status-Status} ${Package}\n' 'prometheus*' smartmontools", check=False
    )
    assert [line.split()[1] for line in installed.splitlines() if line.startswith("installed")] == [
        "prometheus-node-exporter"
    ]
    for node in watched.nodes:
        watched.repair(node)
    time.sleep(3 * INTERVAL)
    assert watched.query("up{job='node'}".replace("'", "%22")) == dict.fromkeys(watched.nodes, "1")
    verdicts = watched.query("allreduce_health_verdict{verdict='ok'}".replace("'", "%22"))
    assert verdicts == dict.fromkeys(watched.nodes, "1")
    assert {node: watched.alerts(node) for node in watched.nodes} == {node: {} for node in watched.nodes}


def test_40_an_outsider_gets_nowhere_and_a_peer_needs_the_password(watched):
    first, second = watched.nodes
    for node, ports in ((first, PORTS), (second, PORTS[2:])):
        for port in ports:
            with pytest.raises(OSError, match="refused|timed out"):
                socket.create_connection((watched.address[node], port), timeout=3)
    for port in PORTS:
        answers = [watched.ask(second, first, port, password=word)[0] for word in ("", "wrong", PASSWORD)]
        assert answers == [401, 401, 200], port
    listening = {line.split()[3] for line in watched.on(first, "ss -Hltn").splitlines()}
    assert {one for one in listening if not one.endswith(":22")} == {
        f"{watched.address[first]}:{port}" for port in PORTS
    }
    closed = watched.on(
        first, "stat -c '%a %U:%G' /etc/allreduce/monitoring/password /etc/allreduce/monitoring/web.yml"
    )
    assert closed.split("\n")[:2] == ["640 root:prometheus"] * 2
    assert PASSWORD not in watched.on(first, "ps -eo args; journalctl --no-pager", check=False)


FAULTS = {
    "uncorrected errors": (
        ["2 ecc_errors.1.0 3"], {"GpuEccUncorrectable": "critical", "GpuHealthFailed": "critical"},
    ),
    "a GPU that is lost": (
        ["1 failing 15 0"], {"GpuCountBelowPlan": "critical", "GpuHealthFailed": "critical"},
    ),
    "a row that could not be remapped": (
        ["3 remapped_rows 0 1 0 1"], {"GpuRowRemapFailed": "critical", "GpuHealthFailed": "critical"},
    ),
    "a row that waits for a reset": (["3 remapped_rows 0 1 1 0"], {"GpuRowRemapPending": "warning"}),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_50_a_fault_fires_within_two_scrapes_and_ends_with_its_repair(watched, name):
    lines, expected = FAULTS[name]
    first, second = watched.nodes
    watched.say(second, *lines)
    # A scrape, an evaluation, and what it takes to look.
    assert watched.seconds_until(second, expected, 2 * INTERVAL + 2) < 2 * INTERVAL + 2
    assert watched.alerts(first) == {}
    watched.repair(second)
    assert watched.seconds_until(second, {}, 2 * INTERVAL + 2) < 2 * INTERVAL + 2


def checks(watched, place):
    """{name: status} of verify's checks about the monitoring, on the second node."""
    more = {"report_directory": str(place), "verify_collectives": False, "verify_peers": []}
    options = ("-e", json.dumps({**ON, **more}))
    run = watched.cluster.play("playbooks/verify.yml", *options, inventory=watched.inventory)
    assert (place / "verify.json").exists(), run.output[-6000:]
    document = json.loads((place / "verify.json").read_text(encoding="utf-8"))
    found = document["nodes"][watched.nodes[1]]["checks"]
    return {one["name"]: one["status"] for one in found if one["name"].startswith("monitoring_")}


def test_60_verify_tells_what_was_changed_by_hand(watched, tmp_path):
    second = watched.nodes[1]
    assert checks(watched, tmp_path) == {"monitoring_files": "passed", "monitoring_service": "passed"}
    watched.on(second, "systemctl stop prometheus-node-exporter; echo >> /etc/allreduce/monitoring/web.yml")
    assert checks(watched, tmp_path) == {"monitoring_files": "failed", "monitoring_service": "failed"}
    changes, _run = watched.play(ON)
    assert changes[second]
    assert checks(watched, tmp_path) == {"monitoring_files": "passed", "monitoring_service": "passed"}


def test_70_a_node_that_left_is_watched_no_more(watched):
    first, second = watched.nodes
    watched.play(ON, inventory=watched.group([first]))
    time.sleep(3 * INTERVAL)
    assert set(watched.query("up{job='node'}".replace("'", "%22"))) == {first}
    watched.play(ON)
    time.sleep(3 * INTERVAL)
    assert set(watched.query("up{job='node'}".replace("'", "%22"))) == {first, second}


def test_75_encrypted_it_answers_and_warns_as_before(watched, tmp_path):
    first, second = watched.nodes
    watched.certify(tmp_path)
    changes, _run = watched.play({**ON, **TLS})
    assert all(changes.values())
    again, run = watched.play({**ON, **TLS})
    assert set(again.values()) == {0}, run.output[-6000:]
    assert watched.ask(second, first, 9090)[0] == 400, "unencrypted"
    watched.authority = TLS["monitoring_tls_authority"]
    for port in PORTS:
        assert watched.ask(second, first, port, authority="")[0] == 0, "by an authority that nobody trusts"
        answers = [watched.ask(second, first, port, password=word)[0] for word in ("", "wrong", PASSWORD)]
        assert answers == [401, 401, 200], port
    time.sleep(3 * INTERVAL)
    assert watched.query("up{job='node'}".replace("'", "%22")) == dict.fromkeys(watched.nodes, "1")
    lines, expected = FAULTS["a row that waits for a reset"]
    watched.say(second, *lines)
    watched.seconds_until(second, expected, 2 * INTERVAL + 2)
    watched.repair(second)
    watched.seconds_until(second, {}, 2 * INTERVAL + 2)
    watched.authority = ""
    watched.play(ON)
    time.sleep(3 * INTERVAL)
    assert watched.query("up{job='node'}".replace("'", "%22")) == dict.fromkeys(watched.nodes, "1")


def test_80_removed_nothing_of_it_is_left(watched):
    watched.play(OFF)
    for node in watched.nodes:
        left = watched.on(node, f"find /etc /var/lib/allreduce -type f {OURS}")
        assert left.split() == []
        active = watched.on(
            node, "systemctl is-active prometheus prometheus-alertmanager prometheus-node-exporter", check=False
        )
        assert "active" not in active.replace("inactive", "").split()
        assert all(f":{port}" not in watched.on(node, "ss -Hltn") for port in PORTS)
    changes, _run = watched.play(OFF)
    assert set(changes.values()) == {0}


def test_90_a_host_that_only_watches_has_no_plan_and_is_taken_back_with_the_nodes(watched):
    first, second = watched.nodes
    apart = watched.group([first], second)
    changes, _run = watched.play(ON, inventory=apart)
    assert all(changes[node] for node in watched.nodes)
    time.sleep(3 * INTERVAL)
    assert watched.query("up{job='node'}".replace("'", "%22"), second) == {first: "1"}
    again, run = watched.play(ON, inventory=apart)
    assert set(again.values()) == {0}, run.output[-6000:]
    watched.play(OFF, inventory=apart)
    for node in watched.nodes:
        assert watched.on(node, f"find /etc /var/lib/allreduce -type f {OURS}") == ""
    assert ":9090" not in watched.on(second, "ss -Hltn")
    changes, _run = watched.play(OFF, inventory=apart)
    assert set(changes.values()) == {0}
