"""Chat templates: rendered as transformers renders them, and none of them can do harm."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import foreign
import numpy as np
import pytest
import torch

from seqloom import cli
from seqloom.core.errors import UserError
from seqloom.decode import sandbox
from seqloom.decode.chat import chat_ids, conversation, render, turn_ends
from seqloom.runs.fit import fit
from seqloom.runs.run import load

pytestmark = pytest.mark.usefixtures("own_cache")

NAMES = {"bos_token": "<s>", "eos_token": "</s>"}
CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi <s> {{ 7 * 7 }}"},
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "Bye"},
]
CHATML = (
    "{% for message in messages %}{{ '<s>' + message['role'] + '\n' + message['content'] | trim + '</s>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<s>assistant\n' }}{% endif %}"
)
TEMPLATES = {
    "chatml": CHATML,
    "with a system message set apart": (
        "{% if messages[0]['role'] == 'system' %}{% set system = '<<' ~ messages[0].content ~ '>>' %}"
        "{% set rest = messages[1:] %}{% else %}{% set system = '' %}{% set rest = messages %}{% endif %}"
        "{{ bos_token }}"
        "{% for m in rest %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('order') }}"
        "{% endif %}{% if loop.first %}{{ system }}{% endif %}{% if m.role == 'user' %}[I] {{ m.content.strip() }} [/I]"
        "{% else %}{{ m['content'] + eos_token }}{% endif %}{%- if loop.last %}\n{% endif %}{% endfor %}"
    ),
    "with a namespace, tests and filters": (
        "{%- set ns = namespace(last='', n=0) -%}{%- for m in messages if m.content is string -%}"
        "{%- set ns.last = m.role | upper -%}{%- set ns.n = ns.n + 1 -%}"
        "{{ ns.n ~ ':' ~ ns.last ~ ' ' ~ m['content'] }}{{- eos_token if m.role != 'user' else '' }}\n"
        "{%- endfor -%}{{ messages | length }}{{ ['a', 'b'] | join('-') }}{{ 'x'.replace('x', 'y') }}"
        "{{ 'a:b'.split(':')[-1] }}{%- if tools is defined and tools %}{{ tools | tojson }}{% endif -%}"
    ),
}


def grown(step: str, start: str = "'aa'") -> str:
    return f"{{% set ns = namespace(s={start}) %}}{{% for i in range(60) %}}{{% set ns.s = {step} %}}{{% endfor %}}"


def often(body: str) -> str:
    return "{% for i in range(700) %}{% for j in range(700) %}" + body + "{% endfor %}{% endfor %}"


BIG = "{% set b = '" + "x" * 20_000 + "' %}"
DOUBLED = "{% for i in range(10) %}{% set n0.l = n0.l + n0.l %}{% endfor %}"
MANY = BIG + "{% set n0 = namespace(l=[b]) %}" + DOUBLED + "{% set l = n0.l %}"

HOSTILE = {
    "classes of a text": ("{{ messages.__class__.__mro__[1].__subclasses__() }}", "unsafe"),
    "globals of a function": ("{{ raise_exception.__globals__['sys'] }}", "unsafe|no attribute"),
    "attribute by filter": ("{{ messages | attr('__class__') }}", "No filter named 'attr'"),
    "attribute by map": ("{{ messages | map('attr', '__class__') | list }}", "No filter named 'attr'"),
    "attribute in map": (
        "{{ (messages | map(attribute='__class__') | first).mro() }}",
        "unsafe|undefined|no attribute",
    ),
    "builtins of jinja": ("{{ cycler.__init__.__globals__.os.popen('touch /tmp/seqloom-was-here') }}", "unsafe"),
    "format of a text": ("{{ '{0.__class__.__mro__}'.format(messages) }}", "it formats a text"),
    "format with a width": ("{{ '{:>1000000000}'['format'](1) }}", "it formats a text"),
    "import": ("{% import 'os' as os %}", "loads another template"),
    "from import": ("{% from 'os' import system %}", "loads another template"),
    "include": ("{% include '/etc/passwd' %}", "loads another template"),
    "extends": ("{% extends '/etc/passwd' %}", "loads another template"),
    "huge range": ("{% for i in range(10000000000) %}{% endfor %}", "range is too large"),
    "loops in loops": (
        "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
        "too many steps",
    ),
    "endless macro": ("{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}", "nested too deeply|too many steps"),
    "wide macros": (
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(30) }}",
        "too many steps",
    ),
    "endless loop": ("{% for m in messages recursive %}{{ loop(messages) }}{% endfor %}", "a recursive loop"),
    "wide recursive loop": (
        "{% for x in [1, 2] recursive %}{% if loop.depth < 30 %}{{ loop([1, 2]) }}{% endif %}{% endfor %}",
        "a recursive loop",
    ),
    "huge text": ("{{ 'a' * 10000000000 }}", r"uses \* on texts"),
    "huge list": ("{{ ([1] * 10000000000) | length }}", r"uses \* on texts or lists"),
    "huge power": ("{{ 9 ** 9 ** 9 ** 9 }}", r"it uses \*\*"),
    "huge width": ("{{ '%1000000000d' % 1 }}", "uses % on texts"),
    "huge width by a test": ("{{ '%1000000000d' is odd }}", "divides what is not a number"),
    "huge padding": ("{{ 'x'.ljust(10000000000) }}", "unsafe"),
    "huge indent": ("{{ 'x' | indent(10000000000) }}", "No filter named 'indent'"),
    "doubled text": (grown("ns.s + ns.s"), "text is too long"),
    "joined text": (grown("ns.s ~ ns.s"), "text is too long"),
    "replaced text": (grown("ns.s.replace('a', 'aa')"), "text is too long"),
    "replaced by filter": (grown("ns.s | replace('a', 'aa')"), "text is too long"),
    "nested lists": (grown("[ns.s, ns.s]", "[]"), "list is too large"),
    "nested dicts": (grown("{'a': ns.s, 'b': ns.s}", "[]"), "list is too large"),
    "huge number": (grown("ns.s * ns.s", "7"), "number is too large"),
    "huge output": ("{% for i in range(9999) %}{{ 'x                                    x' }}{% endfor %}", "too much"),
    "huge output in a block": (
        BIG + "{% set y %}{% for i in range(5000) %}{{ b }}{% endfor %}{% endset %}",
        "too much",
    ),
    "huge plain text in a block": (
        "{% set y %}{% for i in range(9000) %}" + "x" * 9000 + "{% endfor %}{% endset %}",
        "too much",
    ),
    "huge constants in a macro": (
        "{% macro f() %}{% for i in range(9000) %}{{ '" + "x" * 9000 + "' }}{% endfor %}{% endmacro %}{{ f() }}",
        "too much",
    ),
    "many texts by a filter": (MANY + "{% set y = l | map('upper') | list %}", "too many steps"),
    "many texts by a method": (BIG + often("{% set y = b.upper() %}"), "too many steps"),
    "many texts as JSON": (MANY + "{% set y = l | tojson %}", "too many steps"),
    "a list as a text": (MANY + "{% set y = l | lower %}", "writes a list as text|too many steps"),
    "a namespace as a text": (MANY + "{% set n = namespace(l=l) %}{{ n | lower }}", "writes a Namespace as text"),
    "a list by a test": (MANY + "{{ l is lower }}", "No test named 'lower'"),
    "many letters": (BIG + often("{% set y = b | join %}"), "too many steps"),
    "many lists": (MANY + often("{% if [l] %}{% endif %}"), "too many steps"),
    "many slices": (BIG + often("{% set y = b[1:] %}"), "too many steps"),
    "many comparisons": (BIG + often("{% if b == b[1:] ~ 'x' %}{% endif %}"), "too many steps"),
    "many small comparisons": (often("{%if 1==2%}{%endif%}" * 2000), "too many steps"),
    "many searches": (BIG + often("{% if 'y' in b %}{% endif %}"), "too many steps"),
    "many tests": (BIG + often("{% if b is gt(b) %}{% endif %}"), "too many steps"),
    "many searches by a method": (MANY + often("{% set y = l.count('y') %}"), "too many steps"),
    "many filters": (often("{% if 1 | int | int | int | int | int %}{% endif %}" * 200), "too many steps"),
    "many lookups": (often("{% set y = messages[0].role %}"), "too many steps"),
    "many conditions": (often("{%if a%}{%endif%}" * 2500), "too many steps"),
    "many conditions in a block": (
        "{% block a %}" + "{%if a%}{%endif%}" * 2500 + "{% endblock %}" + often("{% set y = self.a() %}"),
        "too many steps",
    ),
    "lazy filters": (often("{% set y = range(9999) | select | reject | first %}"), "too many steps"),
    "a loop left early": (often("{% for j in range(9999) %}{% break %}{% endfor %}"), "too many steps"),
    "break without a loop": ("{% break %}", "'break' outside loop"),
    "25 loops in each other": ("{% for i in [1] %}" * 25 + "{% endfor %}" * 25, "too many statically nested blocks"),
    "120 conditions in each other": ("{% if 1 %}" * 120 + "{% endif %}" * 120, "indentation|nested too deeply"),
    "900 conditions in each other": ("{% if 1 %}" * 900 + "{% endif %}" * 900, "indentation|nested too deeply"),
    "900 filters on each other": ("{{ 1 " + "|int" * 900 + " }}", "refused"),
    "deep nesting": ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "nested too deeply"),
    "changed messages": ("{{ messages.clear() }}", "unsafe"),
    "strange date": ("{{ strftime_now('%999999999d') }}", "strange date"),
    "missing filter": ("{{ messages | nonsense }}", "No filter named 'nonsense'"),
    "missing function": ("{{ open('/etc/passwd').read() }}", "'open' is undefined"),
    "unfinished": ("{% for m in messages %}", "refused"),
    "too long": ("x" * 60_000, "it has 60,000 characters"),
    "messages as they are": ("{{ messages }}", "writes a list as text"),
    "no content": ("hello", "leaves out what the user says"),
    "its own refusal": ("{{ raise_exception('no system, please') }}", "it says: no system, please"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_template_is_refused_in_one_line(name: str) -> None:
    template, reason = HOSTILE[name]
    with pytest.raises(UserError, match=reason) as error:
        render(template, [{"role": "user", "content": "hi"}], NAMES, True)
    assert "\n" not in str(error.value)
    assert not Path("/tmp/seqloom-was-here").exists()


def test_what_the_hostile_templates_begin_with_is_allowed() -> None:
    assert sandbox.run(MANY + "{{ l | length }}", {}) == "1024"


def test_a_template_may_look_at_all_messages_in_every_turn_of_a_long_chat() -> None:
    chat = [{"role": "assistant" if n % 2 else "user", "content": "hi"} for n in range(3001)]
    template = (
        "{% macro said(m) %}{{ m.content | trim }}{% endmacro %}{% for m in messages[0:] %}"
        "{% if m.role not in ['user', 'assistant'] or m['role'] == 'tool' %}{{ raise_exception('role') }}{% endif %}"
        "{{ said(m) }}{% if loop.index == messages | length %}!{% endif %}{% endfor %}"
    )
    pieces = render(template, chat, NAMES, True)
    assert [n for _, n in pieces] == [*range(3001), None] and pieces[-1][0] == "!"


def test_a_lazy_filter_is_true_even_if_it_finds_nothing_as_in_jinja() -> None:
    template = "{% if m | selectattr('role', 'equalto', 'tool') %}yes{% endif %}{{ m | map(attribute='role') | join }}"
    assert sandbox.run(template, {"m": [{"role": "user"}]}) == "yesuser"


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_is_rendered_as_in_transformers(name: str) -> None:
    from transformers.utils.chat_template_utils import render_jinja_template

    wanted, _ = render_jinja_template([CHAT], chat_template=TEMPLATES[name], add_generation_prompt=True, **NAMES)
    assert "".join(text for text, _ in render(TEMPLATES[name], CHAT, NAMES, True)) == wanted[0]


@pytest.fixture(scope="module")
def talker(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny decoder with a chat template."""
    folder = tmp_path_factory.mktemp("models") / "talker"
    foreign.save(folder, *foreign.DECODERS["llama grouped"])
    (folder / "tokenizer_config.json").write_text(json.dumps({**foreign.MARKS, "chat_template": CHATML}))
    return f"hf:{folder}"


