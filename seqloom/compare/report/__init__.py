"""The report of a comparison: HTML and Markdown in English and Chinese, and a table for terminals.

It is made from the result alone; no model is loaded.
"""

from seqloom.compare.report.content import document
from seqloom.compare.report.facts import Result, dig, listed
from seqloom.pages import html as pages
from seqloom.pages import markdown as texts
from seqloom.pages.words import LANGUAGES


def html(result: Result) -> str:
    """A single page with both languages."""
    documents = [document(result, language) for language in LANGUAGES]
    version = str(dig(result, "protocol", "versions", "seqloom") or "")
    return pages.render(documents, entries=len(listed(result, "entries")), version=version)


def markdown(result: Result, language: str) -> str:
    return texts.render(document(result, language))


def report_files(result: Result) -> dict[str, bytes]:
    """All files of the report, by name."""
    texts = {
        "report.html": html(result),
        "report.md": markdown(result, "en"),
        "report.zh-CN.md": markdown(result, "zh"),
    }
    return {name: text.encode("utf-8", "backslashreplace") for name, text in texts.items()}
