"""The bodies of the protocol. What would change an answer and is not supported is refused unless it says what happens
anyway; what only concerns OpenAI's accounts is ignored; what nobody knows is refused, as OpenAI does."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, JsonValue, field_validator, model_validator

from seqloom.serve.answers import Body
from seqloom.serve.limits import Limits

L = Limits()
TokenId = Annotated[int, Field(ge=0, lt=2**31)]
Stop = Annotated[str, Field(min_length=1, max_length=L.stop_characters)]
Penalty = Annotated[float, Field(ge=-2, le=2)]


class StreamOptions(Body):
    include_usage: bool = False
    include_obfuscation: bool = False  # ignored


class Sampling(Body):
    """What completions and chats share."""

    unsupported: ClassVar[dict[str, tuple[Any, ...]]] = {  # and the values that change nothing
        "frequency_penalty": (0,), "presence_penalty": (0,), "logit_bias": ({},),
    }  # fmt: skip

    model: str = Field(max_length=500)
    n: int | None = Field(None, ge=1, le=L.n)
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    stop: Stop | Annotated[list[Stop], Field(max_length=L.stops)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=0, le=L.top_k)  # an addition of ours
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    logit_bias: dict[str, float] | None = None
    user: str | None = None  # ignored

    @model_validator(mode="after")
    def _supported(self) -> Sampling:
        for name, harmless in self.unsupported.items():
            value = getattr(self, name)
            if value is not None and value not in harmless:
                raise ValueError(f"{name} is not supported; leave it out")
        return self

    @model_validator(mode="after")
    def _options_of_streams(self) -> Sampling:
        if self.stream_options is not None and not self.stream:
            raise ValueError("stream_options is for streams; set stream to true")
        return self

    def how(self) -> dict[str, Any]:
        """As a model process takes it."""
        given: dict[str, Any] = {
            "n": self.n or 1,
            "top_k": self.top_k or 0,
            "seed": None if self.seed is None else self.seed % 2**63,
        }
        given |= {"temperature": 1.0 if self.temperature is None else self.temperature}
        given |= {"top_p": 1.0 if self.top_p is None else self.top_p}
        return given | {"stop": [self.stop] if isinstance(self.stop, str) else self.stop or []}

    @property
    def usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage


class Completion(Sampling):
    unsupported = Sampling.unsupported | {"suffix": ("",), "best_of": (1,)}

    prompt: (
        str
        | Annotated[list[str], Field(min_length=1, max_length=L.prompts)]
        | Annotated[list[TokenId], Field(min_length=1)]
        | Annotated[list[Annotated[list[TokenId], Field(min_length=1)]], Field(min_length=1, max_length=L.prompts)]
    )
    max_tokens: int | None = Field(None, ge=0, le=1_000_000)
    echo: bool | None = None
    logprobs: int | None = Field(None, ge=0, le=L.top_logprobs)
    suffix: str | None = None
    best_of: int | None = Field(None, ge=1, le=L.n)

    @model_validator(mode="after")
    def _something_to_do(self) -> Completion:
        if self.max_tokens == 0 and not self.echo:
            raise ValueError("max_tokens 0 needs echo: there would be nothing to answer")
        return self

    def prompts(self) -> list[dict[str, Any]]:
        given: Any = self.prompt
        many = given if isinstance(given, list) and not isinstance(given[0], int) else [given]
        return [{"prompt": each} if isinstance(each, str) else {"ids": each} for each in many]


class Part(Body):
    type: Literal["text"]
    text: str


class Message(Body):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | Annotated[list[Part], Field(min_length=1, max_length=L.messages)]
    name: str | None = None  # ignored
    refusal: None = None

    def plain(self) -> dict[str, str]:
        text = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)
        return {"role": "system" if self.role == "developer" else self.role, "content": text}


class Chat(Sampling):
    unsupported = Sampling.unsupported | {
        "tools": ([],), "functions": ([],), "tool_choice": ("none", "auto"), "function_call": ("none", "auto"),
        "response_format": ({"type": "text"},), "modalities": (["text"],), "audio": (), "prediction": (),
        "web_search_options": (),
    }  # fmt: skip

    messages: list[Message] = Field(min_length=1, max_length=L.messages)
    max_tokens: int | None = Field(None, ge=1, le=1_000_000)
    max_completion_tokens: int | None = Field(None, ge=1, le=1_000_000)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=L.top_logprobs)
    tools: list[JsonValue] | None = None
    functions: list[JsonValue] | None = None
    tool_choice: JsonValue = None
    function_call: JsonValue = None
    response_format: dict[str, JsonValue] | None = None
    modalities: list[str] | None = None
    audio: JsonValue = None
    prediction: JsonValue = None
    web_search_options: JsonValue = None
    parallel_tool_calls: bool | None = None  # these have no effect without tools, or concern accounts: ignored
    metadata: dict[str, JsonValue] | None = None
    store: bool | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None

    @model_validator(mode="after")
    def _alternatives(self) -> Chat:
        if self.top_logprobs and not self.logprobs:
            raise ValueError("top_logprobs needs logprobs true")
        return self

    @property
    def limit(self) -> int | None:
        return self.max_completion_tokens if self.max_completion_tokens is not None else self.max_tokens


class Embedding(Body):
    model: str = Field(max_length=500)
    input: str | Annotated[list[str], Field(min_length=1, max_length=L.rows)]
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: int | None = Field(None, ge=1, le=100_000)
    user: str | None = None  # ignored

    @field_validator("input")
    @classmethod
    def _not_empty(cls, value: str | list[str]) -> str | list[str]:
        if not all([value] if isinstance(value, str) else value):
            raise ValueError("an empty text has no embedding")
        return value
