"""Prompt templates: what they may say, what is refused, and that the text of a row stays text."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqloom.core.errors import UserError
from seqloom.decode.templates import DEFAULT, MOST_BYTES, Template, Wording, fill, find_template

LABELS = ["0", "1"]

WRONG: dict[str, tuple[str, str]] = {
    "unknown key": ('exampel = "a"', "exampel: no such option; did you mean example"),
    "unknown placeholder": ('example = "{text} {lable}"', r"example has \{lable\}, which has no meaning there"),
    "placeholder of another key": ('example = "{text} {label}"\nquery = "{text} {label}"', r"query has \{label\}"),
    "no text": ('example = "It is {label}"', r"example has no \{text\}"),
    "no label": ('example = "It is {text}"', r"example has no \{label\}"),
    "two labels": ('example = "{text} {label} {label}"', r"example has \{label\} twice"),
    "query without text": ('query = "What is it?"', r"query has no \{text\}"),
    "placeholder in the separator": ('separator = "{text}"', r"separator has \{text\}, .* \(known: none\)"),
    "empty word": ('[labels]\n0 = " "', "the word for label '0' is empty"),
    "empty neutral input": ('neutral = ""', "neutral"),
    "wrong type": ("instruction = 3", "instruction=3"),
    "a list": ('example = ["{text}"]', "example="),
    "not TOML": ("example: {text}", "not valid TOML"),
    "a chat that is no choice": ('chat = "maybe"', "chat="),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_template_is_one_line_with_the_file_and_the_reason(name: str, tmp_path: Path) -> None:
    content, reason = WRONG[name]
    path = tmp_path / "my.toml"
    path.write_text(content)
    with pytest.raises(UserError, match=reason) as error:
        find_template(str(path))
    assert str(error.value).startswith(str(path)) and "\n" not in str(error.value)
    assert "template" not in str(error.value).removeprefix(str(path)), "the name of the section is ours, not the user's"


def test_files_that_are_no_templates_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_bytes(b'instruction = "' + b"x" * MOST_BYTES + b'"')
    with pytest.raises(UserError, match="at most 100,000 bytes"):
        find_template(str(path))
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not UTF-8 text"):
        find_template(str(path))
    for missing in (tmp_path, tmp_path / "none.toml", Path("/dev/zero")):
        with pytest.raises(UserError, match="no such template"):
            find_template(str(missing))


def test_a_recorded_template_is_the_same_template() -> None:
    assert find_template(DEFAULT.model_dump_json()) == DEFAULT == find_template("default")


def test_what_is_filled_in_stays_as_it_is() -> None:
    wording = Wording(find_template("default"), LABELS)
    assert wording.asked(["{label} {text} {0} %s"]) == "Text: {label} {text} {0} %s\nCategory:"
    assert fill("{text}{text}", {"text": "{text}"}) == "{text}{text}"


def test_words_stand_for_labels_and_white_space_belongs_to_them() -> None:
    template = Template(example="A: {text} ->  {label}!", instruction="One of {labels}", labels={"0": "no", "1": "yes"})
    wording = Wording(template, LABELS)
    assert (wording.opening(), wording.words, wording.gap, wording.after) == (
        "One of no, yes",
        ["no", "yes"],
        "  ",
        "!",
    )
    assert wording.shown(["x"]) == wording.asked(["x"]) == "A: x ->"
    assert Wording(Template(query="Q {text} "), LABELS).asked(["x"]) == "Q x"


def test_labels_need_words_that_differ() -> None:
    with pytest.raises(UserError, match="no word for label '1'"):
        Wording(Template(labels={"0": "no"}), LABELS)
    with pytest.raises(UserError, match="the same word 'no' for labels '0' and '1'"):
        Wording(Template(labels={"0": "no", "1": " no"}), LABELS)


def test_a_second_text_has_a_line_of_its_own_or_none() -> None:
    one, two = Wording(DEFAULT, LABELS), Wording(DEFAULT, LABELS, pair=True)
    assert one.asked(["a"]) == "Text: a\nCategory:"
    assert two.asked(["a", "b"]) == "Text: a\nSecond text: b\nCategory:"
    with pytest.raises(UserError, match="the rows have two texts"):
        Wording(Template(), LABELS, pair=True)
    with pytest.raises(UserError, match="the rows have one text"):
        Wording(Template(example="{text} {second} {label}"), LABELS)


def test_a_chat_has_an_instruction_examples_and_the_row() -> None:
    wording = Wording(DEFAULT, LABELS)
    said = wording.messages([(["a"], 1)], ["b"])
    assert [m["role"] for m in said] == ["system", "user", "assistant", "user"]
    assert [m["content"] for m in said[1:]] == ["Text: a\nCategory:", "1", "Text: b\nCategory:"]
