# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as a reader sees it: assertions on boxes, texts and pixels of the rendered page."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.tests.report import cluster

pytestmark = pytest.mark.browser

FAILED = {"light": (179, 38, 30), "dark": (255, 143, 133)}
PASSED = {"light": (26, 116, 68), "dark": (88, 196, 138)}
PICTURE = "svg:not([aria-hidden])"
GROUND = {"light": (252, 252, 250), "dark": (20, 24, 28)}


def test_the_verdict_is_what_one_reads_first(phone):
    verdict = phone.boxes("#verdict")[0]

    assert verdict["bottom"] < phone.height / 2
    assert phone.text("#verdict").splitlines() == [
        "Failed",
        "2 nodes, 20 checks: 16 passed, 1 failed, 1 unknown and 2 skipped.",
        "1 difference between plan and installation on 1 node.",
        "train_ddp.py trained on 1 and 2 nodes: 1,212 and 2,255 samples/s, scaling efficiency 93%.",
        "finetune.py failed on 2 nodes (run 20261121T154000-2n).",
    ]


@pytest.mark.parametrize(
    "device",
    [
        "phone",
        "desktop",
        "large",
        "crowded_phone",
        "crowded_desktop",
        "machines_phone",
        "machines_desktop",
        "courses_phone",
        "courses_desktop",
        "benchmark_phone",
        "benchmark_desktop",
    ],
)
def test_nothing_is_wider_than_the_screen(device, request):
    page = request.getfixturevalue(device)
    # All parts open; of the thousand nodes' checks the first ones.
    page.open(40)

    assert page.ask("return document.documentElement.scrollWidth") <= page.width
    too_wide = [box for box in page.boxes("body :not(.matrix *)") if box["right"] > page.width + 0.5 or box["left"] < 0]
    assert too_wide == []


def test_rows_become_cards_on_a_phone(phone):
    cells = phone.boxes("section[aria-labelledby=attention] tbody:first-of-type tr:first-child > *")

    name, result, *labelled = cells
    assert name["top"] == pytest.approx(result["top"], abs=3)
    assert result["left"] > name["right"]
    assert [cell["top"] for cell in labelled] == sorted({cell["top"] for cell in labelled})


def test_rows_are_rows_on_a_desktop(desktop):
    cells = desktop.boxes("section[aria-labelledby=attention] tbody:first-of-type tr:first-child > *")

    assert len({round(cell["top"]) for cell in cells}) == 1
    assert [cell["left"] for cell in cells] == sorted(cell["left"] for cell in cells)


def test_failed_comes_before_unknown_before_passed(desktop):
    desktop.open()
    order = [element.text for element in desktop.elements("#attention ~ table tbody .status")]
    first_group = [
        element.text
        for element in desktop.elements("section[aria-labelledby=checks] details tbody:first-of-type .status")
    ]

    assert order == ["failed", "unknown"]
    assert first_group[0] == "failed"


def test_every_check_shows_expected_and_measured(desktop):
    desktop.open()
    checks = cluster.verification()["nodes"]["gpu-2"]["checks"]
    group = next(one for one in desktop.elements("section[aria-labelledby=checks] details") if "gpu-2" in one.text)
    rows = {row.text for row in group.find_elements("css selector", "tbody tr")}

    for check in checks:
        assert any(
            all(part in row for part in (check["name"], check["status"], check["expected"], check["measured"]))
            for row in rows
        )


def test_planned_is_beside_installed_and_the_difference_first(desktop):
    first = desktop.elements("section[aria-labelledby=nodes] tbody tr")[0].text

    assert "nvidia-driver" in first
    assert "differs" in first
    assert "535.*" in first
    assert "530.41.03-1" in first


def test_bars_are_as_long_as_throughput_is_high(desktop):
    one, two = desktop.boxes(".chart .bar")
    picture = desktop.boxes(".chart svg")[0]

    assert one["width"] / two["width"] == pytest.approx(1212.5 / 2255.0, rel=0.01)
    assert two["width"] / picture["width"] == pytest.approx(2255.0 / (2 * 1212.5), rel=0.01)
    assert one["height"] == two["height"]