def test_special_tokens_of_the_template_are_tokens_and_those_of_a_message_are_text(talker: str) -> None:
    tokenizer = load(talker).tokenizer
    pieces = conversation(tokenizer, CHAT)
    ids = np.concatenate([ids for ids, _ in pieces])
    assert (ids == tokenizer.bos).sum() == len(CHAT) + 1 and (ids == tokenizer.eos).sum() == len(CHAT)
    (said,) = (ids for ids, n in pieces if n == 1)
    assert tokenizer.decode(said) == CHAT[1]["content"] and not set(said.tolist()) & tokenizer.specials
    assert turn_ends(tokenizer) == {tokenizer.eos}


def test_a_chat_is_answered(talker: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    run = load(talker)
    how: dict[str, Any] = {"max_new": 6, "temperature": 0}
    answer = run.generate("Hi", chat=True, system="Be brief.", **how)
    ids = chat_ids(run.tokenizer, [CHAT[0], {"role": "user", "content": "Hi"}])
    with torch.inference_mode():
        first = int(run.model(torch.tensor([ids]))[0][0, -1].argmax())
    assert next(run.stream("Hi", chat=True, system="Be brief.", **how)) == [first]
    assert "".join(run.write("Hi", chat=True, system="Be brief.", **how)) == answer
    assert isinstance(run.generate("Hi", chat=True, beams=2, max_new=3), str)
    words = ["generate", talker, "--prompt", "Hi", "--chat", "--system", "Be brief.", "--max-new", "6"]
    monkeypatch.setattr(sys, "argv", ["seqloom", *words, "--temperature", "0"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0 and capsys.readouterr().out == f"{answer}\n"


def test_an_answer_ends_where_the_template_ends_a_turn(talker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = load(talker)
    monkeypatch.setattr(run.tokenizer, "template", CHATML.replace("</s>", "<pad>"))
    assert turn_ends(run.tokenizer) == {run.tokenizer.eos, run.tokenizer.pad}
    monkeypatch.setattr(sandbox, "MOST_STEPS", 1)
    with pytest.raises(UserError, match="too many steps"):
        run.generate("Hi", chat=True)


def test_a_run_without_a_template_says_so(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(foreign.TEXT * 30)
    train = {"steps": 2, "threads": 1}
    run = fit(
        data=str(tmp_path / "book.txt"),
        model={"name": "gru", "width": 8},
        train=train,
        out=tmp_path / "run",
        quiet=True,
    )
    with pytest.raises(UserError, match="this model has no chat template"):
        run.generate("Hi", chat=True)
    with pytest.raises(UserError, match="only a chat has a system message"):
        run.generate("Hi", system="Be brief.")
