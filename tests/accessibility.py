"""Pages through axe-core in Chromium: as wide as a desk's and a telephone's screen, light and dark, and by keyboard.

`python tests/accessibility.py PAGE... [--pictures FOLDER]`, where a page is a file or an address, needs Chromium and
`pip install playwright axe-playwright-python`. It prints what axe finds and ends with 1 if that is anything.
"""

import argparse
import importlib.resources
import os
import shutil
import sys
from pathlib import Path

WIDTHS, SCHEMES = (1280, 400), ("light", "dark")
MOST_STOPS = 400
"""Presses of the tab key after which a page counts as a trap."""


def main() -> int:
    """Look at the pages; the number of the exit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", metavar="PAGE")
    parser.add_argument("--pictures", type=Path, help="folder for pictures")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    axe = (importlib.resources.files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    found = 0
    with sync_playwright() as driver:
        root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=chromium, args=root)
        for name in options.pages:
            address = name if "://" in name else Path(name).resolve().as_uri()
            for width in WIDTHS:
                for scheme in SCHEMES:
                    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
                    page = context.new_page()
                    page.goto(address)
                    page.wait_for_timeout(1500)
                    found += told(f"{name}, {width} px, {scheme}", page, axe)
                    if options.pictures:
                        options.pictures.mkdir(parents=True, exist_ok=True)
                        stem = f"{Path(name.partition('#')[0]).stem or 'served'}-{width}-{scheme}"
                        page.screenshot(path=options.pictures / f"{stem}.png", full_page=True)
                    context.close()
        browser.close()
    return found > 0


def told(what: str, page, axe: str) -> int:
    """The number of things found on an open page, which are printed."""
    page.evaluate(axe)
    lines = []
    for rule in page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]:
        for node in rule["nodes"]:
            why = " ".join(node["failureSummary"].split())
            lines.append(f"{rule['id']} ({rule['impact']}): {node['html'][:160]}\n    {why[:300]}")
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if wide > 0:
        lines.append(f"wider than the screen by {wide} px")
    lines += [f"not reached by keyboard: {html}" for html in unreached(page)]
    print(f"{what}: {len(lines)}")
    for line in lines:
        print(f"  {line}")
    return len(lines)


def unreached(page) -> list[str]:
    """The visible controls that the tab key does not reach."""
    page.evaluate("window.reached = new Set([document.activeElement]); document.activeElement?.blur()")
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        if page.evaluate("""() => { const at = document.activeElement, seen = window.reached.has(at);
                window.reached.add(at); return seen || at === document.body; }"""):
            break
    return page.evaluate("""() => [...document.querySelectorAll('a[href], button, input, select, summary')]
        .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.disabled && !window.reached.has(one))
        .map((one) => one.outerHTML.slice(0, 160))""")


if __name__ == "__main__":
    sys.exit(main())
