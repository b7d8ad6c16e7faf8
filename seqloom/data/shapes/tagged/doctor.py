"""Findings on tagged sentences, and the tokenizer that suits them: in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted
from seqloom.data.findings import Finding, Level, Lines, concluded, size_finding
from seqloom.data.portions import split_rows
from seqloom.data.role_names import flag
from seqloom.data.shapes.tagged.reading import TaggedSource, open_tagged
from seqloom.data.shapes.tagged.spans import USUAL, Fields

FEW, SMALL = 200, 5_000  # sentences
LONG = 250  # words in one sentence
RARE = 50  # entities a label needs to be learnt
LOPSIDED = 50  # ratio of the most to the least frequent label
FORMS = 500_000  # distinct words remembered


@dataclass
class Survey:
    """What one pass over the sentences finds."""

    words: Counter[int] = field(default_factory=Counter)  # sentences by their length
    long: list[int] = field(default_factory=list)  # lines of sentences that are too long
    labels: Counter[str] = field(default_factory=Counter)  # entities per label, or words per tag
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
    spec: str,
    word: int = 1,
    tag: int = -1,
    column: str = "text",
    valid: str | None = None,
    fields: Fields = USUAL,
) -> list[Finding]:
    """All findings on tagged sentences, errors included; never raises for the content of the file."""
    try:
        source = open_tagged(spec, word, tag, column, fields)
        survey = Survey()
        for row in source.rows():
            survey.add(row.line, row.words, row.tags, source.entities)
        findings = [*_size(source, survey), *_scheme(source), *_labels(source, survey), *_sentences(survey)]
        findings += _other(source, survey, open_tagged(valid, word, tag, column, fields)) if valid else _split(source)
    except UserError as error:
        return [Finding("error", str(error), "fix the file and run the doctor again")]
    findings.append(_suited(source, survey))
    return concluded(findings)


def _size(source: TaggedSource, survey: Survey) -> Iterator[Finding]:
    size = f"{source.count:,} sentences, {source.words:,} words, {len(survey.forms):,} distinct words"
    yield size_finding(size, source.count, FEW, SMALL, "task.characters")
    if source.dropped:
        yield Finding("note", f"{source.dropped:,} sentences without words are left out", "nothing to do")


def _scheme(source: TaggedSource) -> Iterator[Finding]:
    survey = source.survey
    if not source.entities:
        yield Finding("ok", f"{len(survey.tags)} tags without prefixes: scored word by word")
        return
    scheme = "BIO" if survey.scheme == "BIO" else f"{survey.scheme}, converted to BIO"
    yield Finding("ok", f"tag scheme: {scheme}")
    count, lines = survey.broken
    if count:
        shown = ", ".join(map(str, lines)) + (", ..." if count > len(lines) else "")
        total = sum(number for tag, number in survey.tags.items() if tag != "O")
        level: Level = "warning" if count > total / 100 else "note"
        message = f"{count:,} tags are invalid in {survey.scheme}, like I- after O (lines {shown})"
        yield Finding(level, message, "each is read as the start of an entity; fix those that are not")


def _labels(source: TaggedSource, survey: Survey) -> Iterator[Finding]:
    labels, what = survey.labels, "entities" if source.entities else "words"
    shown = ", ".join(f"{label} {count:,}" for label, count in labels.most_common(12))
    if not labels or len(source.survey.tags) < 2:
        only = next(iter(source.survey.tags))
        yield Finding(
            "error", f"every word has the tag {quoted(only)}: nothing to learn", f"wrong column? {flag('tags')}"
        )
        return
    yield Finding("ok", f"{what}: {shown}{', ...' if len(labels) > 12 else ''}")
    most, least = labels.most_common()[0], labels.most_common()[-1]
    rare = [label for label, count in labels.items() if count < RARE]
    if source.entities and rare:
        message = f"labels seen fewer than {RARE} times: {', '.join(rare[:10])}"
        yield Finding("note", message, "expect low scores for them; look at the score of each label")
    if source.entities and most[1] > LOPSIDED * least[1]:
        message = f"{most[0]} is {most[1] / least[1]:,.0f} times as frequent as {least[0]}"
        yield Finding("warning", message, "the overall score hides rare labels; look at the score of each")
    outside = source.survey.tags["O"] / source.words
    if source.entities and outside > 0.97:
        message = f"{outside:.1%} of the words are outside any entity"
        yield Finding("note", message, "word accuracy will look high whatever is learnt; look at F1")


def _sentences(survey: Survey) -> Iterator[Finding]:
    total, left, median = survey.words.total(), survey.words.total() / 2, 0
    for length in sorted(survey.words):
        left, median = left - survey.words[length], length
        if left <= 0:
            break
    yield Finding("ok", f"words per sentence: median {median}, longest {max(survey.words)}")
    if survey.words[1] > total / 2:
        advice = "an empty line ends a sentence; is there one after every word?"
        yield Finding("warning", f"{survey.words[1] / total:.0%} of the sentences are a single word", advice)
    if survey.long:
        message = f"{len(survey.long):,} sentences have more than {LONG} words (the first is on line {survey.long[0]})"
        advice = "are empty lines missing? task.longest sets where they are cut"
        yield Finding("warning" if len(survey.long) > total / 100 else "note", message, advice)
    if (repeated := survey.lines.repeated()) > 0.01:
        message = f"{repeated:.1%} of the sentences are duplicates"
        yield Finding("note" if repeated < 0.2 else "warning", message, "remove them, or they weigh more than others")
    if (differ := survey.lines.repeated() - survey.meanings.repeated()) > 0.001:
        message = f"{differ:.1%} of the sentences occur again with different tags"
        yield Finding("warning", message, "check them: only one version can be right")


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
        yield Finding(
            "error",
            f"{valid.name}: its tags are not of the same kind as in {source.name}",
            f"wrong column? {flag('tags')}",
        )
    elif new:
        shown = ", ".join(list(new)[:10])
        message = f"{sum(new.values()):,} words in {valid.name} have tags that are not in {source.name}: {shown}"
        yield Finding("warning", message, "they always count as errors; do the two files belong together?")
    yield Finding("ok", f"{unseen / words:.1%} of the words in {valid.name} are not in the training set")
    broken, lines = valid.survey.broken
    if broken:
        message = f"{valid.name}: {broken:,} tags are invalid in {valid.survey.scheme} (line {lines[0]}, ...)"
        yield Finding("note", message, "each is read as the start of an entity")
    overlap = survey.lines.overlap()
    message = f"{overlap:.1%} of the sentences in {valid.name} are also in the training set"
    if overlap > 0.02:
        yield Finding("warning", message, "scores will look too good; remove them from one of the two")
    else:
        yield Finding("ok", message)


def _split(source: TaggedSource) -> Iterator[Finding]:
    try:
        split_rows(source)
    except UserError as error:
        yield Finding("error", str(error))
    else:
        yield Finding("ok", "validation: split by a hash of the sentence, so no sentence is in two splits")


def _suited(source: TaggedSource, survey: Survey) -> Finding:
    if survey.single > 0.5 * source.words:
        return Finding("note", "most words are single Chinese or Japanese characters", "use tokenizer.kind=characters")
    advice = "task.characters=convolution reads the characters of words, which helps with new ones"
    once = sum(count == 1 for count in survey.forms.values()) / max(1, len(survey.forms))
    return Finding("note", f"{once:.0%} of the distinct words occur only once", advice)
