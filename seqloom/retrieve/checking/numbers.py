"""Numbers, dates and units in one spelling: "1,300 metres", "1300 m" and "1300米"; "two" and "2"; "20%" and "两成";
"a third" and "三分之一"; "6 p.m.", "18:00" and "下午六点"."""

from __future__ import annotations

import re
from decimal import Decimal

_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_TENS = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "亿": 100_000_000}
SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12, "bn": 9, "tn": 12} | {
    "百": 2, "千": 3, "万": 4, "亿": 8, "万亿": 12, "k": 3, "m": 6,
}  # fmt: skip
_HAN = "[零〇一二两三四五六七八九十百千万亿]+(?:点[零一二三四五六七八九]+)?"
_ARABIC = r"(?<!\d)\d{1,3}(?:[,， \u00a0\u202f]\d{3})+(?!\d)(?:\.\d+)?|\d+(?:[.:]\d+)*"
_CLOCK_24 = r"(?:1[3-9]|2[0-3])[点时](?:半|[0-5]?\d分)?"
_CLOCK = rf"(凌晨|早上|早晨|上午|下午|晚上|傍晚)(\d{{1,2}}|{_HAN})[点时](半|(?:\d{{1,2}}|{_HAN})分)?"
_FRACTION = rf"({_HAN}|\d+)分之({_HAN}|\d+)"
_MONEY = "|".join(f"(?<={sign})" for sign in ("[$€£¥]", r"\bEUR ", r"\bUSD ", r"\bGBP "))  # £3m, but 3m of cloth
_UNGROUPED = [re.sub(r"\((?!\?)", "(?:", pattern) for pattern in (_FRACTION, _CLOCK)]
PATTERN = (
    rf"百分之(?:{_HAN}|{_ARABIC})|{_UNGROUPED[0]}|{_UNGROUPED[1]}|(?<!\d){_CLOCK_24}|"
    rf"(?<![\d/])\d{{1,2}}/\d{{1,2}}(?![\d/])|(?:周|星期)[一二三四五六日天]|每(?:周|星期)[一二三四五六日天](?![次回天个])|\d+\s?比\s?\d+|"
    rf"(?!一成为)[一二两三四五六七八九1-9]成(?![功员立本])|"
    rf"(?:{_MONEY})(?:{_ARABIC})\s?[mk]\b|"
    rf"(?<![A-Za-z])(?:{_ARABIC})(?:(?:st|nd|rd|th|s)\b|\s?(?:thousand|million|billion|trillion|bn|tn)\b|万亿|[百千万亿](?![米克瓦]))?|"
    rf"\b[A-Za-z]{{1,4}}-?\d+[A-Za-z\d]*|(?!一[切些样起直定般旦致半]|万一|十分(?!钟)|千万别|千[米克瓦]){_HAN}"
)

