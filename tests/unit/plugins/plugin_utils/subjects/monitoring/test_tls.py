# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates: what is written with them, and that real exporter, Prometheus and Alertmanager of the distribution talk through them.

Not proven here: dcgm-exporter and Grafana, which no distribution has, and EL's packages.
"""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.answer import files
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.configuration import DIRECTORY
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.programs import PORTS

from tests.support.prometheus import program, promtool
from tests.support.subjects import monitored as answer

sys.path.insert(0, str(Path(__file__).parent))

from watched import GROUPS, PACKAGES, PASSWORD, ask, authorisation, facts, free_port, inventory, place, written  # noqa: E402 (beside this file)

WEB, SOURCE = f"{DIRECTORY}/web.yml", "/etc/grafana/provisioning/datasources/allreduce.yml"
PATHS = {f"monitoring_tls_{name}": f"/etc/ssl/{name}.pem" for name in ("certificate", "key", "authority")}
BOTH = {"gpu_nodes": ["gpu-1"], "controllers": ["gpu-1"]}
CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def openssl(place_, *arguments):
    subprocess.run(["openssl", *arguments], cwd=place_, check=True, capture_output=True)


@pytest.fixture
def certificates(tmp_path):
    """A certificate for 127.0.0.1 with its key, the authority that signed it, and another authority."""
    if not shutil.which("openssl"):
        pytest.skip("no openssl to make certificates with")
    for name in ("authority", "other"):
        openssl(
            tmp_path,
            "req",
            "-x509",
            *CURVE,
            "-keyout",
            f"{name}.key",
            "-out",
            f"{name}.pem",
            "-subj",
            f"/CN={name}",
            "-days",
            "2",
        )
    openssl(tmp_path, "req", *CURVE, "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=node")
    (tmp_path / "extension").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl(tmp_path, "x509", "-req", "-in", "request.pem", "-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial",
            "-out", "certificate.pem", "-days", "2", "-extfile", "extension")  # fmt: skip
    return tmp_path


def paths_in(directory, authority="authority"):
    return {
        "monitoring_tls_certificate": f"{directory}/certificate.pem",
        "monitoring_tls_key": f"{directory}/key.pem",
        "monitoring_tls_authority": f"{directory}/{authority}.pem",
    }


@pytest.mark.parametrize(("name", "certificates_", "proof"), [
    ("gpu-1", {}, None),
    ("ctl", {}, ["promtool", "check", "web-config", "%s"]),
    ("gpu-1", PATHS, ["runuser", "-u", "prometheus", "--", "test", "-r", "/etc/ssl/certificate.pem", "-a", "-r", "/etc/ssl/key.pem"]),
    ("ctl", PATHS, ["runuser", "-u", "prometheus", "--", "test", "-r", "/etc/ssl/certificate.pem", "-a", "-r", "/etc/ssl/key.pem"]),
])  # fmt: skip
def test_what_the_services_could_not_start_with_is_refused(name, certificates_, proof):
    assert written(name, inventory(**certificates_))[WEB].get("validate") == proof


def test_before_the_packages_have_made_the_user_nothing_is_asked_of_it():
    found = files("gpu-1", inventory(**PATHS), GROUPS, facts(packages={}))["files"]
    assert "validate" not in next(one for one in found if one["path"] == WEB)


def test_every_server_and_client_of_a_host_is_encrypted():
    found = written("ctl", inventory(**PATHS))
    web = yaml.safe_load(found[WEB]["content"])
    assert web["tls_server_config"] == {
        "cert_file": "/etc/ssl/certificate.pem", "key_file": "/etc/ssl/key.pem", "min_version": "TLS12",
    }  # fmt: skip
    prometheus = yaml.safe_load(found[f"{DIRECTORY}/prometheus.yml"]["content"])
    clients = [*prometheus["scrape_configs"], *prometheus["alerting"]["alertmanagers"]]
    assert len(clients) == len(PORTS) + 1
    for one in clients:
        assert (one["scheme"], one["tls_config"]) == ("https", {"ca_file": "/etc/ssl/authority.pem"})
        assert one["basic_auth"]["password_file"] == f"{DIRECTORY}/password"


@pytest.mark.parametrize("name", PATHS)
def test_a_path_that_is_not_whole_is_refused(name):
    said = answer("ctl", inventory(**{**PATHS, name: "ssl/a.pem"}), GROUPS, facts())["problems"]
    assert [text.partition(";")[0] for text in said] == [f"{name} is 'ssl/a.pem'"]


@pytest.mark.parametrize("password", [" correct horse battery", "correct horse battery "])
def test_a_password_with_space_at_an_end_is_refused(password):
    """Prometheus would send it without."""
    (said,) = answer("ctl", inventory(monitoring_password=password), GROUPS, facts())["problems"]
    assert "space at either end" in said and password not in said


@pytest.mark.parametrize(("variables", "secure", "asked"), [
    ({}, {"basicAuthPassword": PASSWORD}, None),
    ({"monitoring_password": "pa$$word $HOME"}, {"basicAuthPassword": "pa$$$$word $$HOME"}, None),
    (PATHS, {"basicAuthPassword": PASSWORD, "tlsCACert": "$__file{/etc/ssl/authority.pem}"}, True),
])  # fmt: skip
def test_grafana_has_the_authority_and_the_password_as_it_is(variables, secure, asked):
    hosts, packages = inventory(monitoring_grafana=True, **variables), {**PACKAGES, "grafana": "11.0"}
    (source,) = yaml.safe_load(written("ctl", hosts, packages=packages)[SOURCE]["content"])["datasources"]
    assert (source["secureJsonData"], source["jsonData"].get("tlsAuthWithCACert")) == (secure, asked)
    assert source["url"].startswith("https://" if asked else "http://")
    assert secure["basicAuthPassword"] in files("ctl", hosts, GROUPS, facts(packages=packages))["secrets"]


def test_promtool_takes_the_web_configuration(certificates):
    directory = place(written("ctl", inventory(**paths_in(certificates))), certificates / "root")
    status, said = promtool("check", "web-config", f"{directory}/web.yml")
    assert status == 0, said
    (certificates / "key.pem").unlink()
    assert promtool("check", "web-config", f"{directory}/web.yml")[0] != 0


# Debian's Alertmanager does not start without this file of its package, which is unpacked elsewhere.
TEMPLATE = Path("/usr/share/prometheus/alertmanager/default.tmpl")
RUNNING = ["node", "prometheus", *["alertmanager"] * TEMPLATE.exists()]


class Watched:
    """One host that is node and controller, with the distribution's programs, started as its drop-ins say."""

    def __init__(self, root, directory, authority):
        hosts = inventory(
            monitoring_scrape_interval="1s", monitoring_textfile_directory=str(root), **paths_in(directory, authority)
        )
        hosts["gpu-1"]["gpu_cluster_address"] = "127.0.0.1"
        self.root, self.ports = root, {part: free_port() for part in ("node", "prometheus", "alertmanager")}
        files_ = {
            path: {**one, "content": self.moved(one.get("content", ""))}
            for path, one in written("gpu-1", hosts, BOTH).items()
        }
        place(files_, root)
        units = [one["content"] for path, one in files_.items() if path.endswith(".service.d/allreduce.conf")]
        lines = [line for text in units for line in text.splitlines() if line.startswith("ExecStart=/")]
        self.commands = [
            line.removeprefix("ExecStart=").replace(DIRECTORY, f"{root}{DIRECTORY}").split() for line in lines
        ]
        self.context = ssl.create_default_context(cafile=directory / "authority.pem")

    def moved(self, text):
        for part, port in self.ports.items():
            text = text.replace(f"127.0.0.1:{PORTS[part]}", f"127.0.0.1:{port}")
        return text.replace("/var/lib/prometheus", f"{self.root}/data")

    def url(self, part, path):
        return f"https://127.0.0.1:{self.ports[part]}{path}"

    def start(self, stack):
        for command in self.commands:
            name = Path(command[0]).name
            if name == "prometheus-alertmanager" and not TEMPLATE.exists():
                continue
            log = stack.enter_context((self.root / f"{name}.log").open("w", encoding="utf-8"))
            words = [program(name), *command[1:]]
            process = stack.enter_context(subprocess.Popen(words, stderr=log, stdout=log, cwd=self.root))
            stack.callback(process.terminate)

    def told(self, path):
        """What Prometheus answers to whom knows the password; None where it does not answer yet."""
        request = urllib.request.Request(self.url("prometheus", path), headers=authorisation("allreduce", PASSWORD))
        try:
            with urllib.request.urlopen(request, timeout=10, context=self.context) as said:
                return json.load(said)["data"]
        except OSError:
            return None

    def targets(self):
        """{job: health}, and the errors; once each was asked."""
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            active = (self.told("/api/v1/targets") or {}).get("activeTargets", [])
            if len(active) == len(self.ports) and all(one["health"] != "unknown" for one in active):
                return {one["labels"]["job"]: one["health"] for one in active}, {one["lastError"] for one in active}
            time.sleep(0.3)
        raise AssertionError("\n".join(path.read_text("utf-8")[-1500:] for path in self.root.glob("*.log")))


@pytest.mark.parametrize(("authority", "health"), [("authority", "up"), ("other", "down")])
def test_prometheus_talks_to_whom_its_authority_has_signed(certificates, authority, health):
    root = certificates / "root"
    (root / "data").mkdir(parents=True)
    watched = Watched(root, certificates, authority)
    with ExitStack() as stack:
        watched.start(stack)
        found, errors = watched.targets()
        assert {job: found[job] for job in RUNNING} == dict.fromkeys(RUNNING, health), errors
        if health == "down":
            assert any("x509: certificate signed by unknown authority" in error for error in errors)
            return
        (alertmanager,) = watched.told("/api/v1/alertmanagers")["activeAlertmanagers"]
        assert alertmanager["url"].startswith("https://127.0.0.1:")
        stranger = ssl.create_default_context(cafile=certificates / "other.pem")
        for part in RUNNING:
            url = watched.url(part, "/metrics")
            asking = [(), ("allreduce", "wrong"), ("allreduce", PASSWORD)]
            assert [ask(url, *who, context=watched.context) for who in asking] == [401, 401, 200]
            assert ask(url.replace("https", "http"), "allreduce", PASSWORD) == 400, "an answer without encryption"
            with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
                ask(url, context=stranger)
