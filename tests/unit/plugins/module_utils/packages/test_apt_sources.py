# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import re
import shutil
import subprocess

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.packages import apt_sources
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

ONE_LINE = """# deb http://x/ y main
deb [signed-by=/k arch=amd64] http://a.example/debian bookworm main contrib # ours
deb-src http://a.example/debian bookworm main
"""
DEB822 = """Types: deb deb-src
URIs: http://a.example/debian
Suites: bookworm bookworm-updates
Components: main
 non-free
Signed-By: /usr/share/k.gpg

Enabled: no
Types: deb
URIs: http://b
Suites: x
"""


def test_one_line_sources():
    expected = {
        **dict.fromkeys(apt_sources.AGREED),
        "uri": "http://a.example/debian",
        "suite": "bookworm",
        "components": ["main", "contrib"],
        "signed_by": "/k",
        "types": ["deb"],
    }
    assert [entry for entry in apt_sources.list_entries(ONE_LINE) if entry["types"] == ["deb"]] == [expected]


def test_deb822_sources():
    assert apt_sources.deb822_entries(DEB822) == [
        {
            **dict.fromkeys(apt_sources.AGREED),
            "uri": "http://a.example/debian",
            "suite": suite,
            "components": ["main", "non-free"],
            "signed_by": "/usr/share/k.gpg",
            "types": ["deb", "deb-src"],
        }
        for suite in ("bookworm", "bookworm-updates")
    ]


NVIDIA = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2204/x86_64"
D = "/etc/apt/sources.list.d/"
OURS = {
    D
    + "allreduce-cuda.sources": f"Types: deb\nURIs: {NVIDIA}\nSuites: /\nSigned-By: /etc/apt/keyrings/allreduce-cuda.asc\n"
}


def found(place, files):
    """(option, paths, ours) of each contradiction, paths without their directory."""
    return [
        (one["option"], *[[path.rpartition("/")[2] for path in one[key]] for key in ("paths", "ours")])
        for one in apt_sources.contradictions(apt_sources.read_entries(tree(place, files)))
    ]


@pytest.mark.parametrize(
    ("line", "option"),
    [
        (f"deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] {NVIDIA}/ /", "Signed-By"),
        (f"deb {NVIDIA} /", "Signed-By"),
        (f"deb-src [ arch=amd64 signed-by=/k ] {NVIDIA} /", "Signed-By"),
        (f"deb [trusted=yes signed-by=/etc/apt/keyrings/allreduce-cuda.asc] {NVIDIA} /", "Trusted"),
        (f"deb [signed-by=/etc/apt/keyrings/allreduce-cuda.asc] {NVIDIA}/ /", None),
        (f"deb [signed-by=/k] {NVIDIA} ./", None),
        (f"# deb [signed-by=/k] {NVIDIA} /", None),
    ],
)
def test_what_apt_refuses_to_read(tmp_path, line, option):
    expected = [(option, ["allreduce-cuda.sources", "cuda.list"], ["allreduce-cuda.sources"])] if option else []
    assert found(tmp_path, {**OURS, D + "cuda.list": line + "\n"}) == expected


def test_entries_of_the_main_list_and_of_one_file_count(tmp_path):
    files = {
        "/etc/apt/sources.list": "deb [signed-by=/l] http://a.example/debian bookworm main\n",
        D
        + "debian.sources": "Types: deb\nURIs: http://a.example/debian\nSuites: bookworm\nComponents: main\nSigned-By: /k\n",
        D + "b.list": "deb [signed-by=/1] http://b.example x main\ndeb [signed-by=/2] http://b.example x contrib\n",
        D + "c.sources": "Enabled: no\nTypes: deb\nURIs: http://b.example\nSuites: x\n",
        D + "c.list.save": "deb http://b.example x main\n",
    }
    assert found(tmp_path, files) == [
        ("Signed-By", ["sources.list", "debian.sources"], []),
        ("Signed-By", ["b.list"], []),
    ]


def line(option="", components="main", kind="deb"):
    return f"{kind} {f'[{option}] ' if option else ''}http://a.example/debian bookworm {components}\n"


def stanza(option="", components="main"):
    return f"Types: deb\nURIs: http://a.example/debian/\nSuites: bookworm\nComponents: {components}\n{option}\n"


