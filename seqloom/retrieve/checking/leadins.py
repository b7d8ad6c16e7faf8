"""What a writer puts before a sentence to say where it stands: "According to the report,", "The minutes record that".

It says nothing that the source would have to say, so it is left out before the sentence is laid beside a source. It
must name a kind of document or nobody ("it is stated that") and a verb that neither doubts nor confirms. A person or
an organisation that speaks is part of the claim and stays; so do names and numbers, unless the document or the name
of its file has them: "the Northgate report".
"""

from __future__ import annotations

import re
from functools import lru_cache

_DOCUMENTS = """
abstract account act agreement announcement article author authors brochure bulletin bylaw chapter contract copy data
description directive docs document documentation encyclopaedia encyclopedia entry filing file findings guide
guidelines guide handbook instructions label law lease leaflet letter manual memo memorandum minutes news note notes
notice page paper paragraph passage policy protocol publication readme recipe record records regulation regulations
release report researchers results review rules section source specification statement statute story study summary
survey terms text transcript webpage website write-up writer
"""
_REPORTING = """
add advise describe detail emphasise emphasize explain indicate instruct list mention note observe point_out record
recommend remark report require say set_out show specify state stipulate tell warn write
"""
_PAST = {"say": "said", "tell": "told", "show": "shown", "write": "wrote", "set": "set"}


def _inflected(verb: str) -> str:
    head, _, rest = verb.partition("_")
    third = re.sub(r"y$", "ie", head) if head.endswith("fy") else head
    past = _PAST.get(head) or re.sub(r"([^aeiou])y$", r"\1i", head).removesuffix("e") + "ed"
    return f"(?:{head}|{third}s|{past})" + (f" {rest.replace('_', ' ')}" if rest else "")


_NOUN = f"(?:{'|'.join(_DOCUMENTS.split())})"
_VERB = f"(?:{'|'.join(map(_inflected, _REPORTING.split()))})"
_NAMED = rf"(?:(?:the|this|that|its|their|an?|our)\s+)?(?P<before>(?:[\w.&’'-]+\s+){{0,4}}?)(?P<noun>{_NOUN})"
_AFTER = r"(?P<after>(?:\s+(?:of|for|on|from|in|about|by)\s[^,;:.]{1,60})?)"
_WHOM = r"(?:\s+(?:you|us|users?|readers|patients|customers|operators|owners|everyone)(?=\s+(?:that|to)\b))?"
_ALSO = r"(?:(?:also|further|explicitly|clearly|additionally)\s+)?"
_BEFORE = (
    rf"(?:according to|as per|per|under|in|as (?:stated|noted|described|specified|reported|explained|set out) (?:in|by)"
    rf"|pursuant to|in accordance with|based on)\s+(?:the terms of\s+)?{_NAMED}{_AFTER},\s+",
    rf"as\s+{_NAMED}{_AFTER}\s+{_ALSO}{_VERB},\s+",
    rf"(?:in\s+)?{_NAMED}{_AFTER}\s+{_ALSO}{_VERB}{_WHOM}(?:\s+that\b|\s+to\b|\s*:)?,?\s+",
    rf"it\s+(?:also\s+)?(?:is\s+(?:also\s+)?(?:{_VERB})|(?:{_VERB}))\s+that\s+(?P<before>)(?P<noun>)",
)
_BEHIND = (
    rf",\s+(?:according to|as (?:stated|noted|described|reported) in)\s+{_NAMED}{_AFTER}(?=[.!]?$)",
    rf",\s+(?:as\s+)?{_NAMED}{_AFTER}\s+{_ALSO}{_VERB}(?=[.!]?$)",
)

