"""Usual names of columns, in English and Chinese, by the role that such a column has.

Names are compared without regard to case and separators: `review_text`, `Review Text` and `reviewText` are the same.
"""

from __future__ import annotations

import re
import shlex
from functools import lru_cache

TEXT = {
    "text", "texts", "sentence", "sentences", "review", "reviews", "comment", "comments", "content", "contents", "body",
    "message", "messages", "msg", "tweet", "tweets", "post", "document", "doc", "article", "headline", "title",
    "question", "query", "utterance", "description", "sms", "email", "mail", "paragraph", "passage", "abstract",
    "statement", "snippet", "caption", "transcript", "story", "feedback", "dialogue", "dialog", "summary", "premise",
    "phrase", "string", "input", "plot", "lyrics", "quote", "note", "answer", "response",
}  # fmt: skip
TEXT_ZH = ("文本", "内容", "评论", "句子", "正文", "标题", "问题", "文章", "评价", "摘要", "原文", "描述", "新闻")
LABEL = {
    "label", "labels", "class", "classes", "category", "categories", "target", "sentiment", "topic", "intent",
}  # fmt: skip
LABEL_ZH = ("标签", "类别", "分类", "情感", "意图", "标注", "情感倾向")
IDENTIFIERS = {
    "id", "ids", "idx", "index", "uid", "uuid", "guid", "key", "no", "nr", "number", "rowid", "row", "unnamed0", "pk",
    "hash", "url", "link", "pairid",
}  # fmt: skip
IDENTIFIERS_ZH = ("编号", "序号", "链接")
DIVISIONS = {"split", "fold", "partition", "subset", "splits"}  # which part of the data a row is in
HEADINGS = {  # other usual names, without a role of their own
    "id", "index", "unnamed0", "name", "names", "date", "time", "datetime", "timestamp", "year", "user", "username",
    "author", "country", "city", "price", "rating", "stars", "score", "type", "status", "url", "lang", "language",
    "genre", "gender", "age", "email", "created", "createdat", "likes", "votes",
    "姓名", "日期", "时间", "作者", "语言", "类型", "评分", "星级", "编号", "序号", "用户", "来源",
}  # fmt: skip
NOT_A_TEXT = {
    "id", "ids", "idx", "index", "len", "length", "count", "lang", "language", "date", "time", "user", "author", "url",
    "type", "num", "score", "source", "name", "label", "labels", "class", "category",
}  # fmt: skip

TWO_TEXTS = [  # the first text, and what may be the second
    ({"premise"}, {"hypothesis"}),
    ({"sentence1", "sentencea", "sent1", "s1"}, {"sentence2", "sentenceb", "sent2", "s2"}),
    ({"question1", "q1"}, {"question2", "q2"}),
    ({"text1", "texta"}, {"text2", "textb"}),
    ({"title", "headline", "subject", "reviewtitle", "标题", "新闻标题"},
     {"description", "body", "content", "contents", "article", "abstract", "selftext", "message", "review",
      "reviewbody", "reviewtext", "shortdescription", "正文", "内容", "描述", "摘要", "新闻内容", "新闻正文"}),
    ({"question", "query", "问题"},
     {"answer", "sentence", "passage", "context", "document", "paragraph", "response", "答案", "回答", "段落"}),
    ({"claim"}, {"evidence"}),
    ({"前提"}, {"假设"}),
    ({"句子1", "文本1", "问题1"}, {"句子2", "文本2", "问题2"}),
]  # fmt: skip

SOURCE_TARGET = [  # names of sources, and of their targets
    ({"source", "src", "sourcetext", "srctext"}, {"target", "tgt", "trg", "targettext", "tgttext"}),
    ({"input", "inputs", "inputtext", "prompt", "instruction"},
     {"output", "outputs", "outputtext", "response", "completion", "target"}),
    ({"question", "query"}, {"answer", "response", "reply"}),
    ({"dialogue", "dialog", "document", "article", "text", "content", "body", "transcript", "report", "passage"},
     {"summary", "highlights", "abstract", "headline", "title"}),
    ({"abstract", "description"}, {"title", "headline"}),
    ({"context", "post", "message"}, {"response", "reply"}),
    ({"incorrect", "original", "wrong", "before", "noisy", "complex", "normal"},
     {"correct", "corrected", "correction", "after", "clean", "simple", "simplified"}),
    ({"word", "grapheme", "graphemes", "spelling"}, {"pronunciation", "phoneme", "phonemes", "ipa"}),
    ({"原文", "源文", "源语言"}, {"译文", "翻译", "目标语言"}),
    ({"问题", "提问"}, {"答案", "回答"}),
    ({"输入"}, {"输出"}),
    ({"正文", "内容", "文章", "原文", "对话"}, {"摘要", "标题"}),
    ({"摘要"}, {"标题"}),
    ({"上联"}, {"下联"}),
]  # fmt: skip

