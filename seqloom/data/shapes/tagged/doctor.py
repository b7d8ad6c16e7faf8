"""What is wrong with sentences whose words have tags, and what suits them, before any training; in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from seqloom.core.errors import UserError
from seqloom.data.findings import Finding, Level, Lines, concluded, size_finding
from seqloom.data.shapes.tagged.reading import TaggedSource, open_tagged

FEW, SMALL = 200, 5_000  # sentences
LONG = 250  # words in one sentence
RARE = 50  # names of a label from which it can be learnt
LOPSIDED = 50  # times as many of one label as of another
FORMS = 500_000  # different words that are remembered


@dataclass
class Survey:
    """What one reading of the sentences has found."""

    words: Counter[int] = field(default_factory=Counter)  # sentences by their length
    long: list[int] = field(default_factory=list)  # lines of those that are too long
    labels: Counter[str] = field(default_factory=Counter)  # names of each kind, or words of each tag
    forms: Counter[str] = field(default_factory=Counter)
    single: int = 0  # words of a single character
    lines: Lines = field(default_factory=Lines)
    meanings: Lines = field(default_factory=Lines)  # sentences with their tags

    def add(self, line: int, words: list[str], tags: list[str], entities: bool) -> None:
        self.words[len(words)] += 1
        if len(words) > LONG:
            self.long.append(line)
        self.labels.update((tag[2:] for tag in tags if tag.startswith("B-")) if entities else tags)
        if len(self.forms) < FORMS:
            self.forms.update(words)
        self.single += sum(len(word) == 1 and ord(word) >= 0x3000 for word in words)
        self.lines.add(" ".join(words), True)
        self.meanings.add(" ".join(words) + "\0" + " ".join(tags), True)


def examine_tagged(
    spec: str, word: int = 1, tag: int = -1, column: str = "text", valid: str | None = None
) -> list[Finding]:
    """Everything worth knowing about words with tags, errors among it; never raises for what is in the file."""
    try:
        source = open_tagged(spec, word, tag, column)
        survey = Survey()
        for row in source.rows():
            survey.add(row.line, row.words, row.tags, source.entities)
        findings = [*_size(source, survey), *_scheme(source), *_labels(source, survey), *_sentences(survey)]
        findings += _other(source, survey, open_tagged(valid, word, tag, column)) if valid else _split()
    except UserError as error:
        return [Finding("error", str(error), "mend the file and look again")]
    findings.append(_suited(source, survey))
    return concluded(findings)


def _size(source: TaggedSource, survey: Survey) -> Iterator[Finding]:
    size = f"{source.count:,} sentences, {source.words:,} words, {len(survey.forms):,} different ones"
    yield size_finding(size, source.count, FEW, SMALL, "task.characters")
    if source.dropped:
        yield Finding("note", f"{source.dropped:,} sentences without a word are left out", "nothing to do")


def _scheme(source: TaggedSource) -> Iterator[Finding]:
    survey = source.survey
    if not source.entities:
        yield Finding("ok", f"{len(survey.tags)} tags without prefixes: each word is scored by itself")
        return
    told = "BIO" if survey.scheme == "BIO" else f"{survey.scheme}, which is read as BIO"
    yield Finding("ok", f"the tags are in {told}")
    count, lines = survey.broken
    if count:
        shown = ", ".join(map(str, lines)) + (", ..." if count > len(lines) else "")
        total = sum(number for tag, number in survey.tags.items() if tag != "O")
        level: Level = "warning" if count > total / 100 else "note"
        message = f"{count:,} tags stand where {survey.scheme} forbids it, like I- after O (lines {shown})"
        yield Finding(level, message, "each is read as the beginning of a name; mend them if they are not")


def _labels(source: TaggedSource, survey: Survey) -> Iterator[Finding]:
    labels, what = survey.labels, "names" if source.entities else "words"
    shown = ", ".join(f"{label} {count:,}" for label, count in labels.most_common(12))
    if not labels or len(source.survey.tags) < 2:
        only = next(iter(source.survey.tags))
        yield Finding("error", f"every word has the tag {only!r}: nothing to learn", "another column? see --tag")
        return
    yield Finding("ok", f"{what}: {shown}{', ...' if len(labels) > 12 else ''}")
    most, least = labels.most_common()[0], labels.most_common()[-1]
    rare = [label for label, count in labels.items() if count < RARE]
    if source.entities and rare:
        message = f"seen fewer than {RARE} times: {', '.join(rare[:10])}"
        yield Finding("note", message, "expect little of them; look at the score of each type")
    if source.entities and most[1] > LOPSIDED * least[1]:
        message = f"{most[0]} is {most[1] / least[1]:,.0f} times as frequent as {least[0]}"
        yield Finding("warning", message, "one score for all hides the rare ones; look at the score of each type")
    outside = source.survey.tags["O"] / source.words
    if source.entities and outside > 0.97:
        message = f"{outside:.1%} of the words are in no name"
        yield Finding("note", message, "word accuracy will look high whatever is learnt; F1 tells")


def _sentences(survey: Survey) -> Iterator[Finding]:
    total, left, median = survey.words.total(), survey.words.total() / 2, 0
    for length in sorted(survey.words):
        left, median = left - survey.words[length], length
        if left <= 0:
            break
    yield Finding("ok", f"words of a sentence: median {median}, longest {max(survey.words)}")
    if survey.words[1] > total / 2:
        advice = "an empty line ends a sentence; is there one after every word?"
        yield Finding("warning", f"{survey.words[1] / total:.0%} of the sentences are a single word", advice)
    if survey.long:
        message = f"{len(survey.long):,} sentences have more than {LONG} words (the first is line {survey.long[0]})"
        advice = "are empty lines missing? task.longest says where they are cut"
        yield Finding("warning" if len(survey.long) > total / 100 else "note", message, advice)
    if (repeated := survey.lines.repeated()) > 0.01:
        message = f"{repeated:.1%} of the sentences are repeats"
        yield Finding("note" if repeated < 0.2 else "warning", message, "remove them, or they weigh more than others")
    if (differ := survey.lines.repeated() - survey.meanings.repeated()) > 0.001:
        message = f"{differ:.1%} of the sentences are there before with other tags"
        yield Finding("warning", message, "look at them: only one can be right")


def _other(source: TaggedSource, survey: Survey, valid: TaggedSource) -> Iterator[Finding]:
    words = unseen = 0
    tags: Counter[str] = Counter()
    for row in valid.rows():
        survey.lines.add(" ".join(row.words), False)
        words, unseen = words + len(row.words), unseen + sum(word not in survey.forms for word in row.words)
        tags.update(row.tags)
    known = {f"I-{label}" for label in survey.labels} if source.entities else set()
    for row in source.rows():
        known.update(row.tags)
    new = {tag: count for tag, count in tags.items() if tag not in known}
    if source.entities != valid.entities:
        yield Finding("error", f"{valid.name}: tags of another kind than those of {source.name}", "see --tag")
    elif new:
        shown = ", ".join(list(new)[:10])
        message = f"{sum(new.values()):,} words of {valid.name} have tags that are not in {source.name}: {shown}"
        yield Finding("warning", message, "they count as wrong, whatever the model says; are the files of one kind?")
    yield Finding("ok", f"{unseen / words:.1%} of the words of {valid.name} are not among those to train on")
    broken, lines = valid.survey.broken
    if broken:
        message = f"{valid.name}: {broken:,} tags stand where {valid.survey.scheme} forbids it (line {lines[0]}, ...)"
        yield Finding("note", message, "each is read as the beginning of a name")
    overlap = survey.lines.overlap()
    message = f"{overlap:.1%} of the sentences of {valid.name} are among those to train on"
    if overlap > 0.02:
        yield Finding("warning", message, "the score will flatter the model; remove them from one of the two")
    else:
        yield Finding("ok", message)


def _split() -> Iterator[Finding]:
    yield Finding("ok", "validation: split by a hash of the sentence, so that none is in two parts")


def _suited(source: TaggedSource, survey: Survey) -> Finding:
    if survey.single > 0.5 * source.words:
        return Finding("note", "most words are single Chinese or Japanese characters", "tokenizer.kind=characters")
    advice = "task.characters=convolution reads the letters of words, so that new ones say something"
    once = sum(count == 1 for count in survey.forms.values()) / max(1, len(survey.forms))
    return Finding("note", f"{once:.0%} of the different words are seen once", advice)