_PAPERS = (
    "报告|年报|半年报|季报|财报|公告|合同|协议|协议书|说明书|手册|条例|法律|法规|规定|办法|章程|文件|文章|报道|新闻|研究|论文|"
    "摘要|纪要|会议记录|记录|资料|材料|百科|词条|指南|通知|文档|食谱|菜谱|原文|文中|文本|作者|研究人员|调查|数据|统计|结果|"
    "公报|简报|声明|条款|须知|标签|介绍|描述"
)
_WRITES = (
    "显示|指出|称|说|表示|提到|写道|规定|要求|约定|记载|介绍|说明|建议|提示|强调|表明|载明|注明|明确|写明|报道|提及|"
    "透露|描述"
)  # fmt: skip
_PAPER = rf"(?:该|本|此|这份|这篇|该份|该篇)?(?P<before>[\u4e00-\u9fff\d]{{0,8}}?)(?P<noun>{_PAPERS})"
_CHINESE = (
    rf"(?:根据|依据|按照|依照|依|按|据){_PAPER}(?:中|里)?(?:的?(?:{_WRITES}|内容|数据|信息))?[，,：:]",
    rf"(?:在)?{_PAPER}(?:中|里)?(?:还|也|同时|明确)?(?:{_WRITES})[，,：:]?",
    r"据(?P<before>)(?P<noun>)(?:报道|介绍|记载|统计|悉|了解|称)[，,]",
)
_CHINESE_BEHIND = (rf"[，,]{_PAPER}(?:中|里)?(?:{_WRITES})(?=[。！]?$)",)
_STARTS = [re.compile(rf"\s*{pattern}", re.IGNORECASE) for pattern in (*_BEFORE, *_CHINESE)]
_ENDS = [re.compile(pattern, re.IGNORECASE) for pattern in (*_BEHIND, *_CHINESE_BEHIND)]


# What stands in a law or a contract is a duty, also in the indicative.
_DEMANDS = re.compile(
    r"\b(?:require|stipulate|act|agreement|contract|law|lease|policy|regulations?|rules|statute|terms)", re.I
)
_DEMANDS_CHINESE = re.compile("要求|规定|约定|合同|协议|条例|条款|办法")


def readings(sentence: str, path: str, text: str) -> list[str]:
    """A sentence as it is and without its lead-in; "the contract requires that you pay" also as "you must pay"."""
    claim = without(sentence, path, text)
    if claim == sentence:
        return [sentence]
    led = sentence[: len(sentence) - len(claim)]
    demand = "Must " if _DEMANDS.search(led) else "必须" if _DEMANDS_CHINESE.search(led) else ""
    return [sentence, claim, *([demand + claim] if demand else [])]


@lru_cache(maxsize=256)
def without(sentence: str, path: str, text: str) -> str:
    """The sentence without words that say where it stands, which is in a text of the file `path`."""
    for pattern in _STARTS:
        if (match := pattern.match(sentence)) and _known(match, f"{path} {text}") and len(sentence) > match.end() + 2:
            rest = sentence[match.end() :]
            return rest[0].upper() + rest[1:]
    for pattern in _ENDS:
        if (match := pattern.search(sentence)) and _known(match, f"{path} {text}") and match.start() > 4:
            return sentence[: match.start()] + sentence[match.end() :]
    return sentence


def _known(match: re.Match[str], document: str) -> bool:
    """Names, numbers and Chinese words around the noun stand in the document."""
    around = " ".join(match[group] or "" for group in ("before", "after") if group in match.groupdict())
    if title := re.search(r"[A-Z][\w-]+\s+[A-Z]\w+", match["before"] + match["noun"]):
        return title[0] in document
    low = document.lower()
    english = re.findall(r"\b[A-Z][\w-]+|\d+", around)
    chinese = re.findall(r"[\u4e00-\u9fff]{2,}", around)
    return all(word.lower() in low for word in english) and all(word in low or word in _KINDS for word in chinese)


_KINDS = frozenset(
    ("使用", "产品", "年度", "半年度", "公司", "租赁", "会议", "相关", "上述", "有关", "用户", "官方", "最新")
)