LANGUAGES = {
    "en", "eng", "english", "de", "deu", "ger", "german", "fr", "fra", "fre", "french", "es", "spa", "spanish",
    "it", "ita", "italian", "pt", "por", "portuguese", "nl", "nld", "dutch", "ru", "rus", "russian", "zh",
    "zho", "chi", "cmn", "chinese", "zhcn", "ja", "jpn", "japanese", "ko", "kor", "korean", "ar", "ara",
    "arabic", "cs", "ces", "cze", "czech", "fi", "fin", "finnish", "sv", "swe", "swedish", "da", "dan",
    "danish", "no", "nor", "norwegian", "pl", "pol", "polish", "tr", "tur", "turkish", "uk", "ukr", "ukrainian",
    "ro", "ron", "romanian", "hu", "hun", "hungarian", "el", "ell", "greek", "he", "heb", "hebrew", "hi", "hin",
    "hindi", "vi", "vie", "vietnamese", "id", "ind", "indonesian", "th", "tha", "thai", "fa", "fas", "persian",
    "bg", "bul", "bulgarian", "hr", "hrv", "croatian", "et", "est", "estonian", "lv", "lav", "latvian", "lt",
    "lit", "lithuanian", "sk", "slk", "slovak", "英文", "英语", "中文", "汉语", "法文", "法语", "德文", "德语",
    "日文", "日语", "韩文", "韩语", "俄文", "俄语", "西班牙文", "西班牙语", "文言文", "白话文", "现代文",
    "古文",
}  # fmt: skip


_PLAIN = re.compile(r"[\w@%+=:,./-]+")  # needs no quotes in a shell


def flag(role: str, name: str = "NAME") -> str:
    """The option that says which column has a role, as the user would type it."""
    text = f"{role}={name}"
    return f"--columns {text}" if _PLAIN.fullmatch(text) else "--columns " + shlex.quote(text)


@lru_cache(1 << 12)
def plain(name: str) -> str:
    """A name without case and separators."""
    return re.sub(r"[\s_\-.:#]+", "", name).casefold()


@lru_cache(1 << 12)
def words_of(name: str) -> list[str]:
    """`review_text` and `reviewText` as [review, text]."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[\s_\-.:#]+", apart.casefold()) if word]


def names_a_text(name: str) -> bool:
    found = set(words_of(name))
    return plain(name) in TEXT or name.strip().endswith(TEXT_ZH) or bool(found & TEXT and not found & NOT_A_TEXT)


def names_a_label(name: str) -> bool:
    last = words_of(name)[-1:]
    return plain(name) in LABEL | {"y"} or name.strip().endswith(LABEL_ZH) or bool(last and last[0] in LABEL)


def names_an_identifier(name: str) -> bool:
    last = words_of(name)[-1:]
    known = plain(name) in IDENTIFIERS or name.strip().endswith(IDENTIFIERS_ZH) or not name.strip()
    return known or bool(last and last[0] in {"id", "ids", "idx", "uuid", "url"})


def language_of(name: str) -> str | None:
    """The language in a column's name: `en`, `German`, `text_fr`; but `query_id` is not Indonesian."""
    if len(words_of(name)) > 1 and names_an_identifier(name):
        return None
    found = [word for word in (plain(name), *words_of(name)) if word in LANGUAGES]
    return found[0] if found else None


def is_usual(name: str) -> bool:
    """Whether this is a usual name of a column: a first line that has one is a header."""
    known = plain(name)
    paired = any(known in first or known in second for first, second in (*TWO_TEXTS, *SOURCE_TARGET))
    alone = known in TEXT | LABEL | DIVISIONS | HEADINGS or known in TEXT_ZH + LABEL_ZH
    return alone or paired or (names_a_label(name) and known != "y")
