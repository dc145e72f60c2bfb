# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from ansible_collections.allreduce.gpu.plugins.module_utils.packages import repositories
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

CENTOS = """# CentOS-Linux-BaseOS.repo

[baseos]
name=CentOS Linux $releasever - BaseOS
mirrorlist=http://mirrorlist.centos.org/?release=$releasever&arch=$basearch&repo=BaseOS&infra=$infra
#baseurl=http://mirror.centos.org/$contentdir/$releasever/BaseOS/$basearch/os/
gpgcheck=1
enabled=1
gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-centosofficial
"""
ROCKY = """[crb]
name = CRB
baseurl = http://a.example/CRB/
  http://b.example/CRB/
enabled = False
[crb-debug]
baseurl=http://a.example/debug/
[crb-source]
baseurl=http://a.example/source/
[rhel-9-for-x86_64-sap-rpms]
baseurl=http://a.example/sap/
enabled=0
[site]
metalink=https://m.example/?repo=site
enabled=0
enabled=1
"""


def test_repositories_of_dnf(tmp_path):
    files = {"/etc/yum.repos.d/a.repo": CENTOS, "/etc/yum.repos.d/b.repo": ROCKY, "/etc/yum.repos.d/c.rpmsave": ROCKY}
    found = repositories.read_dnf_repositories(tree(tmp_path, files))

    assert [(one["id"], one["path"], one["enabled"]) for one in found] == [
        ("baseos", "/etc/yum.repos.d/a.repo", True),
        ("crb", "/etc/yum.repos.d/b.repo", False),
        ("site", "/etc/yum.repos.d/b.repo", True),  # the last line counts
    ]
    assert found[0]["source"].startswith("http://mirrorlist.centos.org/?release=")
    assert found[0]["key"] == "file:///etc/pki/rpm-gpg/RPM-GPG-KEY-centosofficial"
    assert [(one["source"], one["key"]) for one in found[1:]] == [
        ("http://a.example/CRB/", None),
        ("https://m.example/?repo=site", None),
    ]


def test_a_node_without_dnf_has_none(tmp_path):
    assert repositories.read_dnf_repositories(tree(tmp_path, {})) == []