_WORDS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen
"""
_OTHERS = "hundred thousand million billion trillion once twice thrice quarter double triple"
_ORDINALS = """
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
sixteenth seventeenth eighteenth nineteenth twentieth
"""
_ROUND = "twenty thirty forty fifty sixty seventy eighty ninety"
WORDS = {
    **{word: str(n) for n, word in enumerate(_WORDS.split())},
    **{word: str(10 * n) for n, word in enumerate(_ROUND.split(), 2)},
    **{word: f"{n}." for n, word in enumerate(_ORDINALS.split(), 1)},
    **{word: word for word in _OTHERS.split()},
    **{f"{word}s": f"/{n}" for n, word in enumerate(_ORDINALS.split(), 1) if n > 2},
    "dozen": "12",
    "quarters": "/4",
}
_SINGLE_PARTS = {"quarter": "1/4"} | {f"{n}.": f"1/{n}" for n in range(3, 13)}  # after "a" or "one"
_TIMES_TEN = frozenset(str(10 * n) for n in range(2, 10))
_MONTHS = "january february march april may june july august september october november december"
_SHORT_MONTHS = {m[:3]: m for m in _MONTHS.split()} | {"sept": "september"}
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
MONTHS = frozenset(_MONTHS.split())
CALENDAR = frozenset(f"{_MONTHS} {_DAYS}".split())

_UNITS = """
km kilometre kilometres kilometer kilometers 公里 千米; m metre metres meter meters 米;
cm centimetre centimetres centimeter centimeters 厘米; mm millimetre millimetres millimeter millimeters 毫米;
ft foot feet 英尺; inch inches 英寸; mi mile miles 英里; kg kilogram kilograms 公斤 千克;
g gram grams gramme grammes 克; mg milligram milligrams 毫克; t tonne tonnes ton tons 吨; lb lbs;
% percent per_cent; °c celsius 摄氏度 ℃; °f fahrenheit 华氏度; ° degree degrees 度; w watt watts 瓦;
kw kilowatt kilowatts 千瓦; mw megawatt megawatts; gb gigabyte gigabytes; mb megabyte megabytes;
kb kilobyte kilobytes; tb terabyte terabytes; mmhg; l litre litres liter liters 升;
ml millilitre millilitres milliliter milliliters 毫升;
h hr hour hours 小时; min minute minutes 分钟; s sec seconds 秒 秒钟; ms millisecond milliseconds 毫秒; am a.m;
pm p.m; day days 天 日; week weeks 周 星期; month months 月 个月; year years 年; night nights;
century centuries 世纪; decade decades; $ dollar dollars usd 美元; € euro euros eur 欧元; £ pound pounds 英镑;
cent cents 美分; 元 人民币 ¥; 毫摩尔; 亩; 公顷 hectare hectares ha; 级; 倍;
m² m2 sqm square_metre square_metres square_meter square_meters 平方米; ft² square_foot square_feet 平方英尺;
km² km2 square_kilometre square_kilometres square_kilometer square_kilometers 平方公里 平方千米;
m³ m3 cubic_metre cubic_metres cubic_meter cubic_meters 立方米; nmi nautical_mile nautical_miles 海里;
db decibel decibels 分贝; kwh kilowatt_hours 千瓦时; v volt volts 伏; hz hertz 赫兹; ghz gigahertz; mhz megahertz;
tbsp tablespoon tablespoons; tsp teaspoon teaspoons; oz ounce ounces; yd yard yards;
μg µg mcg microgram micrograms 微克;
cl centilitre centilitres; ppm; rpm;
"""  # one spelling and the others of it, up to a semicolon
UNITS = {
    word.replace("_", " ").strip(): group.split()[0].strip("_") for group in _UNITS.split(";") for word in group.split()
}
_AFTER_NUMBERS = (
    "m g t w s h l v am pm min sec ms ha mi mb gb kb tb kw mw ft lb lbs ml hr m2 m3 km2 oz yd cl"  # a unit nowhere else
)
_SHORT = frozenset(_AFTER_NUMBERS.split())


# Words that are read as "per" and a unit.
EVERY = {"hourly": "h", "daily": "day", "nightly": "night", "weekly": "week", "monthly": "month", "yearly": "year"} | {
    "annual": "year", "annually": "year",
}  # fmt: skip


def value(text: str) -> str:
    """A number in its normal form."""
    text = text.replace("，", ",")
    if text.startswith("百分之"):
        return value(text[3:]) + "%"
    if (part := re.fullmatch(_FRACTION, text)) is not None:
        return f"{value(part[2])}/{value(part[1])}"
    if (hour := re.fullmatch(_CLOCK, text)) is not None:
        minutes = "30" if hour[3] == "半" else value(hour[3][:-1]) if hour[3] else "0"
        return clock(f"{value(hour[2])}:{minutes:0>2}", "pm" if hour[1] in ("下午", "晚上", "傍晚") else "am")
    if re.fullmatch(_CLOCK_24, text):
        return f"{text[:2]}:{'30' if text[3:] == '半' else text[3:-1] or '00':0>2}"
    if (percent := re.fullmatch(r"(.)成", text)) is not None:
        return f"{_DIGITS.get(percent[1]) or percent[1]}0%"
    if (day := re.fullmatch(r"(每?)(?:周|星期)(.)", text)) is not None:
        return f"{day[1]}周" + day[2].replace("天", "日")
    if (score := re.fullmatch(r"(\d+)\s?比\s?(\d+)", text)) is not None:
        return f"{score[1]}:{score[2]}"
    if "/" in text:
        return text
    if re.fullmatch(_HAN, text):
        return _chinese(text)
    if re.fullmatch(r"\d\d?:\d\d", text):
        return text.removeprefix("0")
    match = re.fullmatch(rf"({_ARABIC})\s?(.*)", text)
    if match is None or ":" in match[1] or match[1].count(".") > 1:
        return text.lower().replace("-", "")
    number, ending = Decimal(re.sub(r"[,\s]", "", match[1])), match[2].lower()
    if ending in ("st", "nd", "rd", "th"):
        return f"{number}."
    if ending == "s":
        return text.lower()
    return _plain(number * 10 ** SCALES.get(ending, 0))


def scaled(number: str, scale: str) -> str:
    """Of "4" and "million", "4000000"."""
    return (
        _plain(Decimal(number) * 10 ** SCALES[scale]) if number.replace(".", "", 1).isdigit() else f"{number} {scale}"
    )


def joined(one: str, other: str, between: str) -> str:
    """Of "20" and "5", "25"; empty if the two are no number in words."""
    tens = one in _TIMES_TEN and len(other) == 1 and other.isdigit() and other != "0"
    return str(int(one) + int(other)) if tens and between in ("-", " ", "") else ""


def fraction(one: str, other: str) -> str:
    """Of "2" and "thirds", "2/3"; of "one" or "a" and "third", "1/3"; empty if the two are no fraction."""
    if other.startswith("/") and one.isdigit():
        return one + other
    return _SINGLE_PARTS.get(other, "") if one in ("1", "a") else ""


def clock(time: str, half: str) -> str:
    """A time of the day on the clock of 24 hours, from "6" or "6:30" and "am" or "pm"; empty if it is none."""
    hour, _, minutes = time.partition(":")
    if not hour.isdigit() or not 0 < int(hour) <= 12:
        return ""
    return f"{int(hour) % 12 + 12 * (half == 'pm')}:{minutes or '00'}"


def _plain(number: Decimal) -> str:
    return f"{number.normalize():f}"


def _chinese(text: str) -> str:
    """The value of a number in characters; one of digits alone, as in 二〇二一, is read digit by digit."""
    if "点" in text:
        whole, _, part = text.partition("点")
        return _plain(Decimal(f"{_chinese(whole)}.{_chinese(part)}"))
    if not any(c in _TENS for c in text):
        return "".join(str(_DIGITS[c]) for c in text)
    total = below = digit = 0
    for c in text:
        if c in _DIGITS:
            digit = _DIGITS[c]
        elif _TENS[c] >= 10_000:
            total, below, digit = (total + below + digit or 1) * _TENS[c], 0, 0
        else:
            below, digit = below + (digit or 1) * _TENS[c], 0
    return str(total + below + digit)


def word(text: str, capital: bool) -> str:
    """The normal form of a number in words or of a month or day; empty for any other word."""
    if text in WORDS:
        return WORDS[text]
    text = _SHORT_MONTHS.get(text, text) if capital and text != "mar" else text
    return text if capital and text in CALENDAR else ""


def unit(text: str, after_number: bool) -> str:
    """The normal form of a unit; empty if it is none."""
    low = text.lower().replace("％", "%")
    return UNITS.get(low, "") if after_number or low not in _SHORT else ""
