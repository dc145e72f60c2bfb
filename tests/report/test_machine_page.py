# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drawn machines as a reader sees them: simulated hardware, measured as on a node, rendered by a browser."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.allreduce.gpu.tests.report import simulated

pytestmark = pytest.mark.browser

both_screens = pytest.mark.parametrize("device", ["machines_phone", "machines_desktop"])
LINK = {"light": (47, 111, 159), "dark": (106, 174, 221)}

# Of every visible picture: texts with their boxes, and whether each is inside a rectangle (turned and linking text may
# stand between them).
_TEXTS = """
return [...document.querySelectorAll("svg.machine")].filter(one => one.checkVisibility()).map(picture => {
  const box = one => { const {left, right, top, bottom} = one.getBoundingClientRect(); return {left, right, top, bottom}; };
  const frame = box(picture), rects = [...picture.querySelectorAll("rect")].map(box);
  return [...picture.querySelectorAll("text")].map(text => {
    const own = box(text);
    const within = outer => own.left >= outer.left && own.right <= outer.right && own.top >= outer.top - 1 &&
      own.bottom <= outer.bottom + 1;
    return {text: text.firstChild.data, kind: text.getAttribute("class"), ...own,
            boxed: rects.some(within), framed: within(frame)};
  });
});
"""
# Contrast of each text with the fill of the innermost rectangle it stands in, else with the page.
_CONTRASTS = """
const channel = value => { value /= 255; return value <= .03928 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4; };
const parse = colour => colour.match(/[0-9.]+/g).map(Number);
const luminance = ([r, g, b]) => .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
return [...document.querySelectorAll("svg.machine text")].filter(one => one.checkVisibility()).map(text => {
  const own = text.getBoundingClientRect();
  let ground = parse(getComputedStyle(document.body).backgroundColor);
  for (const rect of text.parentNode.querySelectorAll("rect")) {
    const box = rect.getBoundingClientRect(), style = getComputedStyle(rect);
    if (own.left < box.left || own.right > box.right || own.top < box.top - 1 || own.bottom > box.bottom + 1) continue;
    const fill = parse(style.fill), part = Number(style.fillOpacity);
    ground = ground.slice(0, 3).map((value, at) => value * (1 - part) + fill[at] * part);
  }
  const [high, low] = [luminance(parse(getComputedStyle(text).fill)), luminance(ground)].sort((a, b) => b - a);
  return [text.firstChild.data, (high + .05) / (low + .05)];
});
"""


def article(page, name):
    """The part of the page about one machine."""
    return next(
        one for one in page.elements("article.machine") if one.find_element("css selector", "h3").text.startswith(name)
    )


def cells(table):
    rows = table.find_elements("css selector", "tr")
    return [[cell.get_attribute("textContent") for cell in row.find_elements("css selector", "th, td")] for row in rows]


def test_equal_machines_are_drawn_once_and_the_sick_one_first(machines_desktop):
    headings = [one.text for one in machines_desktop.elements("article.machine h3")]
    assert headings == ["broken-1 failed", "dgx-1, dgx-2, dgx-3 (3 nodes) ok", "a40-1 ok", "cube-1 ok", "desk-1 ok"]


@both_screens
def test_one_picture_of_each_machine_is_seen(device, request):
    page = request.getfixturevalue(device)
    pictures = page.boxes("svg.machine")
    assert len(pictures) == 5
    widest = max(picture["width"] for picture in pictures)
    assert 330 <= widest <= page.width - 32 if page.width < 600 else widest >= 1000


@both_screens
def test_no_text_lies_on_another_and_all_are_in_the_picture(device, request):
    for texts in request.getfixturevalue(device).ask(_TEXTS):
        assert len(texts) > 4
        for text in texts:
            assert text["framed"], text
            assert text["boxed"] or text["kind"].startswith("links"), text
        for one, two in itertools.combinations(texts, 2):
            assert (
                one["right"] <= two["left"] + 0.5
                or two["right"] <= one["left"] + 0.5
                or one["bottom"] <= two["top"] + 2
                or two["bottom"] <= one["top"] + 2
            ), (one, two)


@both_screens
def test_letters_are_large_enough_to_read(device, request):
    heights = [text["bottom"] - text["top"] for texts in request.getfixturevalue(device).ask(_TEXTS) for text in texts]
    assert min(heights) >= 11