@pytest.mark.parametrize("device", ["phone", "desktop"])
def test_labels_of_the_picture_do_not_overlap(device, request):
    texts = request.getfixturevalue(device).boxes("svg text")

    for position, first in enumerate(texts):
        for second in texts[position + 1 :]:
            assert (
                first["right"] <= second["left"]
                or second["right"] <= first["left"]
                or first["bottom"] <= second["top"] + 1
                or second["bottom"] <= first["top"] + 1
            )


def test_hostile_text_is_shown_and_not_obeyed(desktop):
    tail = desktop.text("pre")

    assert cluster.HOSTILE in tail
    assert "\x1b" not in tail
    assert desktop.browser.title == "Acceptance of cluster A: failed"
    assert desktop.elements("script, img, iframe, object, link, form") == []


def test_nothing_is_loaded_from_elsewhere(desktop):
    assert desktop.ask("return performance.getEntriesByType('resource').map(one => one.name)") == []
    links = desktop.ask("return [...document.querySelectorAll('[href], [src]')].map(one => one.getAttribute('href'))")
    assert links
    assert all(link.startswith("#") for link in links)


def test_the_page_is_the_same_without_scripts(phone):
    before = phone.screenshot()
    phone.scripts(False)
    phone.reload()

    assert phone.screenshot().tobytes() == before.tobytes()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", ["phone", "desktop"])
def test_text_stands_out_from_its_ground(device, scheme, request):
    page = request.getfixturevalue(device)
    page.media(scheme=scheme)
    contrasts = page.contrasts()

    assert len(contrasts) > 100
    assert [(text, ratio) for text, ratio in contrasts if ratio < 4.5] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_screenshot_shows_the_status_in_shape_and_colour(phone, scheme):
    phone.media(scheme=scheme)
    phone.open()
    picture = phone.screenshot()

    assert picture.size[0] == phone.width
    assert picture.getpixel((2, 2)) == GROUND[scheme]
    marks = {word: _mark(phone, picture, word) for word in ("failed", "unknown", "passed", "skipped")}
    # Diamond, disc, ring, dash: four shapes, told apart without colour.
    assert marks["failed"]["middle"] == FAILED[scheme]
    assert marks["passed"]["middle"] == PASSED[scheme]
    assert marks["unknown"]["middle"] == GROUND[scheme]
    assert marks["unknown"]["edge"] != GROUND[scheme]
    assert marks["skipped"]["height"] < marks["passed"]["height"] / 2
    assert marks["failed"]["height"] > marks["passed"]["height"]


def test_printing_opens_what_is_closed_and_is_dark_on_white(desktop):
    closed = "details:not([open]) tbody tr"
    assert desktop.boxes(closed) == []
    desktop.media(medium="print", scheme="dark")

    assert desktop.screenshot().getpixel((2, 2)) == (255, 255, 255)
    rows = desktop.boxes(closed)
    assert rows
    assert all(row["height"] > 0 for row in rows)


def test_a_closed_part_opens_without_scripts(desktop):
    desktop.scripts(False)
    desktop.reload()
    closed = desktop.elements("section[aria-labelledby=nodes] details:not([open]) > summary")[0]
    before = desktop.screenshot().size[1]
    closed.click()

    assert desktop.screenshot().size[1] > before


def test_a_screen_reader_finds_its_way(desktop):
    levels = [int(one.tag_name[1]) for one in desktop.elements("h1, h2, h3, h4")]

    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:], strict=False))
    assert desktop.ask("return document.documentElement.lang") == "en"
    assert desktop.elements("th:not([scope]), table:not(:has(caption))") == []
    assert desktop.elements(PICTURE + ":not([role=img]:has(title):has(desc))") == []
    described = desktop.ask("return document.querySelector('.chart desc').textContent")
    assert described == (
        "1 node, 2 processes: 1,212 samples/s; "
        "2 nodes, 4 processes: 2,255 samples/s, 1.86 times the throughput, efficiency 93%."
    )


def test_links_lead_to_what_they_name(desktop):
    targets = desktop.ask(
        "return [...document.querySelectorAll('a')]"
        ".map(link => [link.textContent, document.querySelector(link.hash)?.textContent])"
    )

    assert [text for text, heading in targets if text != heading] == []
    assert len(targets) == 6


