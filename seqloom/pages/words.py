"""Words of every page, in English and Chinese side by side."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

LANGUAGES = ("en", "zh")
TAGS = {"en": "en", "zh": "zh-CN"}  # for the lang attribute

Pair = tuple[str, str]  # English, Chinese

WORDS: dict[str, Pair] = {
    "contents": ("Contents", "目录"),
    "no script": (
        "The charts need JavaScript; every number is in the tables.",
        "图表需要 JavaScript；所有数字都在表格中。",
    ),
    "numbers": ("The numbers", "数值"),
    "made by": (
        "Made by seqloom {version}. This page loads nothing from anywhere.",
        "由 seqloom {version} 生成。本页面不加载任何外部内容。",
    ),
    "colon": (": ", "："),
    "comma": (", ", "，"),
    "semicolon": ("; ", "；"),
    "legend": ("Models; press one to hide or show it", "模型；点按可隐藏或显示"),
    "verdict.best": ("best", "最佳"),
    "verdict.tie": ("tie", "并列"),
    "verdict.worse": ("worse", "较差"),
    "verdict.unclear": ("unclear", "不明"),
    "verdict.failed": ("failed", "失败"),
    "verdict.": ("not tested", "未检验"),
}


class Speaker:
    """Says things in one language."""

    def __init__(self, language: str, words: Mapping[str, Pair] = MappingProxyType({})) -> None:
        """`words`: further texts, beside those that every page has."""
        self.language, self._column = language, LANGUAGES.index(language)
        self._words = {**WORDS, **words}

    def __call__(self, key: str, **values: Any) -> str:
        return self._words[key][self._column].format(**values)

    def by(self, what: str, key: str, **values: Any) -> str:
        """The text for this unit of latency, where it differs."""
        return self(f"{key}.{what}" if f"{key}.{what}" in self._words else key, **values)

    def term(self, group: str, name: Any) -> str:
        """The word for a name that a result uses; the name itself when it has none."""
        known = self._words.get(f"{group}.{name}")
        return known[self._column] if known else str(name)

    def pick(self, pair: Pair) -> str:
        """This language's side of a text in both."""
        return pair[self._column]

    def of(self, texts: Any) -> list[str]:
        """This language's list of sentences, else the English one."""
        found = texts if isinstance(texts, dict) else {}
        return [str(text) for text in found.get(self.language) or found.get("en") or []]