@pytest.mark.parametrize("scheme", ["light", "dark"])
@both_screens
def test_text_stands_out_from_the_box_it_is_in(device, scheme, request):
    page = request.getfixturevalue(device)
    page.media(scheme=scheme)
    contrasts = page.ask(_CONTRASTS)
    assert len(contrasts) > 100
    assert [(text, ratio) for text, ratio in contrasts if ratio < 4.5] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@both_screens
def test_links_are_seen_and_thicker_the_more_they_are(device, scheme, request):
    page = request.getfixturevalue(device)
    page.media(scheme=scheme)
    drawn = page.screenshot()

    def thickness(name):
        """Pixels across the first link of a machine, close to where it leaves the GPU."""
        at = page.ask(
            "const path = [...arguments[0].querySelectorAll('svg.machine path.link')].find(one => one.checkVisibility());"
            "const point = path.getPointAtLength(4), matrix = path.getScreenCTM();"
            "const {x, y} = point.matrixTransform(matrix); return [x + scrollX, y + scrollY];",
            article(page, name),
        )
        x, y = (round(value) for value in at)
        around = range(-12, 13)
        line = [drawn.getpixel((x, y + step) if page.width < 600 else (x + step, y)) for step in around]
        return sum(all(abs(a - b) < 60 for a, b in zip(colour, LINK[scheme], strict=True)) for colour in line)

    assert 0 < thickness("a40") < thickness("dgx")


@both_screens
def test_a_sick_gpu_is_marked_in_words(device, request):
    texts = next(iter(request.getfixturevalue(device).ask(_TEXTS)))
    faults = " ".join(text["text"] for text in texts if "fault" in text["kind"])
    for words in ("PCIe x8 of", "does not", "NVLinks", "2 ECC errors", "10/12"):
        assert words in faults


def test_problems_are_a_list_and_every_finding_says_what_to_do(machines_desktop):
    broken = article(machines_desktop, "broken-1")
    problems = [one.text for one in broken.find_elements("css selector", ".problems li")]
    assert problems == simulated.measured("broken")["gpu_node"]["problems"]
    findings = [one.text for one in broken.find_elements("css selector", ".findings li")]
    assert len(findings) == len(simulated.measured("broken")["gpu_health"]["findings"])
    assert "GPU1 pcie width: x8, expected: x16. Reseat the GPU or its riser." in findings
    assert not article(machines_desktop, "dgx").find_elements("css selector", ".problems, .findings")


def test_the_health_table_has_equal_gpus_in_one_row(machines_desktop):
    table = article(machines_desktop, "broken-1").find_element("css selector", "table.health")
    assert [(row[0], row[1]) for row in cells(table)[1:]] == [
        ("GPU6", "failed"), ("0000:45:00.0", "failed"), ("GPU1", "degraded"), ("GPU4", "degraded"), ("GPU[0,2,5,7]", "ok"),
    ]  # fmt: skip


@both_screens
def test_the_matrix_is_a_table_that_opens_and_scrolls_by_keyboard(device, request):
    page = request.getfixturevalue(device)
    one = article(page, "dgx")
    one.find_element("css selector", "summary").click()
    region = one.find_element("css selector", ".matrix")
    assert region.is_displayed()
    assert (region.get_attribute("tabindex"), region.get_attribute("role")) == ("0", "region")
    header, *rows = cells(region.find_element("css selector", "table"))
    topology = simulated.measured("dgx")["gpu_node"]["topology"]
    assert header[1:] == list(topology)
    assert {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in rows} == topology
    assert page.ask("return document.documentElement.scrollWidth") <= page.width


def test_who_cannot_see_the_picture_is_told(machines_desktop):
    (words,) = machines_desktop.ask(
        "return [...arguments[0].querySelectorAll('svg.machine')].filter(one => one.checkVisibility())"
        ".map(one => one.querySelector('desc').textContent)",
        article(machines_desktop, "a40"),
    )
    assert words == ("NUMA node 0: GPU0, mlx5_0, GPU1. NUMA node 1: GPU2, GPU3. GPU0 and GPU1: 4 NVLinks.")
    assert machines_desktop.elements("svg.machine:not([role=img]:has(title):has(desc)), th:not([scope])") == []


def test_the_machines_are_the_same_without_scripts(machines_phone):
    before = machines_phone.screenshot()
    machines_phone.scripts(False)
    machines_phone.reload()
    assert machines_phone.screenshot().tobytes() == before.tobytes()


def test_the_verdict_is_beside_the_node(machines_desktop):
    nodes = [one.text for one in machines_desktop.elements("section[aria-labelledby=nodes] article")]
    assert any("broken-1" in text and "GPU health\nfailed" in text for text in nodes)
