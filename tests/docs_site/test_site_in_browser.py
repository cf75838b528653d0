"""What the site adds to its theme for those who do not see a page or use no mouse, in a browser where there is one."""

import shutil
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.sweep

SCRIPT = (Path(__file__).parents[2] / "docs" / "_static" / "access.js").read_text()
PAGE = """<!DOCTYPE html><html lang="en"><head><title>a page</title></head><body>
<aside class="sidebar-drawer"></aside><aside class="toc-drawer"></aside><p class="caption" role="heading">Start</p>
<table><thead><tr><th class="head"><p></p></th><th>what</th></tr></thead></table>
<pre id="wide" style="width:50px;overflow:auto">a line that is wider than its block</pre><pre id="short">a</pre>
<dl><dt>f(<dl class="params"><dd>x</dd><dd>y</dd></dl>)</dt><dd>Add.</dd></dl></body></html>"""


def test_a_page_can_be_read_without_eyes_and_used_without_a_mouse():
    """Captions have a level, sidebars names, blocks that scroll the focus; empty heads and false lists are none."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with playwright.sync_playwright() as started:
        try:
            browser = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        except Exception:
            pytest.skip("no browser")
        tab = browser.new_page()
        tab.set_content(PAGE.replace("</head>", f"<script>{SCRIPT}</script></head>"))
        assert tab.locator(".caption").get_attribute("aria-level") == "2"
        labels = [one.get_attribute("aria-label") for one in tab.locator("aside").all()]
        assert labels == ["Site", "On this page"]
        assert tab.locator("th").all_inner_texts() == ["what"]
        assert [tab.locator(name).get_attribute("tabindex") for name in ("#wide", "#short")] == ["0", None]
        assert tab.locator("dl").count() == 1
        assert tab.locator("div.params > div").all_inner_texts() == ["x", "y"]
        browser.close()
