"""Links of the pages: every relative one leads to a file, and every anchor to a heading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.repository import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
_CODE = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]+`")
_LINK = re.compile(r"\]\(([^()\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")
_QUOTED_FILE = re.compile(r"^```\{(?:literalinclude|include|image)\} (\S+)$", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} (.*)$|^\((.*)\)=$", re.MULTILINE)
_EXTERNAL = re.compile(r"[a-z]+:")


def links(text: str) -> Iterator[str]:
    """The targets of a page's links to files and anchors of this project."""
    prose = _INLINE_CODE.sub("", _CODE.sub("", text))
    targets = [first or second for first, second in _LINK.findall(prose)]
    return (target for target in targets if not _EXTERNAL.match(target))


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings and labels."""
    return {label or slug(heading) for heading, label in _HEADING.findall(_CODE.sub("", text))}


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and Sphinx make it."""
    shown = re.sub(r"\]\([^)]*\)", "", heading).lower().replace(" ", "-")
    return re.sub(r"[^\w-]", "", shown)


def broken(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    return not file.exists() or (anchor != "" and anchor not in anchors(file.read_text()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert [target for target in links(page.read_text()) if broken(page, target)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_quoted_file_exists(page: Path) -> None:
    files = _QUOTED_FILE.findall(page.read_text())
    assert [file for file in files if not (page.parent / file).exists()] == []


def test_links_and_headings_are_found() -> None:
    page = (
        "# The `a` page\n(label)=\n[x](b.md#c) `[no](link)` ![i](i.png)\n"
        '```\n# no [l](x.md)\n```\n<img src="p.svg">'
    )
    assert list(links(page)) == ["b.md#c", "i.png", "p.svg"]
    assert anchors(page) == {"the-a-page", "label"}


def test_every_page_is_checked() -> None:
    assert len(PAGES) > 30
    assert sum(len(list(links(page.read_text()))) for page in PAGES) > 150
