"""What a careful writer may reword without an alarm, and alterations that look like it.

Every relaxation of the citation checker stands here beside sentences that it must not let through: a phrase that moved
into what somebody said, a name of another thing, a unit repeated wrongly. The author of the rules wrote both sides, so
this shows that the rules hold, and not how often they are right.
"""

from __future__ import annotations

import pytest

from seqloom.retrieve.checking import check
from seqloom.retrieve.document import Document

NOTES = """
Green lentils need 15 minutes longer than red ones. Hikers dread the symptoms of hay fever. The timeout rises from 30
to 60 seconds. The board met twice in May and once in June. The fee is £3m, and the pole is 3 m long. The council agreed
on Monday to sell the hall. The state will pay the rent, but the city may keep the deposit. Vale twice offered terms of
surrender. Thorne twice refused to talk. The firm intends to hire 40 people. The old server is not supported any more.
The sponsor had no role in the study. Members can vote only if they have paid. The clinic takes calls daily and sees
patients weekly. Ana Ruiz, the treasurer, thanked the mayor, Tom Hale. Turn the heater off and the fan on. The shop
sells no tobacco but sells alcohol. Sales rose by 5 percent in 2019 and fell by 2 percent in 2020. We caught 230 bees at
nine farms. Bird flu killed thousands of gannets in 2022. The warranty covers defects in materials for two years. Tests
suggest that hedges can partly offset the loss of meadows. The Act replaces the Bee Act of 1968 and enters into force on
1 May 2020. The ferry sails from Lindholm to Karby three times a day from 3 May 2024.
"""

FAITHFUL = [
    "Green lentils need 15 minutes longer than red lentils.",
    "Hikers dread hay fever symptoms.",
    "The timeout rises from 30 seconds to 60 seconds.",
    "The fee is £3 million, and the pole is 3 metres long.",
    "On Monday the council agreed to sell the hall.",
    "Vale offered terms of surrender twice.",
    "The old server is no longer supported.",
    "The sponsor played no role in the study.",
    "Members can only vote if they have paid.",
    "The clinic takes calls every day and sees patients once a week.",
    "Turn off the heater.",
    "The shop does not sell tobacco but sells alcohol.",
    "230 bees were caught at nine farms.",
    "Thousands of gannets were killed by bird flu in 2022.",
    "The warranty covers material defects for two years.",
    "Tests suggest that the loss of meadows can be partly offset by hedges.",
    "The Act enters into force on May 1, 2020 and replaces the Bee Act of 1968.",
    "From 3 May 2024 the ferry sails three times daily from Lindholm to Karby.",
]
ALTERED = [
    "Green lentils need 15 minutes longer than red beans.",
    "Red lentils need 15 minutes longer than green ones.",
    "Hikers dread fever symptoms of hay.",
    "The timeout rises from 30 minutes to 60 seconds.",
    "The timeout rises from 60 seconds to 30 seconds.",
    "The board met once in May and twice in June.",
    "The fee is £3bn.",
    "The pole is 3 million long.",
    "The council agreed to sell the hall on Monday.",
    "The state may pay the rent, but the city will keep the deposit.",
    "Thorne refused to talk twice.",
    "The firm has hired 40 people.",
    "The sponsor played a role in the study.",
    "Only members can vote if they have paid.",
    "The clinic takes calls weekly and sees patients daily.",
    "The clinic takes calls this day and sees patients this week.",
    "The clinic takes calls daily and sees patients twice a week.",
    "Tom Hale, the treasurer, thanked the mayor, Ana Ruiz.",
    "Tom Hale is the treasurer.",
    "Ana Ruiz is the mayor.",
    "Turn the heater on and the fan off.",
    "The shop sells tobacco but does not sell alcohol.",
    "Sales fell by 5 percent in 2019.",
    "Bees caught 230 farms.",
    "Bird flu was killed by thousands of gannets in 2022.",
    "Tests suggest that hedges can be partly offset by the loss of meadows.",
    "From 3 May 2024 the ferry sails three times a day from Karby to Lindholm.",
]

CHINESE = (
    "青石岛位于白沙岛以南，面积18平方公里。全岛人口3200人。岛上最高峰望海峰海拔417米。甲方应通知乙方在15日内付款。"
    "乙方应在签约后30日内交货。公司周四宣布，新厂周五投产。本品用于缓解头痛，不能用于治疗感染。孕妇慎用。"
    "援军始终未能进城。公司计划明年投资4亿元。岛上有学校3所、医院2家。南面的城墙已拆除。每周一闭馆。会议14点开始。"
    "产量上升5%，价格下降3%。张伟打败了王强。使用前应冲洗滤芯。雪豹以岩羊和山羊为食。通道内禁止停车。疗程为3至5天。"
)
FAITHFUL_CHINESE = [
    "青石岛人口3200人。",
    "望海峰是岛上最高峰，海拔417米。",
    "签约后30日内，乙方应交货。",
    "周四，公司宣布，新厂周五投产。",
    "本品不能用于治疗感染，可用于缓解头痛。",
    "孕妇慎用本品。",
    "援军未能进城。",
    "岛上有3所学校、2家医院。",
    "青石岛南面的城墙已拆除。",
    "会议下午2点开始。",
    "产量增长5%，价格减少3%。",
    "使用前应将滤芯冲洗。",
    "雪豹以山羊和岩羊为食。",
    "通道内不得停车。",
    "疗程为3-5天。",
]
ALTERED_CHINESE = [
    "白沙岛人口3200人。",
    "望海峰海拔417米，是白沙岛最高峰。",
    "甲方应在15日内通知乙方付款。",
    "在15日内，甲方应通知乙方付款。",
    "周五，公司宣布，新厂周四投产。",
    "公司周五宣布新厂投产。",
    "本品可用于治疗感染，不能用于缓解头痛。",
    "孕妇慎用白沙岛。",
    "援军始终能进城。",
    "公司明年投资4亿元。",
    "岛上有3所医院、2家学校。",
    "白沙岛南面的城墙已拆除。",
    "周一闭馆一次。",
    "会议凌晨2点开始。",
    "产量下降5%，价格上升3%。",
    "王强将张伟打败了。",
    "岩羊和山羊以雪豹为食。",
    "通道内允许停车。",
    "疗程为3-5周。",
]


def failed(sentence: str, text: str) -> tuple[str, ...]:
    found = check(sentence, [Document("notes.txt", text, "notes", "line")])
    assert found.quotation is None
    return found.failed


def beside(sentences: list[str], chinese: list[str]) -> list[tuple[str, str]]:
    return [(sentence, NOTES) for sentence in sentences] + [(sentence, CHINESE) for sentence in chinese]


@pytest.mark.parametrize(("sentence", "text"), beside(FAITHFUL, FAITHFUL_CHINESE))
def test_a_faithful_rewording_raises_no_alarm(sentence: str, text: str) -> None:
    assert failed(sentence, text) == ()


@pytest.mark.parametrize(("sentence", "text"), beside(ALTERED, ALTERED_CHINESE))
def test_an_alteration_that_looks_like_a_rewording_is_caught(sentence: str, text: str) -> None:
    assert failed(sentence, text)
