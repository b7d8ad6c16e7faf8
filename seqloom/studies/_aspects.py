"""The page of the seven aspects on which document 000 compares RNN and Transformer: its words, and what was measured.

Numbers are quoted from the results of studies by their English names, so the page cannot say what was not measured: a
study or a number that is missing is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seqloom.pages.blocks import Block, Cell, Code, Column, Document, Row, Section, Table, Text
from seqloom.pages.formats import short
from seqloom.pages.words import Pair, Speaker
from seqloom.studies._errors import ERRORS
from seqloom.studies._record import Record, limits
from seqloom.studies._registry import find_study
from seqloom.studies._study import VERDICTS, Measured, Study
from seqloom.studies._words import WORDS

NAME = "rnn-and-transformer"


@dataclass(frozen=True)
class Aspect:
    key: str
    title: Pair  # as document 000 has it
    rnn: Pair  # what it says of each
    transformer: Pair
    quoted: Mapping[str, tuple[str, ...]]  # by study: numbers, by their English names
    note: Pair = ("", "")  # what another document says of it, or what of it is not measured


ASPECTS = (
    Aspect(
        "structure",
        ("Structure", "结构"),
        (
            "Processes the data one element at a time and keeps an internal hidden state, which is updated at every "
            "step; each output depends on the previous hidden state and the current input.",
            "每次处理一个元素的数据，并保持一个内部隐藏状态，该状态在每一步都会更新；每一步的输出都取决于之前的隐藏状态"
            "和当前的输入。",
        ),
        (
            "Processes the data in parallel and is not sequential; self-attention captures dependencies between the "
            "elements. It has no recurrent connections and no hidden state.",
            "并行处理数据的非序列模型，依靠自我注意机制来捕捉输入序列中不同元素之间的依赖关系，没有循环连接或隐藏状"
            "态。",
        ),
        {
            "set_operation": (
                "largest change without positions",
                "mean change, with positions",
                "mean change, no positions, causal mask",
            ),
            "memory_kinds": tuple(f"state after 64 pairs, {model}" for model in ("RNN", "LSTM", "attention")),
        },
        (
            "While it generates, a Transformer keeps the keys and values of all tokens, a state that grows (document "
            "001).",
            "Transformer 在生成时保存所有词元的键和值，这是一个不断增长的状态（文档 001）。",
        ),
    ),
    Aspect(
        "length",
        ("Length of sequences", "处理序列长度"),
        (
            "Handles sequences of different lengths, because it processes them in order; but long sequences make "
            "gradients vanish or explode, so that long-term dependencies are hard to capture.",
            "可以处理不同长度的序列，因为它们按顺序处理数据；但是，长序列会导致梯度消失或爆炸，难以捕捉长期依赖关系。",
        ),
        (
            "Handles short and long sequences efficiently, because it is parallel; self-attention captures "
            "dependencies whatever the length.",
            "具有并行处理的特性，因此可以高效地处理短序列和长序列；无论序列长度如何，自注意功能都能让它们捕捉到依赖关"
            "系。",
        ),
        {
            "vanishing_gradients": tuple(
                f"factor per token, {model}, after training" for model in ("RNN", "LSTM", "attention (GPT)")
            ),
            "clipping": (
                "gradient 20 tokens before the question, relative, without clipping",
                "symbols recalled over 20 tokens, without clipping",
            ),
            "cost_of_context": (
                "LSTM, next token: seconds per token, 8,192 / 64",
                "GPT, next token: seconds per token, 8,192 / 64",
                "LSTM, whole context: seconds per token, 8,192 / 64",
                "GPT, whole context: seconds per token, 8,192 / 64",
                "LSTM: state after 8,192 tokens",
                "GPT: state after 8,192 tokens",
            ),
        },
        (
            "Document 001 says the contrary of long sequences: the cost of attention grows with the square of the "
            "length, and the KV cache takes much memory.",
            "关于长序列，文档 001 的说法相反：注意力的计算量随长度呈平方级增长，KV 缓存占用大量内存。",
        ),
    ),
    Aspect(
        "dependencies",
        ("Dependencies", "依赖关系建模"),
        (
            "Well suited to sequential dependencies: it captures context from the past, and so is effective in "
            "language modelling, speech recognition and sentiment analysis.",
            "非常适合建立序列依赖关系模型：可以捕捉过去的上下文信息，因此在语言建模、语音识别和情感分析等任务中非常有"
            "效。",
        ),
        (
            "Good at dependencies between elements wherever they stand in the sequence; strongest where distances are "
            "long, as in translation, document classification and image captions.",
            "擅长对元素之间的依赖关系进行建模，而与它们在序列中的位置无关；对于涉及长距离依赖关系的任务，如机器翻译、"
            "文档分类和图像字幕，作用尤为强大。",
        ),
        {
            "far_context": tuple(
                f"recalled over {distance} tokens, {model}, {trained}"
                for trained, distance in (
                    ("one distance alone", 2),
                    ("one distance alone", 64),
                    ("all distances mixed", 64),
                )
                for model in ("RNN", "LSTM", "attention, one layer")
            ),
            "fixed_vector": tuple(
                f"accuracy: {model}, decoder reads what was written, 16 letters"
                for model in ("initial state only", "one vector at every step", "attention")
            ),
            "memory_kinds": tuple(f"recalled of 64 pairs, {model}" for model in ("RNN", "LSTM", "attention")),
        },
        ("Speech and images are not measured here.", "这里没有测量语音和图像。"),
    ),
    Aspect(
        "size",
        ("Model size", "模型大小"),
        (
            "Compact: the size depends on the number of recurrent units and the parameters in each, and is "
            "proportional to the number of units and the sizes of input and hidden state.",
            "结构紧凑：大小主要取决于递归单元的数量以及每个单元内的参数数量，与递归单元的数量以及输入和隐藏状态维度的"
            "大小成正比。",
        ),
        (
            "Tends to be larger, through self-attention, feed-forward layers and position encodings; being parallel is "
            "paid for with more parameters.",
            "往往具有较大的模型尺寸，主要来自自注意层、前馈层和位置编码；并行处理能力的代价是参数数量增加。",
        ),
        {
            "memory_kinds": tuple(
                f"{what}, {model}"
                for what in ("parameters of a layer of width 128", "parameters when the width doubles")
                for model in ("RNN", "LSTM", "attention")
            ),
            "gru_against_lstm": ("parameters of the recurrent layer at equal width, GRU / LSTM",),
            "weight_sharing": tuple(
                f"{weights}: parameters for 1,024 steps" for weights in ("shared", "a cell for each step")
            ),
        },
    ),
    Aspect(
        "training",
        ("Training and parallelism", "训练和并行化"),
        (
            "Trained step after step, because the hidden state depends on the steps before; hard to parallelise, and "
            "slow to train.",
            "大多采用顺序方法进行训练，因为隐藏状态依赖于之前的步骤；并行化更具挑战性，训练时间较慢。",
        ),
        (
            "Trained in parallel, because it processes the data at once; this speeds training up and allows larger "
            "batches.",
            "采用并行方式训练，因为它们同时处理数据；这加快了训练速度，并能使用更大的批量。",
        ),
        {
            "sequential_training": (
                "LSTM: chain for 2,048 tokens",
                "minGRU, scan: chain for 2,048 tokens",
                "GPT: chain for 2,048 tokens",
                "speed of LSTM / GPT, 64 x 128",
                "speed of LSTM / GPT, 1 x 2,048",
                "speed of minGRU, scan / minGRU, step by step, 1 x 2,048",
            ),
        },
        ("GPUs and TPUs are not measured here.", "这里没有测量 GPU 和 TPU。"),
    ),
    Aspect(
        "interpretability",
        ("Interpretability", "可解释性"),
        (
            "Has a clear flow of time, which makes it easier to explain its decisions and to understand how "
            "information flows through the sequence.",
            "具有清晰的时间流，这使得解释其决策和理解信息如何在序列中流动变得更加容易。",
        ),
        (
            "Self-attention may make decisions harder to explain; but visualising attention gives insight into what "
            "the model focuses on.",
            "自我注意机制可能使解释其决策更具挑战性；不过，注意力可视化等技术可以让我们深入了解模型的关注点。",
        ),
        {
            "time_line": (
                "character at lag 4 (accuracy), LSTM",
                "character at lag 4 (accuracy), LSTM, untrained",
                "inside a quotation (balanced accuracy), LSTM",
                "inside a quotation (balanced accuracy), LSTM, untrained",
                "inside a quotation (balanced accuracy), GPT, last layer",
                "inside a quotation (balanced accuracy), input alone",
                "rank correlation with influence, attention, mean of all heads",
                "rank correlation with influence, attention rollout",
                "rank correlation with influence, nearness alone",
            ),
        },
    ),
    Aspect(
        "transfer",
        ("Pre-training and transfer", "预训练和迁移学习"),
        (
            "Harder to pre-train, because it is sequential; transfer is usually limited to particular tasks or related "
            "domains.",
            "由于连续性，预训练更具挑战性；迁移学习通常仅限于特定任务或相关领域。",
        ),
        (
            "Can be pre-trained on large corpora with unsupervised objectives, such as language modelling or masked "
            "language modelling, and then fine-tuned for many tasks.",
            "可以使用语言建模或掩码语言建模等无监督目标，在大规模语料库上进行预训练，之后在各种下游任务上微调，实现有"
            "效的迁移学习。",
        ),
        {
            "masked_or_causal": (
                "accuracy with 1,024 labels, masked, both ways",
                "accuracy with 1,024 labels, causal, one way",
            ),
            "pretraining": (
                *(f"gain with {labels} labels over from scratch" for labels in ("16", "64", "1,024", "4,096")),
                "gain with 64 labels over from scratch, 5 times the updates",
                "gain with 1,024 labels over from scratch, 5 times the updates",
            ),
        },
    ),
)  # fmt: skip


def aspects(records: Sequence[Record], language: str) -> Document:
    say, found = Speaker(language, WORDS), {record.name: record for record in records}
    parts = [Section("overview", say("overview"), [Text(say("aspects lead")), overview(records, say)])]
    for number, aspect in enumerate(ASPECTS, start=1):
        parts.append(Section(aspect.key, f"{number}. {say.pick(aspect.title)}", _blocks(aspect, found, say)))
    parts.append(Section("errors", say("errors"), _errors(say)))
    return Document(language, say("aspects"), "", [], parts)


def overview(records: Sequence[Record], say: Speaker, link: str = "") -> Table:
    """Each aspect, and the verdicts of the studies that its numbers are from."""
    found = {record.name: record for record in records}
    rows = []
    for aspect in ASPECTS:
        told = [f"{_short(name)}{say('colon')}{_verdict(found, name, say)}" for name in aspect.quoted]
        rows.append(Row([Cell(say.pick(aspect.title), link=link), Cell(say("semicolon").join(told))]))
    return Table(say("aspects"), [Column(say(head), number=False) for head in ("aspect", "verdicts")], rows)


def number(records: Mapping[str, Record], study: str, name: str) -> Measured:
    """Of a study, by its English name."""
    if study not in records:
        raise LookupError(f"{NAME}: there is no result of the study {study}")
    found = [one for one in records[study].finding.numbers if one.name[0] == name]
    if len(found) != 1:
        raise LookupError(f"{NAME}: {study} has {len(found)} numbers named {name!r}")
    return found[0]


def _blocks(aspect: Aspect, records: Mapping[str, Record], say: Speaker) -> list[Block]:
    said = [("RNN", aspect.rnn), ("Transformer", aspect.transformer)]
    blocks: list[Block] = [Text(f"{say('said', model=name)}{say('colon')}{say.pick(text)}") for name, text in said]
    blocks.append(_table(aspect, records, say))
    if say.pick(aspect.note):
        blocks.append(Text(say.pick(aspect.note), "muted"))
    return blocks


def _table(aspect: Aspect, records: Mapping[str, Record], say: Speaker) -> Table:
    """Below the title and the verdict of each study, the numbers quoted from it."""
    heads = ("quantity", "measured", "interval", "seeds", "verdict")
    columns = [Column(say(head), number=head in ("measured", "interval", "seeds")) for head in heads]
    rows = []
    for study, names in aspect.quoted.items():
        verdict = _verdict(records, study, say)
        title = Cell(title_of(find_study(study), say), link=f"{study}.md")
        rows.append(Row([title, Cell(""), Cell(""), Cell(""), Cell(verdict)]))
        for name in names:
            one = number(records, study, name)
            unit = f" {say.pick(one.unit)}" if say.pick(one.unit) else ""
            texts = (say.pick(one.name), short(one.value) + unit, limits(one), str(one.seeds), "")
            rows.append(Row([Cell(text) for text in texts]))
    return Table(say("quoted"), columns, rows)


def _errors(say: Speaker) -> list[Block]:
    blocks: list[Block] = [Text(say("errors lead"))]
    for error in ERRORS:
        text = say("error", name=error.document, text=say.pick(error.text))
        blocks.append(Code([(text, error.code.strip())], "python"))
    return blocks


def title_of(study: Study, say: Speaker) -> str:
    return f"{study.number}. {say.pick(study.title)}" if study.number else say.pick(study.title)


def _short(study: str) -> str:
    found = find_study(study)
    return f"{found.number}" if found.number else study


def _verdict(records: Mapping[str, Record], study: str, say: Speaker) -> str:
    if study not in records:
        raise LookupError(f"{NAME}: there is no result of the study {study}")
    return say.pick(VERDICTS[records[study].finding.verdict])
