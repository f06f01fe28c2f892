"""The pages in a real browser: pointed at, searched, with hostile text in every field."""

import numpy as np
import pytest

from selfsent.report import maps
from selfsent.report.pages import render

HOSTILE = [
    "</script><script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 1'>",
    '"><svg onload="window.ran = 1">',
    "\u202eright to left\u2028next line\x1b[31m",
    "{{ window.ran = 1 }} ${window.ran = 1} `",
    "javascript:window.ran=1//'\"\\u003cscript",
]
TEXTS = [f"{HOSTILE[row % 6]} number {row}" for row in range(60)]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    vectors = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    colours = {HOSTILE[0]: TEXTS, HOSTILE[1]: [HOSTILE[row % 3] for row in range(60)]}
    drawn = maps.map_of(TEXTS, vectors, colours, HOSTILE[1], 90)
    named = ("words", "typical", "over", "parent", "title")
    groups = [{"number": 0, "size": "1,000", **dict.fromkeys(named, text * 20)} for text in HOSTILE]
    about = [(text, text) for text in HOSTILE]
    more = {"unit": HOSTILE[0], "over": HOSTILE[1], "outliers": HOSTILE[2], "parents": True, "titled": True}
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(
        render("clusters.html", headline=HOSTILE[0], map=drawn, groups=groups, about=about, **more), "utf-8"
    )
    return path


@pytest.fixture
def opened(browser, page_file):
    """Open the page so wide and in these colours; what went wrong on it is looked at when the test is over."""
    troubles = []

    def of(width=1000, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True)
        page = context.new_page()
        page.on("console", lambda message: message.type == "error" and troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto(page_file.as_uri())
        # On a busy machine the map is drawn some time after the page has been loaded.
        page.wait_for_function(
            """() => { const canvas = document.querySelector("canvas"), size = canvas.width;
            return size && canvas.getContext("2d").getImageData(0, 0, size, size).data.some(value => value); }"""
        )
        return page

    yield of
    # `src=x` is never asked for: the image in the text is text.
    assert troubles == []


def colours_at(page):
    """The colours of the first map that are not its background, as strings."""
    return page.evaluate(
        """() => {
        const canvas = document.querySelector("canvas"), size = canvas.width;
        const pixels = canvas.getContext("2d").getImageData(0, 0, size, size).data, found = new Set();
        for (let i = 0; i < pixels.length; i += 4)
          if (pixels[i + 3] === 255) found.add(`${pixels[i]},${pixels[i + 1]},${pixels[i + 2]}`);
        return [...found];
    }"""
    )


def test_pointing_at_a_dot_shows_its_text_and_runs_none_of_it(opened):
    page = opened()
    box = page.locator("canvas").bounding_box()
    x, y = page.evaluate(
        """() => {
        const data = JSON.parse(document.querySelector(".map script").textContent).places;
        return [data[0][7], data[1][7]];
    }"""
    )
    place = (8 + value * (box["width"] - 18) / 1000 for value in (x, y))
    page.mouse.move(*(start + at for start, at in zip((box["x"], box["y"]), place, strict=True)))
    tip = page.locator(".tip")
    assert tip.is_visible()
    assert tip.text_content() == TEXTS[7]
    assert page.locator(".ring").is_visible()
    page.mouse.move(2, 2)
    assert not tip.is_visible()
    assert page.evaluate("window.ran") is None


def test_searching_counts_and_lists_what_matches(opened):
    page = opened()
    before = len(colours_at(page))
    page.get_by_label("Search these texts").fill("RIGHT left")
    assert page.locator("output").text_content() == "10 of 60 match"
    assert page.locator(".hits li").all_text_contents() == [TEXTS[row] for row in (3, 9, 15, 21, 27)]
    assert len(colours_at(page)) < before
    page.get_by_label("Search these texts").fill("eft")  # words are found by their beginnings, not within others
    assert page.locator("output").text_content() == "0 of 60 match"
    page.get_by_label("Search these texts").fill("RIGH")
    assert page.locator("output").text_content() == "10 of 60 match"
    page.get_by_label("Search these texts").fill("nowhere")
    assert page.locator("output").text_content() == "0 of 60 match"
    assert page.evaluate("window.ran") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_telephone_shows_all_of_its_width_in_both_colours(opened, scheme):
    page = opened(360, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 22, 22)"}[scheme]
    assert len(colours_at(page)) > 1
    page.locator("canvas").scroll_into_view_if_needed()


def test_names_stand_on_the_map_and_texts_without_a_dot_are_found(browser, tmp_path):
    vectors = np.repeat(np.eye(2, 8, dtype=np.float32), 10, 0)
    names = ["0: printers"] * 10 + ["1: passwords"] * 10 + ["0: printers"]
    texts = [*(f"text {row}" for row in range(20)), "only searched"]
    drawn = maps.map_of(texts, vectors, {"group": names}, "texts", 21, sizes={"group": {"0: printers": 1234}})
    more = dict.fromkeys(("headline", "unit", "over", "outliers"), "") | dict.fromkeys(("parents", "titled"), False)
    (tmp_path / "page.html").write_text(render("clusters.html", map=drawn, groups=[], about=[], **more), "utf-8")
    page = browser.new_page()
    said = "const own = CanvasRenderingContext2D.prototype; window.said = new Set();"
    page.add_init_script(said + " own.fillText = (text) => window.said.add(text);")
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_function("window.said.size")
    assert page.evaluate("[...window.said]") == ["printers"]
    assert page.locator(".legend").text_content() == "0: printers (1,234)"
    page.get_by_label("Search these texts").fill("only")
    assert page.locator(".hits li").all_text_contents() == ["only searched"]
