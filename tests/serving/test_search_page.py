"""The search page in a real browser: marked words, filters, keys, the token, and hostile text in every field."""

import pytest

from selfsent.data.judgements import Judgements
from selfsent.serving.judging import Judging


@pytest.fixture
def opened(browser):
    """Open a page so wide and in these colours; errors on it are looked at when the test is over."""
    troubles = []

    def of(url, width=1000, scheme="light", accept=()):
        page = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme).new_page()
        page.on("console", lambda said: said.type == "error" and troubles.append(said.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda asked: asked.url.startswith(url) or troubles.append(asked.url))
        page.goto(url)
        return page

    yield of
    assert troubles == []


def find(page, text):
    page.get_by_label("What to look for").fill(text)
    page.keyboard.press("Enter")
    page.locator("#said", has_text="best first").wait_for()


def test_hits_have_their_ids_and_marked_words(opened, url):
    page = opened(f"{url}/")
    page.wait_for_selector("#filters:not([hidden])")
    assert page.locator("#said").text_content() == "7 texts, encoded by bundled"
    find(page, "The printer does not answer")
    first = page.locator("#hits li").first
    assert first.locator("button").first.text_content() == "id: T-1"
    assert first.locator(".body").text_content() == "The printer on the second floor does not answer."
    marked = first.locator("mark").all_text_contents()
    assert {"printer", "answer"} <= set(marked)
    assert page.url.endswith("#q=The+printer+does+not+answer")
    page.reload()
    page.wait_for_selector("#hits li")
    assert page.locator("#hits button").first.text_content() == "id: T-1"


def test_a_value_of_a_hit_filters_by_it(opened, url):
    page = opened(f"{url}/")
    find(page, "the printers are printing")
    for team in ("sales", "</script><script>window.ran = 1</script> the printers"):
        page.locator("#hits button", has_text=f"team: {team}").first.click()
        page.wait_for_selector("#filters[open]")
        page.locator("#filters summary span", has_text="(1)").wait_for()
        page.locator("#said", has_text="best first").wait_for()
        expected = {"sales": 2}.get(team, 1)
        assert page.locator("#said").text_content().startswith(f"{expected} nearest")
        assert page.locator("#hits li").count() == expected
        page.reload()
        page.locator("#said", has_text="best first").wait_for()
        assert page.locator("#hits li").count() == expected
        page.get_by_label("team").select_option("any")
        page.locator("#said", has_text="7 nearest").wait_for()
    page.get_by_label("id").fill("!=T-1")
    page.keyboard.press("Enter")
    page.locator("#said", has_text="6 nearest").wait_for()
    page.get_by_label("id").fill("nobody")
    page.keyboard.press("Enter")
    page.locator("#said", has_text="nothing is left by these filters").wait_for()


def test_hostile_text_is_text(opened, url):
    page = opened(f"{url}/")
    for _ in range(2):
        find(page, "</script><script>window.ran = 1</script> printing printed printers")
        page.reload()
        page.wait_for_selector("#hits li")
    assert page.evaluate("window.ran") is None
    assert page.locator("#hits script, #hits img, #hits svg").count() == 0
    assert "<img src=x onerror='window.ran = 1'> printing" in page.locator("#hits .body").all_text_contents()


def test_the_keyboard_reaches_everything(opened, url):
    page = opened(f"{url}/")
    find(page, "printing takes an hour")
    at = "[...document.querySelectorAll('#hits li')].indexOf(document.activeElement)"
    places = []
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
        places.append(page.evaluate(at))
    assert places == [0, 1, 0, -1]
    assert page.evaluate("document.activeElement.id") == "query"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "query"
    long = page.locator("#hits li", has_text="Nobody knows why").first
    before = long.bounding_box()["height"]
    long.focus()
    page.keyboard.press("Enter")
    assert long.bounding_box()["height"] > before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_telephone_shows_all_of_its_width_in_both_colours(opened, url, scheme):
    page = opened(f"{url}/", 400, scheme)
    find(page, "printers")
    page.locator("summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 22, 22)"}[scheme]


def test_the_page_asks_for_the_token(opened, engine, serving):
    with serving(engine, token="s3cret") as url:
        page = opened(f"{url}/")
        page.get_by_label("token").fill("s3cret")
        page.keyboard.press("Enter")
        find(page, "printer")
        assert not page.locator("#token").is_visible()
        page.reload()
        find(page, "invoice")
        # The page searches for "printer" again by itself, whose hits may be seen before.
        page.locator("#hits li:first-child button", has_text="id: T-2").wait_for()


def test_a_column_with_few_values_is_a_list_to_pick_from(opened, url):
    page = opened(f"{url}/")
    page.wait_for_selector("#filters:not([hidden])")
    options = page.get_by_label("team").locator("option").all_text_contents()
    assert options[0] == "any"
    assert {"finance", "it", "sales"} < {*options}
    assert page.get_by_label("id").evaluate("field => field.localName") == "input"
    find(page, "printing")
    page.locator("#filters summary").click()
    page.get_by_label("team").select_option("finance")
    page.locator("#said", has_text="1 nearest").wait_for()
    page.goto(f"{url}/#q=printing&where=team!%3Dsales")
    page.reload()
    page.locator("#said", has_text="5 nearest").wait_for()
    assert page.evaluate("window.ran") is None


@pytest.fixture
def kept(engine, serving, tmp_path):
    """The address of a service that keeps judgements, and their file."""
    path = tmp_path / "mine.csv"
    with serving(engine, judging=Judging(engine.index, Judgements(path))) as url:
        yield url, path


def test_hits_are_judged_by_keyboard_and_pointer(opened, kept):
    url, path = kept
    page = opened(f"{url}/")
    find(page, "the printer does not answer")
    lines = page.locator("#hits li")
    assert lines.first.get_by_role("group", name="Does this text answer the query?").count() == 1
    names = [each.split(": ")[1] for each in page.locator("#hits .about button:first-of-type").all_text_contents()]
    page.keyboard.press("y")  # within the query it is a letter
    assert page.get_by_label("What to look for").input_value() == "the printer does not answery"
    find(page, "the printer does not answer")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("y")
    page.locator("#said", has_text="1 judged; queries with an answer: 1").wait_for()
    page.keyboard.press("n")
    page.locator("#said", has_text="2 judged").wait_for()
    assert path.read_text().splitlines()[1:] == [
        f"the printer does not answer,{names[0]},1",
        f"the printer does not answer,{names[1]},0",
    ]
    assert page.evaluate("[...document.querySelectorAll('#hits li')].indexOf(document.activeElement)") == 2
    page.reload()
    lines.first.get_by_role("button", name="answers", pressed=True).wait_for()
    assert lines.nth(1).get_by_role("button", name="no answer", pressed=True).count() == 1
    lines.first.get_by_role("button", name="answers").click()
    page.locator("#said", has_text="1 judged; queries with an answer: 0").wait_for()
    assert lines.first.get_by_role("button", pressed=True).count() == 0
    page.keyboard.press("ArrowDown")
    page.keyboard.press("u")
    page.locator("#said", has_text="0 judged").wait_for()
    assert path.read_text() == "query,id,relevant\n"


def test_of_two_judgements_the_last_counts_also_in_capitals(opened, kept):
    url, path = kept
    page = opened(f"{url}/")
    find(page, "the printer does not answer")
    page.evaluate("""() => {
        const send = window.fetch;
        let first = true;
        window.fetch = async (path, given) => {
            if (path === "judge" && first) {
                first = false;
                await new Promise((go) => setTimeout(go, 500));
            }
            return send(path, given);
        };
    }""")
    for key in ("ArrowDown", "Shift+Y", "ArrowUp", "Shift+N"):
        page.keyboard.press(key)
    first = page.locator("#hits li").first
    first.get_by_role("button", name="no answer", pressed=True).wait_for()
    page.locator("#said", has_text="1 judged; queries with an answer: 0").wait_for()
    page.wait_for_timeout(700)
    assert [row.split(",")[2] for row in path.read_text().splitlines()[1:]] == ["0"]
    assert first.get_by_role("button", name="answers", pressed=True).count() == 0


def test_a_judged_page_fits_a_telephone_and_runs_no_text(opened, kept):
    url, path = kept
    page = opened(f"{url}/", 400, "dark")
    hostile = "</script><script>window.ran = 1</script> the printers"
    find(page, hostile)
    page.locator("#hits li", has_text="the printers").first.get_by_role("button", name="answers").first.click()
    page.locator("#said", has_text="1 judged").wait_for()
    assert page.evaluate("window.ran") is None
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    assert path.read_text().startswith(f"query,id,relevant\n{hostile},")


def test_who_is_not_asked_sees_no_buttons(opened, url):
    page = opened(f"{url}/")
    find(page, "printer")
    assert page.locator(".judge").count() == 0
    assert not page.locator("#judging").is_visible()