def test_a_thousand_nodes_stay_readable(large):
    assert "1,000 nodes, 10,002 checks: 9,001 passed, 1 failed" in large.text("#verdict")
    assert [heading.text for heading in large.elements("section[aria-labelledby=nodes] article h3")] == [
        "gpu-7 1 not as planned",
        "gpu-[1-6,8-1000] (999 nodes)",
    ]
    assert [cell.text for cell in large.elements("#attention ~ table td[data-label=Nodes]")] == ["gpu-7"]
    # Closed, the whole page is some screens long; the deviating node is among the first things seen.
    assert large.screenshot().size[1] < 16 * large.height
    assert large.boxes("#attention")[0]["top"] < large.height


def _mark(page, picture, word):
    """Pixels of the shape before the first status of this kind that stands in a table."""
    at = page.ask(
        f"const one = [...document.querySelectorAll('td .status.{word}')].find(one => one.checkVisibility());"
        "const box = one.getBoundingClientRect(); return [box.left + scrollX, box.top + scrollY, box.height];"
    )
    left, top, height = (round(value) for value in at)
    column = [picture.getpixel((left + 5, row)) for row in range(top, top + height)]
    ground = picture.getpixel((left - 4, top))
    marked = [row for row, colour in enumerate(column) if colour != ground]
    middle = (marked[0] + marked[-1]) // 2
    return {"middle": column[middle], "edge": column[marked[0] + 1], "height": len(marked)}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_pair_that_differs_stands_out(desktop, scheme):
    """Of two ways one has a tenth of the bandwidth: another shade, and the value in words in both."""
    desktop.media(scheme=scheme)
    slow, fast = (
        next(one for one in desktop.elements("table.pairs td") if one.text == text) for text in ("2.34", "23.4")
    )
    assert slow.value_of_css_property("background-color") != fast.value_of_css_property("background-color")
    [fault] = desktop.elements("table.pairs td.fault")
    assert fault.text == "not 9000" and fault.value_of_css_property("outline-style") == "dashed"


def test_a_phone_scrolls_the_pairs_and_not_the_page(phone):
    wide = phone.boxes("table.pairs")
    assert len(wide) == 3  # PCIe's, and two figures of the ways between nodes: the third is much the same everywhere
    assert phone.ask("return document.documentElement.scrollWidth") <= phone.width
    rows = phone.boxes("table.pairs tbody tr:first-child > *")
    assert len({round(one["top"]) for one in rows[:3]}) == 1, "the cells of a row stay beside each other"


def test_what_was_set_up_for_the_network_is_in_tables(desktop):
    section = desktop.text("section[aria-labelledby=network]")
    for heading in ("Firewall", "Limits of processes", "Shares of links", "RDMA", "PCIe on gpu-1, gpu-2"):
        assert any(line.startswith(heading) for line in section.splitlines())
    shares = [row.text for row in desktop.elements("table.shares tbody tr")]
    assert shares == ["gpu-1, gpu-2 ens1 training 20gbit 25gbit", "gpu-1, gpu-2 ens1 everything else 5gbit 10gbit"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_redirected_pair_has_another_shade_than_a_direct_one(desktop, scheme):
    desktop.media(scheme=scheme)
    cells = {one.text: one for one in desktop.elements("#network-pcie-1 ~ .matrix td") if one.text}
    assert {"direct", "ACS", "root"} <= set(cells)
    shades = {cells[text].value_of_css_property("background-color") for text in ("direct", "ACS", "root")}
    assert len(shades) == 3


@pytest.mark.parametrize(("device", "columns"), [("courses_phone", 1), ("courses_desktop", 3)])
def test_the_gpus_of_a_run_are_drawn_over_its_time(device, columns, request):
    page = request.getfixturevalue(device)
    pictures, lines = page.boxes(".course svg"), page.boxes(".course .median")

    assert len(pictures) == len(lines) == 5
    assert len({round(box["left"]) for box in pictures}) == columns
    for picture, line in zip(pictures, lines, strict=True):
        assert line["left"] >= picture["left"] - 1.5
        assert line["right"] <= picture["right"] + 1.5
        assert line["right"] - line["left"] > 0.95 * (picture["right"] - picture["left"])
    assert "gpu-2 0000:05:00.0: 12 % used on average, " in page.text("section[aria-labelledby=training]")
