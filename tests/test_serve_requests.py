"""The protocol of OpenAI with its own client, unchanged, and what no request may hold."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator

import openai
import pytest
from serve_toys import TOKEN, Running, serving, until

from seqloom.serve.bodies import read_json
from seqloom.serve.faults import Refused
from seqloom.serve.limits import Limits

L = Limits()


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with serving("book", "chat", "label", "endless", "dir/book", indexes=["notes"]) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key=TOKEN, base_url=f"http://127.0.0.1:{server.port}/v1", max_retries=0) as found:
        yield found


def test_models_are_listed_and_found(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["book", "chat", "label", "endless", "book-2"]
    assert client.models.retrieve("book-2").owned_by == "seqloom"
    with pytest.raises(openai.NotFoundError) as error:
        client.models.retrieve("nosuch")
    assert error.value.code == "model_not_found"


def test_a_completion_is_the_same_whole_and_in_pieces(client: openai.OpenAI) -> None:
    how = {
        "model": "book",
        "prompt": "Once",
        "max_tokens": 6,
        "seed": 1,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": "END",
    }
    whole = client.completions.create(**how, extra_body={"top_k": 3})
    assert whole.choices[0].finish_reason == "length" and whole.usage.completion_tokens == 6
    pieces = list(client.completions.create(**how, stream=True, stream_options={"include_usage": True}))
    assert "".join(piece.choices[0].text for piece in pieces[:-1]) == whole.choices[0].text
    assert pieces[-1].usage.total_tokens == whole.usage.total_tokens and not pieces[-1].choices
    raw = client.completions.with_raw_response.create(**how)
    assert raw.headers["x-seqloom-version"] == "v1"


def test_several_prompts_with_several_continuations(client: openai.OpenAI) -> None:
    found = client.completions.create(model="book", prompt=["a", "b"], n=2, max_tokens=3, logprobs=2, echo=True)
    assert [choice.index for choice in found.choices] == [0, 1, 2, 3]
    assert found.usage.completion_tokens == 12
    for choice in found.choices:
        assert "".join(choice.logprobs.tokens) == choice.text
        assert choice.logprobs.text_offset[1] == len(choice.logprobs.tokens[0])
        assert len(choice.logprobs.top_logprobs[0]) == 2
    for prompt in ([1, 2, 3], [[1, 2], [3]]):
        assert client.completions.create(model="book", prompt=prompt, max_tokens=1).choices


def test_a_chat_with_log_probabilities(client: openai.OpenAI) -> None:
    said = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
    ]
    how = {
        "model": "chat",
        "messages": said,
        "max_completion_tokens": 4,
        "logprobs": True,
        "top_logprobs": 2,
        "seed": 3,
    }
    whole = client.chat.completions.create(**how)
    choice = whole.choices[0]
    assert choice.message.role == "assistant" and whole.usage.completion_tokens == 4
    assert "".join(token.token for token in choice.logprobs.content) == choice.message.content
    assert len(choice.logprobs.content[0].top_logprobs) == 2
    pieces = list(client.chat.completions.create(**how, stream=True, stream_options={"include_usage": True}))
    assert pieces[0].choices[0].delta.role == "assistant" and pieces[-1].usage.completion_tokens == 4
    texts = [piece.choices[0].delta.content or "" for piece in pieces[:-1]]
    assert "".join(texts) == choice.message.content and pieces[-2].choices[0].finish_reason == "length"
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="book", messages=said)


def test_embeddings_as_numbers_and_packed(client: openai.OpenAI) -> None:
    for given in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):  # by default the client packs
        found = client.embeddings.create(model="book", input=["a", "b"], **given)
        vector = found.data[1].embedding
        if given.get("encoding_format") == "base64":
            vector = struct.unpack("<3f", base64.b64decode(vector))
        assert vector == pytest.approx([0.6, 0.8, 0.0]) and found.usage.prompt_tokens == 2
    with pytest.raises(openai.BadRequestError):
        client.embeddings.create(model="label", input="a")
    assert client.embeddings.create(model="book", input="a", dimensions=3).data
    with pytest.raises(openai.BadRequestError):
        client.embeddings.create(model="book", input="a", dimensions=2)


def test_errors_are_those_that_the_client_knows(server: Running, client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as error:
        client.completions.create(model="nosuch", prompt="a")
    assert (error.value.code, error.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.BadRequestError) as wrong:
        client.completions.create(model="book", prompt="a", max_tokens=-1)
    assert (wrong.value.param, wrong.value.type) == ("max_tokens", "invalid_request_error")
    stranger = openai.OpenAI(api_key="wrong", base_url=f"http://127.0.0.1:{server.port}/v1", max_retries=0)
    with stranger, pytest.raises(openai.AuthenticationError):
        stranger.models.list()
    with pytest.raises(openai.APIError, match=r"aborted|ended"):
        list(client.completions.create(model="book", prompt="<crash><after:2>", stream=True, max_tokens=9))
    assert until(lambda: server.ask("GET", "/health").status == 200, 30)


def test_the_routes_of_the_page(server: Running) -> None:
    found = server.ask("POST", "/api/models/label/predict", {"texts": ["a", "b"]})
    assert len(found.json()["rows"]) == 2 and found.json()["columns"] == ["text"]
    found = server.ask("POST", "/api/models/label/explain", {"text": "a"}).json()
    page = server.ask("GET", found["page"])
    assert b"explained" in page.body and "sandbox allow-scripts" in page.headers["content-security-policy"]
    assert "frame-ancestors 'self'" in page.headers["content-security-policy"]
    assert page.headers["x-frame-options"] == "SAMEORIGIN"
    found = server.ask("POST", "/api/indexes/notes/ask", {"question": "how long?"}).json()
    assert found["reply"]["text"] == "three years" and server.ask("GET", found["page"]).status == 200
    assert server.ask("GET", "/api/pages/nosuch").status == 404
    assert server.ask("POST", "/api/models/book/embed", {"texts": ["a"]}).json()["tokens"] == 1
    events = server.ask("POST", "/api/models/book/generate", {"prompt": "a", "max_new": 2, "logprobs": 1}).events()
    assert events[0]["started"] and events[-1] == "[DONE]" and len(events[1]["token"]["top"]) == 1
    about = server.ask("GET", "/api/server").json()
    assert about["indexes"][0]["name"] == "notes" and about["limits"]["body"] == L.body


def test_pages_make_room_for_newer_ones(server: Running) -> None:
    first = server.ask("POST", "/api/models/label/explain", {"text": "a"}).json()["page"]
    for _ in range(L.pages - 1):
        server.call(lambda: server.state.pages.add("x"))
    assert server.ask("GET", first).status == 200
    server.call(lambda: server.state.pages.add("x"))
    assert server.ask("GET", first).status == 404


GENERATE, COMPLETE, CHAT = "/api/models/book/generate", "/v1/completions", "/v1/chat/completions"
SAID = [{"role": "user", "content": "a"}]
BASE = {
    GENERATE: {"prompt": "a", "max_new": 1},
    COMPLETE: {"model": "book", "prompt": "a", "max_tokens": 1},
    CHAT: {"model": "chat", "messages": SAID, "max_tokens": 1},
}
LIMITED = [  # route, at the limit, beyond it
    *((route, {"n": L.n}, {"n": L.n + 1}) for route in BASE),
    *((route, {"stop": ["x"] * L.stops}, {"stop": ["x"] * (L.stops + 1)}) for route in BASE),
    *((route, {"stop": ["x" * L.stop_characters]}, {"stop": ["x" * (L.stop_characters + 1)]}) for route in BASE),
    *((route, {"top_k": L.top_k}, {"top_k": L.top_k + 1}) for route in BASE),
    *((route, {"temperature": 0}, {"temperature": -0.01}) for route in BASE),
    *((route, {"temperature": 2}, {"temperature": 10.01}) for route in BASE),
    *((route, {"top_p": 1}, {"top_p": 1.01}) for route in BASE),
    *((route, {"top_p": 0.01}, {"top_p": 0}) for route in BASE),
    (GENERATE, {"logprobs": L.top_logprobs}, {"logprobs": L.top_logprobs + 1}),
    (COMPLETE, {"logprobs": L.top_logprobs}, {"logprobs": L.top_logprobs + 1}),
    (CHAT, {"logprobs": True, "top_logprobs": L.top_logprobs}, {"logprobs": True, "top_logprobs": L.top_logprobs + 1}),
    (GENERATE, {"max_new": 1000}, {"max_new": 1001}),  # the window of the model
    (COMPLETE, {"max_tokens": 1000}, {"max_tokens": 1001}),
    (CHAT, {"max_completion_tokens": 1000}, {"max_completion_tokens": 1001}),
    (COMPLETE, {"model": "endless", "max_tokens": 1001}, {"model": "endless", "max_tokens": L.new_tokens + 1}),
    (COMPLETE, {"prompt": ["a"] * L.prompts}, {"prompt": ["a"] * (L.prompts + 1)}),
    (CHAT, {"messages": SAID * L.messages}, {"messages": SAID * (L.messages + 1)}),
    ("/v1/embeddings", {"model": "book", "input": ["a"] * L.rows}, {"model": "book", "input": ["a"] * (L.rows + 1)}),
    ("/api/models/label/predict", {"texts": ["a"] * L.rows}, {"texts": ["a"] * (L.rows + 1)}),
]  # fmt: skip


@pytest.mark.parametrize("route, at, beyond", LIMITED)
def test_a_limit_holds_at_its_value_and_not_beyond(server: Running, route: str, at: dict, beyond: dict) -> None:
    assert server.ask("POST", route, BASE.get(route, {}) | at).status == 200
    found = server.ask("POST", route, BASE.get(route, {}) | beyond)
    assert found.status == 400 and len(found.body) <= L.error


@pytest.mark.parametrize("depth, fine", [(L.depth, True), (L.depth + 1, False)])
def test_json_has_a_depth(depth: int, fine: bool) -> None:
    data = b"[" * depth + b"]" * depth
    if fine:
        assert read_json(data, L)
    else:
        with pytest.raises(Refused):
            read_json(data, L)
    assert read_json(b'{"a": "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["}', L)


CANARY = "canary-in-the-body"
ABSURD = [
    *(f'{{"n": {value}}}' for value in (2**31, -1, 0, 1.5, '"1"', "true", "[]", "1e0", "1" * 5000, "-" + "9" * 5000)),
    *(f'{{"max_tokens": {value}}}' for value in (10**9, -1, 1.5, '"1"', "{}", 2**63, 10**39)),
    *(f'{{"top_k": {value}}}' for value in (-1, '"1"', 10**9, 0.5)),
    *(f'{{"temperature": {value}}}' for value in ("NaN", "1e999", "-1e999", "Infinity", '"1"', -1, 11, "[1]", "true")),
    *(f'{{"top_p": {value}}}' for value in ("NaN", 2, 0, -1, '"x"')),
    *(f'{{"seed": {value}}}' for value in (2**63, 2**64, 1.5, '"1"', "1e400")),
    *(f'{{"stop": {value}}}' for value in ('[""]', '""', "1", "[1]", "[[]]", "{}")),
    *(f'{{"prompt": {value}}}' for value in ("1", "{}", "[]", "[[]]", "[1.5]", "[-1]", '["a", 1]', "true", "null")),
    '{"prompt": [2147483648]}',
    *(f'{{"logit_bias": {value}}}' for value in ('{"1": 1}', "[]", '"x"')),
    *('{"best_of": 3}', '{"suffix": "x"}', '{"frequency_penalty": 1}', '{"presence_penalty": 0.1}', '{"echo": 1}'),
    *('{"stream": "yes"}', '{"stream_options": {}}', '{"stream": true, "stream_options": {"x": 1}}'),
    *('{"model": 1}', '{"model": null}', '{"max_tokens": 0}', '{"logprobs": true}', '{"n": 1, "n": 2}'),
    *('{"prompt": "\\ud800"}', '{"\\udfff": 1}', '{"prompt": "a" "b"}', "{", "", "null", "[]", '"x"', "1", "\x00"),
    *("[" * 100_000, '{"a":' * 5000, '{"prompt": "\xff"}', "\ufeff{}", "'", "{'a': 1}", "// x", "{}}"),
    *('{"prompt": "a\nb"}', json.dumps({CANARY: 1}), json.dumps({"prompt": {CANARY: CANARY * 50_000}})),
    json.dumps({"n": CANARY * 50_000}),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ABSURD)))
def test_absurd_parameters_are_refused_in_a_few_words(server: Running, number: int) -> None:
    text = ABSURD[number]
    data = text.encode("latin-1") if "\xff" in text else text.encode("utf-8", "surrogatepass")
    for route in ("/v1/completions", "/api/models/book/generate"):
        own = b'{"model": "book", "prompt": "a", ' if "completions" in route else b'{"prompt": "a", '
        twice = data.startswith((b'{"prompt"', b'{"model"'))
        found = server.ask("POST", route, own + data[1:] if data.startswith(b'{"') and not twice else data)
        assert 400 <= found.status < 500, found
        assert len(found.body) <= L.error and CANARY.encode() not in found.body
        error = json.loads(found.body)["error"]
        assert set(error) == {"message", "type", "param", "code"} and b"Traceback" not in found.body


@pytest.mark.parametrize("kind, status", [("user", 400), ("failed", 500), ("busy", 503)])
@pytest.mark.parametrize("stream", [False, True])
def test_what_a_model_process_refuses_is_told_without_paths_addresses_and_input(
    server: Running, kind: str, status: int, stream: bool
) -> None:
    body = {"model": "book", "prompt": f"<{kind}> {CANARY} <script>", "stream": stream}
    found = server.ask("POST", "/v1/completions", body)
    assert found.status == status and ("retry-after" in found.headers) == (status == 503)
    for secret in (CANARY, "script", "book/", "0x7f", "10.0.0.1", TOKEN):
        assert secret.encode() not in found.body


def test_what_has_no_effect_is_ignored_and_what_would_have_one_refused(server: Running) -> None:
    fine = {"user": "me", "frequency_penalty": 0, "presence_penalty": 0.0, "logit_bias": {}, "suffix": "", "best_of": 1}
    assert server.ask("POST", COMPLETE, BASE[COMPLETE] | fine).status == 200
    fine = {"tools": [], "response_format": {"type": "text"}, "store": False, "metadata": {}, "service_tier": "auto"}
    assert server.ask("POST", CHAT, BASE[CHAT] | fine).status == 200
    for wrong in ({"tools": [{"type": "function"}]}, {"response_format": {"type": "json_object"}}, {"audio": {}}):
        assert server.ask("POST", CHAT, BASE[CHAT] | wrong).status == 400


def test_a_model_is_asked_only_for_what_it_does(server: Running) -> None:
    assert server.ask("POST", "/api/models/label/generate", {"prompt": "a"}).status == 400
    assert server.ask("POST", "/api/models/book/predict", {"texts": ["a"]}).status == 400
    assert server.ask("POST", "/api/models/notes/generate", {"prompt": "a"}).status == 404
    assert server.ask("POST", "/api/indexes/book/ask", {"question": "a"}).status == 404
    assert server.ask("POST", "/api/models/label/predict", {"upload": "x"}).status == 404
    assert server.ask("POST", "/api/models/label/predict", {}).status == 400
