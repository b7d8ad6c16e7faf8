"""GPT needs no fine-tuning: in-context learning

Words are sorted into eight categories by a language model that is shown a few sorted words in its prompt, under the
names of the categories or under letters that mean nothing. A pretrained model and a tiny one of our own are asked;
beside them an output layer that is trained on the same examples.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from seqloom.core.progress import Reporter
from seqloom.data.shapes.labelled.vocabulary import LabelledTokenizer
from seqloom.pages.formats import short
from seqloom.pages.plots import Level, Lines
from seqloom.pages.words import Pair
from seqloom.runs.registry import section
from seqloom.studies._study import Finding, Measured, Study, Verdict, curve, measured
from seqloom.studies._writers import PRETRAINED, Writer, last_vector, pretrained, small, stand_in, with_head

WORDS = {
    "animal": "cat dog horse sheep lion tiger bear wolf fox rabbit mouse elephant monkey eagle shark spider",
    "food": "bread cheese butter rice soup cake apple banana potato tomato onion egg sugar pasta salad honey",
    "clothing": "shirt hat coat dress shoe sock glove jacket skirt sweater boot scarf trousers jeans blouse vest",
    "tool": "hammer saw drill shovel axe knife wrench screwdriver rake chisel pliers ladder scissors spade "
    "broom needle",
    "vehicle": "car bus train truck bicycle boat ship airplane helicopter tractor taxi tram van ferry rocket scooter",
    "furniture": "chair table sofa bed desk shelf cupboard stool bench wardrobe drawer couch armchair "
    "bookcase crib mattress",
    "body": "arm leg hand foot head nose ear eye mouth knee elbow shoulder finger neck stomach tongue",
    "profession": "doctor teacher nurse lawyer farmer baker pilot plumber carpenter judge actor painter dentist tailor "
    "soldier waiter",
}
LABELS = tuple(WORDS)
LETTERS = tuple("ABCDEFGH")
CHANCE = 1 / len(LABELS)
NEAR = 0.05  # of accuracy: as good as a trained output layer
HEADS: dict[str, Pair] = {
    "names": ("prompt, names of the categories", "提示，用类别名称"),
    "letters": ("prompt, letters that mean nothing", "提示，用无意义的字母"),
    "trained": ("no prompt, output layer trained on the examples", "无提示，用示例训练输出层"),
}


@dataclass(frozen=True)
class Plan:
    seeds: int = 8
    shots: tuple[int, ...] = (0, 1, 2, 4, 8)  # examples per category
    asked: int = 8  # words per category
    steps: int = 400  # of the tiny model


QUICK = Plan(2, (0, 1), 2, 2)
Table = dict[str, np.ndarray]  # by way: accuracy, (shots, seeds)


@dataclass(frozen=True)
class Words:
    """Examples, drawn in this order, in the form that a prompt is made from; and words to be sorted."""

    words: list[str]
    labels: list[list[int]]
    asked: list[str]
    truth: np.ndarray

    def texts(self) -> Iterator[tuple[str, ...]]:
        return ((word,) for word in self.words)

    def first(self, shots: int) -> list[int]:
        """The numbers of so many examples of each category."""
        every = np.array([label for (label,) in self.labels])
        return [int(n) for label in range(len(LABELS)) for n in np.flatnonzero(every == label)[:shots]]


def measure(quick: bool, progress: Reporter) -> Finding:
    plan = QUICK if quick else Plan()
    progress.update(0.0, {"doing": "preparing the models"})
    tiny: Pair = ("tiny GPT", "小型 GPT")
    if quick:
        writers = [stand_in(), small(plan.steps, title=tiny, most=5_000, width=16, depth=1, heads=2)]
    else:
        writers = [pretrained(), small(plan.steps, title=tiny, context=1536, width=128, depth=4, heads=4)]
    found: list[Table] = []
    for n, writer in enumerate(writers):
        rows: dict[str, list[list[float]]] = {way: [] for way in HEADS}
        for seed in range(plan.seeds):
            done = (n + (1 + seed) / (plan.seeds + 1)) / len(writers)
            progress.update(done, {"doing": f"{writer.title[0]}, seed {seed}"})
            words = drawn(seed, max(plan.shots), plan.asked)
            rows["names"].append([prompted(writer, words, LABELS, shots, seed) for shots in plan.shots])
            letters = tuple(np.random.default_rng(seed).permutation(LETTERS).tolist())
            rows["letters"].append([prompted(writer, words, letters, shots, seed) for shots in plan.shots])
            rows["trained"].append(taught(writer, words, plan.shots))
        found.append({way: np.array(values).T for way, values in rows.items()})
    return _finding(plan, writers, found)


def drawn(seed: int, shots: int, asked: int) -> Words:
    rng = np.random.default_rng(seed)
    words, labels, others, truth = [], [], [], []
    for label, name in enumerate(LABELS):
        order = rng.permutation(WORDS[name].split()).tolist()
        words += order[:shots]
        labels += [[label]] * shots
        others += order[shots : shots + asked]
        truth += [label] * asked
    return Words(words, labels, others, np.array(truth))


def prompted(writer: Writer, words: Words, says: tuple[str, ...], shots: int, seed: int) -> float:
    """Accuracy of a prompt in which the categories are called so."""
    template = {
        "instruction": "Sort each word into one of the categories {labels}.",
        "example": "Word: {text}\nCategory: {label}",
        "labels": dict(zip(LABELS, says, strict=True)),
    }
    options = {"name": "classification", "prompt": json.dumps(template), "shots": shots}
    task: Any = section("tasks", options).build(LabelledTokenizer(writer.tokenizer, LABELS))
    model = with_head(writer, task.head(writer.model.backbone.width))
    task.draw_prompt(model, words, seed)
    rows = [{"line": n, "source": word} for n, word in enumerate(words.asked, 1)]
    answers = [LABELS.index(row["label"]) for row in task.predict(model, rows)]
    return float((np.array(answers) == words.truth).mean())


def taught(writer: Writer, words: Words, shots: tuple[int, ...]) -> list[float]:
    """Accuracy of logistic regression on the vectors of the same examples; without examples, chance."""

    def vectors(some: list[str]) -> np.ndarray:
        return np.array([last_vector(writer, f"Word: {word}").numpy() for word in some])

    known, asked, found = vectors(words.words), vectors(words.asked), []
    scale = known.std(axis=0) + 1e-6
    for count in shots:
        some = words.first(count)
        if not some:
            found.append(CHANCE)
            continue
        middle = known[some].mean(axis=0)
        head = LogisticRegression(max_iter=1000).fit((known[some] - middle) / scale, [words.labels[n][0] for n in some])
        found.append(float((head.predict((asked - middle) / scale) == words.truth).mean()))
    return found


def verdict(rises: list[dict[str, Measured]], behind: Measured) -> Verdict:
    """`rises`: of each model and way, accuracy with most examples minus without; `behind`: of the pretrained model,
    prompt with names minus the trained output layer."""
    every = [one for model in rises for one in model.values()]
    learned = [(one.low or 0.0) > 0 for one in every]
    if all(learned) and (behind.low if behind.low is not None else -1.0) > -NEAR:
        return "holds"
    if any(learned):
        return "conditions"
    return "fails" if all(one.high is not None and one.high < 2 * NEAR for one in every) else "untold"


def _finding(plan: Plan, writers: list[Writer], found: list[Table]) -> Finding:
    numbers: list[Measured] = []
    rises: list[dict[str, Measured]] = []
    most = plan.shots[-1]
    for writer, table in zip(writers, found, strict=True):
        rises.append({})
        for way in ("names", "letters"):
            (en, zh), (name, named) = HEADS[way], writer.title
            for row, shots in ((0, 0), (-1, most)):
                names = (
                    f"accuracy, {name}, {en}, {shots} examples each",
                    f"准确率，{named}，{zh}，每类 {shots} 个示例",
                )
                numbers.append(measured(names, table[way][row], bounds=(0.0, 1.0)))
            names = (f"gain by {most} examples, {name}, {en}", f"{most} 个示例带来的提升，{named}，{zh}")
            rises[-1][way] = measured(names, table[way][-1] - table[way][0], ("above 0", "大于 0"))
            numbers.append(rises[-1][way])
        names = (
            f"accuracy, {writer.title[0]}, {HEADS['trained'][0]}",
            f"准确率，{writer.title[1]}，{HEADS['trained'][1]}",
        )
        numbers.append(measured(names, table["trained"][-1], bounds=(0.0, 1.0)))
    apart = found[0]["names"][-1] - found[0]["trained"][-1]
    names = (
        f"{writers[0].title[0]}, prompt with names minus trained output layer, {most} examples",
        f"{writers[0].title[1]}，用名称的提示减去训练的输出层，{most} 个示例",
    )
    behind = measured(names, apart, ("not below 0", "不小于 0"))
    return Finding(
        verdict=verdict(rises, behind),
        summary=_summary(plan, writers, found),
        protocol=_protocol(plan, writers),
        numbers=[*numbers, behind],
        figure=[_panel(plan, writer, table) for writer, table in zip(writers, found, strict=True)],
        caption=(
            "Share of words sorted rightly, against the number of examples per category; bands are 95 % intervals over "
            "draws of examples and words",
            "正确归类的单词比例随每类示例数的变化；色带为对示例和单词多次抽取的 95 % 置信区间",
        ),
    )


def _panel(plan: Plan, writer: Writer, table: Table) -> Lines:
    return Lines(
        x=("examples per category", "每类示例数"),
        y=("accuracy", "准确率"),
        curves=[curve(title, plan.shots, table[way], bounds=(0, 1)) for way, title in HEADS.items()],
        title=(f"{writer.title[0]}, {writer.count:,} parameters", f"{writer.title[1]}，{writer.count:,} 个参数"),
        ticks=[float(shots) for shots in plan.shots],
        levels=[Level(("chance", "随机"), CHANCE)],
        from_zero=True,
    )


def _summary(plan: Plan, writers: list[Writer], found: list[Table]) -> Pair:
    def told(table: Table, way: str, row: int) -> str:
        return short(float(table[way][row].mean()), 2)

    most, english, chinese = plan.shots[-1], [], []
    for writer, table in zip(writers, found, strict=True):
        ends = {way: (told(table, way, 0), told(table, way, -1)) for way in HEADS}
        (a, b), (c, d), (_, e) = ends["names"], ends["letters"], ends["trained"]
        english.append(
            f"{writer.title[0]}: from {a} without examples to {b} with {most} per category under their names, from {c} "
            f"to {d} under letters; an output layer trained on the same examples {e}."
        )
        chinese.append(
            f"{writer.title[1]}：用类别名称时，从无示例的 {a} 到每类 {most} 个示例的 {b}；用字母时从 {c} 到 {d}；用同样"
            f"示例训练的输出层为 {e}。"
        )
    return (
        f"Share of words sorted rightly (chance {CHANCE:g}). {' '.join(english)}",
        f"正确归类的单词比例（随机 {CHANCE:g}）。{''.join(chinese)}",
    )


def _protocol(plan: Plan, writers: list[Writer]) -> Pair:
    first, second = (f"{writer.title[0]} ({writer.count:,} parameters)" for writer in writers)
    one, two = (f"{writer.title[1]}（{writer.count:,} 个参数）" for writer in writers)
    shots, asked = ", ".join(map(str, plan.shots)), plan.asked * len(LABELS)
    return (
        f"{len(WORDS['tool'].split())} English nouns in each of {len(LABELS)} categories ({', '.join(LABELS)}). "
        f"{plan.seeds} seeds; each draws {max(plan.shots)} examples and {plan.asked} other words per category, so "
        f"{asked} words are asked for. {shots} examples per category in the prompt, fewer always a part of more, in "
        f"random order; labels are scored by log-probability, less that for an input without content (contextual "
        f"calibration). Categories are called by name, or by {', '.join(LETTERS)}, in an order that each seed draws. "
        f"Models: {first}, and {second}, which has read Python's documentation for {plan.steps} updates; the same "
        "prompts for both. Trained output layer: logistic regression on the hidden vector after the word, without a "
        "prompt; without examples it is put at chance.",
        f"{len(LABELS)} 个类别（{', '.join(LABELS)}），每类 {len(WORDS['tool'].split())} 个英语名词。{plan.seeds} 个种"
        f"子，每个种子每类抽取 {max(plan.shots)} 个示例和 {plan.asked} 个其他单词，共询问 {asked} 个单词。提示中每类 "
        f"{shots} 个示例，少的总是多的一部分，顺序随机；标签按对数概率计分，并减去无内容输入的分数（上下文校准）。类别"
        f"用名称，或用 {', '.join(LETTERS)}，其对应关系由每个种子随机决定。模型：{one}，以及 {two}，后者在 Python 文档"
        f"上训练了 {plan.steps} 次更新；两者用同样的提示。训练的输出层：在单词之后的隐藏向量上做逻辑回归，不用提示；"
        "没有示例时按随机计。",
    )


STUDY = Study(
    number=22,
    title=("GPT needs no fine-tuning: in-context learning", "GPT 无需微调：上下文学习"),
    claim=(
        "BERT needs fine-tuning; GPT needs none (in-context learning): a prompt leads the model, without training.",
        "微调：BERT 需要，GPT 无需（In-Context Learning）；通过提示词引导模型输出，不需要训练。",
    ),
    sources=(("004", "BERT 与 GPT"), ("004", "Prompt Engineering")),
    rule=(
        "By whole intervals over seeds: it holds if for both models, under names and under letters, the most examples "
        "raise the accuracy over that without any, and the pretrained model, prompted with names, is not more than "
        f"{NEAR:g} behind an output layer trained on the same examples; under conditions, if examples raise the "
        f"accuracy of some model under some labels. It fails if all gains are below {2 * NEAR:g}; otherwise it cannot "
        "be told.",
        f"按各种子的整个置信区间：若对两个模型、无论用名称还是字母，最多的示例都使准确率高于没有示例时，且用名称提示的"
        f"预训练模型至多比用同样示例训练的输出层低 {NEAR:g}，则成立；若只在某个模型、某种标签上示例提高了准确率，则为有"
        f"条件成立。若所有提升都低于 {2 * NEAR:g}，则不成立；其余无法判断。",
    ),
    remarks=(
        (
            "On a seed that is not counted, the pretrained model sorted 93 % of the words of four categories rightly "
            "without any example, which leaves little to gain; so eight categories were taken. The rule was not "
            "changed.",
            "在一个不计入的种子上，预训练模型没有示例就把四类单词中的 93 % 正确归类，提升的余地很小，因此改用八类。规"
            "则没有改动。",
        ),
        (
            "A tiny model is not expected to learn from its prompt, and that says nothing against the claim, which is "
            "about large ones. SmolLM2 is itself a thousand times smaller than the models that made the claim famous.",
            "不应期待很小的模型从提示中学习，这也不能反驳关于大模型的论断。SmolLM2 本身也比使这一论断出名的模型小一千"
            "倍。",
        ),
        (
            "The conditions of a verdict under conditions are the models and labels whose gain in the table is above "
            "0 by its whole interval.",
            "若结论为有条件成立，条件就是表中提升的整个置信区间大于 0 的那些模型与标签。",
        ),
        (
            "Names can be used without any example, from pre-training alone; what the letters stand for can only be "
            "learned from the examples.",
            "用名称时，仅凭预训练、没有示例也能答；字母代表什么只能从示例中学到。",
        ),
        (
            "The output layer is trained on as many examples; they are the same words only with 8 per category. With "
            "fewer it has others of them than the prompt, and its vectors are always scaled by the spread over all "
            "examples that were drawn, which a prompt with fewer does not see.",
            "输出层用同样多的示例训练；只有每类 8 个时才是同样的单词。更少时它所用的单词与提示中的不同，而且向量始终按"
            "全部抽取的示例的离散程度缩放，示例较少的提示看不到这些。",
        ),
        (
            "Short nouns of everyday categories are an easy task. On sentences of film reviews examples did not "
            "help the same model (docs/claims/in-context-learning.md).",
            "日常类别的短名词是容易的任务。在影评句子上，示例对同一模型没有帮助（"
            "docs/zh/claims/in-context-learning.md）。",
        ),
    ),
    needs=(PRETRAINED,),
    measure=measure,
)
