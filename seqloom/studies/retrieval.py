"""Retrieval fills what the model does not know

Documents about invented people are generated, so that no model can know what they say. A small pretrained language
model is asked about them alone, with passages that a search found, and with passages about somebody else.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seqloom.core.progress import Reporter
from seqloom.pages.formats import short
from seqloom.pages.plots import Bars, BarSeries
from seqloom.pages.words import Pair
from seqloom.retrieve.answering import Asking
from seqloom.retrieve.index import Index, index
from seqloom.studies._study import Finding, Measured, Rows, Study, Verdict, measured
from seqloom.studies._writers import PRETRAINED, Writer, pretrained, stand_in

SYSTEM = "Answer the question in a few words."
SHOWN = "Answer the question in a few words, from the text that is given."
LONGEST = 24  # tokens of an answer
SEVERAL = 4  # passages
FILLED, GAIN = 0.8, 0.1  # shares of right answers
SYLLABLES = "bal dor fen gri hal jor kel lum mar nov pel quo ras sel tor ulm ven wex yar zim"
ONE_OF = {
    "trade": "baker clockmaker dentist farmer glassblower gardener judge miller painter pilot tailor weaver",
    "instrument": "accordion bassoon cello clarinet drum flute guitar harp organ piano trumpet violin",
    "animal": "cat donkey falcon goat goose hedgehog horse lizard owl parrot rabbit tortoise",
}
QUESTIONS = {
    "town": "In which town was {name} born?",
    "year": "In which year was {name} born?",
    "trade": "What work does {name} do?",
    "instrument": "Which instrument does {name} play?",
    "animal": "Which animal does {name} keep?",
}
WAYS: dict[str, Pair] = {
    "alone": ("the question alone", "仅问题"),
    "other": ("a passage about somebody else", "关于他人的段落"),
    "best": ("the best passage found", "检索到的最佳段落"),
    "several": (f"the {SEVERAL} best passages", f"最佳的 {SEVERAL} 个段落"),
    "quoted": ("quotation, no language model", "摘录，无语言模型"),
}


@dataclass(frozen=True)
class Plan:
    seeds: int = 6
    people: int = 60  # documents
    asked: int = 15  # questions, each about another document


QUICK = Plan(2, 6, 2)
COUNT = Plan().seeds * Plan().asked


@dataclass(frozen=True)
class Person:
    name: str
    facts: dict[str, str]
    text: str


@dataclass(frozen=True)
class Question:
    text: str
    kind: str
    answer: str
    place: int  # number of the document


def measure(quick: bool, progress: Reporter) -> Finding:
    plan = QUICK if quick else Plan()
    progress.update(0.0, {"doing": "preparing the model"})
    writer = stand_in() if quick else pretrained()
    right: dict[str, list[float]] = {way: [] for way in WAYS}
    kinds: dict[tuple[str, str], list[bool]] = {}
    first, digest, example = [], hashlib.sha256(), ""
    for seed in range(plan.seeds):
        progress.update(seed / plan.seeds, {"doing": f"seed {seed}"})
        people = invented(seed, plan.people)
        digest.update("".join(one.text for one in people).encode())
        example = example or people[0].text
        asked = questions(people, seed, plan.asked)
        answers, found = answered(writer, people, asked)
        first.append(found)
        for way, said in answers.items():
            correct = [contains(text, one.answer) for text, one in zip(said, asked, strict=True)]
            right[way].append(float(np.mean(correct)))
            for one, good in zip(asked, correct, strict=True):
                kinds.setdefault((one.kind, way), []).append(good)
    shares = {way: np.array(values) for way, values in right.items()}
    data = {"invented people": digest.hexdigest()}
    return _finding(plan, writer, shares, np.array(first), _kinds(kinds), example, data)


def invented(seed: int, count: int) -> list[Person]:
    """People with distinct names made of syllables, and facts about each."""
    rng = np.random.default_rng(seed)

    def word(parts: int) -> str:
        return "".join(rng.choice(SYLLABLES.split(), parts).tolist()).capitalize()

    names: dict[str, None] = {}
    while len(names) < count:
        names[f"{word(2)} {word(3)}"] = None
    people = []
    for name in names:
        first = name.split()[0]
        facts = {"town": word(3), "year": str(rng.integers(1930, 2000))}
        facts |= {kind: str(rng.choice(some.split())) for kind, some in ONE_OF.items()}
        sentences = [
            f"{name} was born in {facts['town']} in {facts['year']}.",
            f"{first} works as a {facts['trade']} in a street near the river.",
            f"On Sundays {first} plays the {facts['instrument']} with a few friends.",
            f"At home {first} keeps a {facts['animal']}, which is known to all neighbours.",
        ]
        people.append(Person(name, facts, " ".join([sentences[0], *rng.permutation(sentences[1:]).tolist()])))
    return people


def questions(people: list[Person], seed: int, count: int) -> list[Question]:
    """Each about another person; the kinds of question by turns."""
    rng, kinds = np.random.default_rng((seed, 1)), list(QUESTIONS)
    found = []
    for n, place in enumerate(rng.permutation(len(people))[:count].tolist()):
        person, kind = people[place], kinds[(n + seed) % len(kinds)]
        found.append(Question(QUESTIONS[kind].format(name=person.name), kind, person.facts[kind], place))
    return found


def answered(writer: Writer, people: list[Person], asked: list[Question]) -> tuple[dict[str, list[str]], float]:
    """The answers in every way, and how often the search finds the right document first."""
    said: dict[str, list[str]] = {way: [] for way in WAYS}
    first = []
    with tempfile.TemporaryDirectory() as place, _indexed(people, Path(place)) as opened:
        quoting = Asking(opened, k=1)
        for one in asked:
            passages = opened.search(one.text, SEVERAL)
            texts = [passage.chunk.text for passage in passages]
            first.append(passages[0].chunk.path == _file(one.place))
            other = people[(one.place + 1) % len(people)].text
            said["alone"].append(writer.say(SYSTEM, one.text, LONGEST))
            said["other"].append(_shown(writer, [other], one.text))
            said["best"].append(_shown(writer, texts[:1], one.text))
            said["several"].append(_shown(writer, texts, one.text))
            said["quoted"].append(" ".join(sentence.text for sentence in quoting.ask(one.text).sentences))
    return said, float(np.mean(first))


def _indexed(people: list[Person], place: Path) -> Index:
    folder = place / "documents"
    folder.mkdir()
    for n, person in enumerate(people):
        (folder / _file(n)).write_text(person.text + "\n", encoding="utf-8")
    return index(folder, place / "index")


def _file(number: int) -> str:
    return f"{number:04d}.txt"


def _shown(writer: Writer, texts: list[str], question: str) -> str:
    """The best passage stands last, next to the question: small models read best what is near."""
    return writer.say(SHOWN, "\n\n".join([*reversed(texts), f"Question: {question}"]), LONGEST)


def contains(text: str, answer: str) -> bool:
    """Whether the word of the answer is among the words of the text."""
    return answer.casefold() in re.findall(r"\w+", text.casefold())


def verdict(gains: dict[str, Measured], best: Measured) -> Verdict:
    """`gains`: of one passage and of several, over the question alone; `best`: right answers with the best passage."""
    sure = [(one.low or 0.0) > GAIN for one in gains.values()]
    if all(sure) and (best.low or 0.0) >= FILLED:
        return "holds"
    if any(sure):
        return "conditions"
    return "fails" if all(one.high is not None and one.high < GAIN for one in gains.values()) else "untold"


def _kinds(kinds: dict[tuple[str, str], list[bool]]) -> Rows:
    rows: list[list[Pair | float | str]] = []
    for kind, text in QUESTIONS.items():
        values = [kinds.get((kind, way), []) for way in WAYS]
        rows.append([text.format(name="…"), *(f"{sum(good)} / {len(good)}" for good in values)])
    return Rows(("Right answers, by question", "各类问题的正确回答数"), [("question", "问题"), *WAYS.values()], rows)


def _finding(
    plan: Plan,
    writer: Writer,
    shares: dict[str, np.ndarray],
    first: np.ndarray,
    kinds: Rows,
    example: str,
    data: dict[str, str],
) -> Finding:
    known: dict[str, Pair] = {"alone": ("not known", "不知道"), "best": ("filled", "补足")}
    found: dict[str, Measured] = {}
    for way, (en, zh) in WAYS.items():
        names = (f"right answers, {en}", f"回答正确，{zh}")
        found[way] = measured(names, shares[way], known.get(way, ("", "")), bounds=(0.0, 1.0))
    gains: dict[str, Measured] = {}
    for way in ("best", "several"):
        names = (f"{WAYS[way][0]} minus the question alone", f"{WAYS[way][1]}减去仅问题")
        gains[way] = measured(names, shares[way] - shares["alone"], ("above 0", "大于 0"))
    names = ("right document found first", "正确文档排在首位")
    searched = measured(names, first, bounds=(0.0, 1.0))
    decided = list(found.values())
    ends = [[one.value if limit is None else limit for one, limit in zip(decided, limits, strict=True)]
            for limits in ([one.low for one in decided], [one.high for one in decided])]  # fmt: skip
    return Finding(
        verdict=verdict(gains, found["best"]),
        summary=_summary(plan, writer, found, searched),
        protocol=_protocol(plan, writer, example),
        numbers=[*decided, *gains.values(), searched],
        figure=[
            Bars(
                x=("share of right answers", "回答正确的比例"),
                groups=list(WAYS.values()),
                series=[BarSeries(writer.title, [one.value for one in decided], *ends)],
            )
        ],
        caption=(
            "Right answers to questions about invented people, by what the model is shown; 95 % intervals over seeds",
            "对虚构人物问题的正确回答比例，按给模型看的内容分列；各种子的 95 % 置信区间",
        ),
        tables=[kinds],
        data=data,
    )


def _summary(plan: Plan, writer: Writer, found: dict[str, Measured], searched: Measured) -> Pair:
    value = {way: short(one.value, 2) for way, one in found.items()}
    count = plan.seeds * plan.asked
    return (
        f"Share of right answers to {count} questions about invented people: {writer.title[0]} alone {value['alone']}"
        f", with the best passage that the search found {value['best']}, with {SEVERAL} passages {value['several']}, "
        f"with a passage about somebody else {value['other']}; a quotation without a language model {value['quoted']}"
        f". The search puts the right document first for a share of {short(searched.value, 2)}.",
        f"关于虚构人物的 {count} 个问题，{writer.title[1]} 单独回答的正确比例为 {value['alone']}，给出检索到的最佳段落"
        f"时为 {value['best']}，给出 {SEVERAL} 个段落时为 {value['several']}，给出关于他人的段落时为 {value['other']}"
        f"。正确文档排在首位的比例为 {short(searched.value, 2)}；不用语言模型的摘录，正确比例为 {value['quoted']}。",
    )


def _protocol(plan: Plan, writer: Writer, example: str) -> Pair:
    return (
        f"{plan.seeds} seeds; each draws {plan.people} invented people, a document of four sentences on each, such "
        f"as: “{example}” {plan.asked} questions per seed, each about another person, of {len(QUESTIONS)} kinds. "
        f"Search: BM25. Model: {writer.title[0]}, {writer.count:,} parameters, greedy, at most {LONGEST} tokens, "
        f"asked “{SYSTEM}” or, where it is shown passages, “{SHOWN}” Of several passages the best stands next to the "
        "question. The quotation without a language model is one or more sentences of the best passage, picked by the "
        "answerer that only quotes. An answer or quotation is right if the word asked for is among its words.",
        f"{plan.seeds} 个种子；每个种子随机生成 {plan.people} 个虚构人物，每人一篇四句话的文档，例如：“{example}”每个"
        f"种子 {plan.asked} 个问题，每个问题关于不同的人，共 {len(QUESTIONS)} 类。检索：BM25。模型：{writer.title[1]}"
        f"，{writer.count:,} 个参数，贪心解码，至多 {LONGEST} 个词元，指令为“{SYSTEM}”，给出段落时为“{SHOWN}”。有多个"
        "段落时，最好的紧挨着问题。无语言模型的摘录，是只作摘录的回答器从最佳段落中选出的一句或几句。回答或摘录中出现所问"
        "的词即算正确。",
    )


STUDY = Study(
    number=23,
    title=("Retrieval fills what the model does not know", "检索补足模型不知道的内容"),
    claim=(
        "Retrieval-augmented generation: search for relevant documents first and add them to the prompt; this solves "
        "the blind spots in the knowledge of a large language model.",
        "RAG（检索增强生成）：先检索相关文档，再加上提示词，解决 LLM 的知识盲区。",
    ),
    sources=(("004", "RAG(检索增强生成)"),),
    rule=(
        f"By whole intervals over seeds: it holds if one passage and {SEVERAL} passages both raise the share of right "
        f"answers by more than {GAIN:g}, and the best passage brings it to at least {FILLED:g}; under conditions, if "
        f"at least one of the two raises it so much. It fails if both gains are below {GAIN:g}; otherwise it cannot "
        "be told.",
        f"按各种子的整个置信区间：若一个段落与 {SEVERAL} 个段落都使正确比例提高 {GAIN:g} 以上，且最佳段落使其达到至少 "
        f"{FILLED:g}，则成立；若只是至少其一提高这么多，则为有条件成立。若两者的提高都低于 {GAIN:g}，则不"
        "成立；其余无法判断。",
    ),
    remarks=(
        (
            "These are easy questions: names are unique, so the search has little to confuse, every answer is one "
            "word, and it stands in a short document in nearly the words of the question.",
            "这些是容易的问题：名字独一无二，检索几乎不会混淆，答案都是一个词，并且在一篇短文档中，措辞与问题相近。",
        ),
        (
            "Trades, instruments and animals can be guessed with a chance of about one in twelve. A longer answer has "
            "more chances to contain the right word. Where all seeds agree, an interval has no width; but a model that "
            f"knows {3 / COUNT:.0%} would still have none of {COUNT} questions right one time in twenty.",
            "职业、乐器和动物约有十二分之一的机会猜中。回答越长，包含正确词的机会越大。各种子结果相同时，区间宽度为零"
            f"；但知道 {3 / COUNT:.0%} 的模型，仍有二十分之一的可能在 {COUNT} 个问题上全部答错。",
        ),
        (
            "A model of this size is far below those that the claim has in mind. On passages of an encyclopedia it "
            "made half of the questions right with the best one, and a tenth with eight (docs/claims/retrieval.md).",
            "这种规模的模型远小于论断所指的模型。在百科段落上，给出最佳段落时它答对一半，给出八段时答对十分之一"
            "（docs/zh/claims/retrieval.md）。",
        ),
    ),
    needs=(PRETRAINED,),
    measure=measure,
)