# {what: the main list, and the other files, in the order of their names; the option that they contradict each other about}
PAIRS = {
    "no key, then one": (line(), {"debian.sources": stanza("Signed-By: /k.gpg")}, None),
    "sources without a key, then packages with one": (line(kind="deb-src") + line("signed-by=/k.gpg"), {}, None),
    "a key, then none": (line("signed-by=/k.gpg"), {"z.list": line()}, "Signed-By"),
    "packages with a key, then sources without": (line("signed-by=/k.gpg") + line(kind="deb-src"), {}, "Signed-By"),
    "no key, one, and none": (line(), {"a.list": line("signed-by=/k.gpg"), "b.list": line()}, "Signed-By"),
    "capital letters come first": ("", {"B.list": line(), "a.list": line("signed-by=/k.gpg")}, None),
    "the order of the names": ("", {"A.list": line("signed-by=/k.gpg"), "b.list": line()}, "Signed-By"),
    "two keys": (line("signed-by=/k.gpg"), {"z.list": line("signed-by=/l.gpg")}, "Signed-By"),
    "a key in quotes": (line('signed-by="/k.gpg"'), {"z.list": line("signed-by=/k.gpg")}, None),
    "two keys with a blank between": (line("signed-by=/k.gpg,/l.gpg"), {"z.sources": stanza("Signed-By: /k.gpg /l.gpg")}, None),
    "two keys with both": (line("signed-by=/k.gpg,/l.gpg"), {"z.sources": stanza("Signed-By: /k.gpg, /l.gpg")}, None),
    "two keys in another order": (line("signed-by=/k.gpg,/l.gpg"), {"z.list": line("signed-by=/l.gpg,/k.gpg")}, "Signed-By"),
    "not trusted, then trusted": (line(), {"z.list": line("trusted=yes")}, "Trusted"),
    "words for yes": (line("trusted=yes"), {"z.sources": stanza("Trusted: 1")}, None),
    "an old release": (line("check-valid-until=no"), {"z.list": line()}, "Check-Valid-Until"),
    "an old release in both": (line("check-valid-until=no"), {"z.sources": stanza("Check-Valid-Until: off")}, None),
    "a clock that is wrong": (line(), {"z.sources": stanza("Check-Date: no")}, "Check-Date"),
    "a limit, then none": (line("valid-until-max=100"), {"z.list": line()}, "Max-ValidTime"),
    "no limit, then one": (line(), {"z.list": line("valid-until-max=100")}, None),
    "the other limit": (line("valid-until-min=100"), {"z.list": line("valid-until-min=200")}, "Min-ValidTime"),
    "dates to come": (line("date-max-future=100"), {"z.list": line()}, "Date-Max-Future"),
    "insecure": (line(), {"z.list": line("allow-insecure=yes")}, "ALLOW_INSECURE"),
    "weak": (line("allow-weak=yes"), {"z.list": line()}, "ALLOW_WEAK"),
    "less secure than before": (line("allow-downgrade-to-insecure=yes"), {"z.list": line()}, "ALLOW_DOWNGRADE_TO_INSECURE"),
    "a file that apt leaves out": (line("signed-by=/k.gpg"), {"a b.list": line("signed-by=/l.gpg")}, None),
    "a copy that apt leaves out": (line("signed-by=/k.gpg"), {"a~.list": line("signed-by=/l.gpg"), ".a.list": line("signed-by=/l.gpg")}, None),
    # As NVIDIA's own list of the container toolkit has it.
    "an address with apt's variable": (line("signed-by=/k.gpg").replace("debian", "deb/$(ARCH)"),
                                       {"z.list": line("signed-by=/l.gpg").replace("debian", f"deb/{apt_sources.ARCHITECTURE}")}, "Signed-By"),
    "a directory with apt's variable": ("deb [signed-by=/k.gpg] http://a.example $(ARCH)/\n",
                                        {"z.list": f"deb [signed-by=/l.gpg] http://a.example/ {apt_sources.ARCHITECTURE}/\n"}, "Signed-By"),
    "apt's variable in a stanza": (line("signed-by=/k.gpg").replace("debian", f"deb/{apt_sources.ARCHITECTURE}"),
                                   {"z.sources": stanza("Signed-By: /l.gpg").replace("debian/", "deb/$(ARCH)")}, "Signed-By"),
    "a name with a colon": (line("signed-by=/k.gpg"), {"A:b_c-d.e.list": line("signed-by=/l.gpg")}, "Signed-By"),
}  # fmt: skip


@pytest.mark.parametrize("what", PAIRS)
def test_which_entries_contradict_each_other(what, tmp_path):
    main, parts, option = PAIRS[what]
    files = {"/etc/apt/sources.list": main, **{D + name: text for name, text in parts.items()}}
    assert [one[0] for one in found(tmp_path, files)] == ([option] if option else [])


@pytest.mark.skipif(not shutil.which("apt-get"), reason="no apt")
@pytest.mark.parametrize("what", PAIRS)
def test_apt_itself_says_the_same(what, tmp_path):
    main, parts, option = PAIRS[what]
    tree(
        tmp_path,
        {"/sources.list": main, "/lists/partial/x": "", **{f"/parts/{name}": text for name, text in parts.items()}},
    )
    places = {"Etc::sourcelist": "sources.list", "Etc::sourceparts": "parts", "State::lists": "lists"}
    options = [word for key, place in places.items() for word in ("-o", f"Dir::{key}={tmp_path}/{place}")]
    command = ["apt-get", *options, "indextargets"]
    ran = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    said = set(re.findall(r"Conflicting values set for option (\S+) regarding source", ran.stderr.decode()))
    assert (said, ran.returncode) == (({option}, 100) if option else (set(), 0))
