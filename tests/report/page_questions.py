"""Five questions answered on a page by a script that only searches, clicks and reads: seconds and clicks of each."""

import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import sync_playwright


@contextmanager
def chromium():
    """A browser; None where there is none."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        except Exception:
            yield None
            return
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Reader:
    """Somebody who searches, clicks and reads, and counts both."""

    page: object
    clicks: int = 0
    started: float = field(default_factory=time.perf_counter)

    def click(self, what):
        """Click the first element of a selector."""
        self.clicks += 1
        self.page.locator(what).first.click()

    def choose(self, view, facet, value):
        """Choose the first value of a facet that begins so."""
        self.clicks += 1
        self.shown(view)
        select = self.page.locator(f"#view-{view} select[name={facet}]")
        options = select.locator("option").all_text_contents()
        select.select_option(label=next(option for option in options if option.startswith(value)))

    def search(self, view, words):
        """Type into the search of a table."""
        self.clicks += 1
        self.shown(view)
        self.page.locator(f"#view-{view} input[type=search]").fill(words)

    def shown(self, view):
        """Wait until a view is there."""
        self.page.locator(f"#view-{view} [role=search]").wait_for()

    def read(self, what):
        """The texts of all elements of a selector that are shown."""
        return [text.strip() for text in self.page.locator(what).all_inner_texts()]

    def status(self, view):
        """ "12 of 784 modules"."""
        self.shown(view)
        return self.page.locator(f"#view-{view} [role=status]").first.inner_text()


def what_blocks(reader):
    """Which modules the target refuses something of, and why."""
    why = reader.read("#view-overview h3:has-text('refuses') + .wide tbody tr")
    reader.click("a.card:has-text('refuses something')")
    reader.shown("modules")
    return reader.status("modules"), reader.read("#view-modules tbody td.long")[:1], why[:3]


def what_needs_a_guard(reader):
    """Which modules have guards, and what their indices come from."""
    sources = reader.read("#view-overview h3:has-text('Guards') + .wide tbody tr")
    reader.click("nav a:has-text('Modules')")
    reader.choose("modules", "guard", "has guards")
    return reader.status("modules"), sources[:3]


def what_is_written(reader, words):
    """What a scatter writes, and where it stands."""
    reader.click("nav a:has-text('Ops')")
    reader.search("ops", words)
    reader.click("#view-ops tr.row .open")
    drawn = reader.page.locator("#view-ops tr.detail svg.picture").first.get_attribute("aria-label")
    return reader.status("ops"), drawn


def what_got_slower(reader, earlier):
    """Which scatters are slower than in an earlier report."""
    reader.clicks += 1
    reader.page.locator("input[type=file]").set_input_files(earlier)
    reader.page.locator("#compared li").first.wait_for()
    told = reader.read("#compared li")
    reader.click("#compared a[href$='change=slower']")
    return told, reader.status("ops"), reader.read("#view-ops tr.row")[:1]


def what_is_left_in_loops(reader):
    """Which scatters end in a loop."""
    reader.click("a.card:has-text('in a loop')")
    return reader.status("ops"), reader.read("#view-ops tr.row .open")[:2]


def asked(browser, page, question, *more):
    """Ask one question of a page that is opened anew: the answer, seconds from the start of the loading, and clicks."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    errors = []
    tab.on("pageerror", lambda error: errors.append(error))
    reader = Reader(tab)
    tab.goto(Path(page).resolve().as_uri())
    tab.locator("a.card").first.wait_for()
    answer = question(reader, *more)
    seconds = time.perf_counter() - reader.started
    tab.close()
    assert errors == []
    return answer, seconds, reader.clicks
