"""Tiny models of transformers with random weights and a tokenizer, saved as the library saves them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

TEXT = "the cat sees a small dog on the mat and the dog sees the cat; a brass lever moved in the old machine, slowly. "
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
MARKS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
CLASSES = {
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "mask_token": "[MASK]",
}
SMALL = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
LLAMA = {**SMALL, "max_position_embeddings": 128, "rms_norm_eps": 1e-5}
SCALED = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
SCALED |= {"original_max_position_embeddings": 32, "rope_theta": 500.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "rope_theta": 500.0}
LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}
DYNAMIC = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 500.0}
GPT2 = {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 128}
BERT = {**SMALL, "max_position_embeddings": 64, "type_vocab_size": 2}
SIDES = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4}
SIDES |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "max_position_embeddings": 128}
T5 = {"d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 2, "num_heads": 4}

# name: class in transformers (without For...), options
DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2", GPT2),
    "gpt2 exact gelu": ("GPT2", {**GPT2, "activation_function": "gelu", "tie_word_embeddings": False}),
    "llama grouped": ("Llama", {**LLAMA, "num_key_value_heads": 2}),
    "llama tied, other head size": ("Llama", {**LLAMA, "head_dim": 6, "tie_word_embeddings": True}),
    "llama scaled": ("Llama", {**LLAMA, "num_key_value_heads": 2, "rope_parameters": SCALED}),
    "llama linear": ("Llama", {**LLAMA, "rope_parameters": LINEAR}),
    "llama dynamic": ("Llama", {**LLAMA, "rope_parameters": DYNAMIC}),
    "llama yarn": ("Llama", {**LLAMA, "rope_parameters": YARN}),
    "mistral": ("Mistral", {**LLAMA, "num_key_value_heads": 2, "sliding_window": 7}),
    "qwen2": ("Qwen2", {**LLAMA, "num_key_value_heads": 2}),
    "qwen3": ("Qwen3", {**LLAMA, "num_key_value_heads": 2, "head_dim": 8}),
}
ENCODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", BERT),
    "roberta": ("Roberta", {**BERT, "pad_token_id": 1, "type_vocab_size": 1}),
    "xlm-roberta-xl": (
        "XLMRobertaXL",
        {**BERT, "max_position_embeddings": 66, "pad_token_id": 1, "type_vocab_size": 1},
    ),
    "distilbert": ("DistilBert", {"dim": 16, "n_layers": 2, "n_heads": 4, "hidden_dim": 24}),
}
WRAPPED: dict[str, tuple[str, dict[str, Any]]] = {
    "llama with biases": ("Llama", {**LLAMA, "attention_bias": True}),
    "gpt-neox": ("GPTNeoX", {**SMALL, "max_position_embeddings": 128}),
    "gemma": ("Gemma", {**LLAMA, "num_key_value_heads": 2, "head_dim": 8}),
    "opt": ("OPT", {**SMALL, "ffn_dim": 24, "max_position_embeddings": 128, "word_embed_proj_dim": 16}),
    "bloom": ("Bloom", {"hidden_size": 16, "n_layer": 2, "n_head": 4}),
}
WRAPPED_ENCODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "electra": ("Electra", {**BERT, "embedding_size": 16}),
    "mpnet": ("MPNet", {**SMALL, "max_position_embeddings": 64, "pad_token_id": 1}),
}
TWO_SIDED: dict[str, tuple[str, dict[str, Any]]] = {
    "t5": ("T5", T5),
    "t5 gated": ("T5", {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "bart": ("Bart", {**SIDES, "scale_embedding": True}),
    "marian": ("Marian", {**SIDES, "scale_embedding": True}),
}

WIDTH, FEED, HEADS, GROUPS, DEPTH = 16, 32, 4, 2, 2  # of the GGUF file


def byte_pairs(folder: Path) -> int:
    """A byte-level tokenizer with three special tokens; returns its size."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    marks = ["<pad>", "<s>", "</s>"]
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=marks, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator([TEXT], trainer)
    (folder / "tokenizer.json").write_text(made.to_str(), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(MARKS))
    return made.get_vocab_size()


def word_pieces(folder: Path) -> int:
    """The files of an older BERT, which has a list of pieces only."""
    pieces = [*WORDS, *sorted(set(TEXT.replace(";", " ;").replace(",", " ,").replace(".", " .").split()))]
    pieces += [*"abcdefghijklmnopqrstuvwxyz", *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")]
    pieces = list(dict.fromkeys(pieces))
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps(CLASSES))
    return len(pieces)


def save(folder: Path, name: str, options: dict[str, Any], head: str = "ForCausalLM", pieces: bool = False) -> Any:
    """Make the model of a class, save it with its tokenizer, and return it."""
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    size = word_pieces(folder) if pieces else byte_pairs(folder)
    ids = {} if pieces else {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    if head == "ForConditionalGeneration":
        ids |= {"decoder_start_token_id": 0}
    config = getattr(transformers, f"{name}Config")(**{"vocab_size": size, **ids, **options})
    head = {"Marian": "MTModel", "GPT2": "LMHeadModel"}.get(name, head)
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}{head}")(config)
    generator = torch.Generator().manual_seed(1)
    for weight in model.parameters():
        if weight.requires_grad:
            nn.init.normal_(weight, std=0.3, generator=generator)
    model.save_pretrained(folder)
    return model.eval()


def write_gguf(path: Path) -> None:
    """A Llama of 16-bit numbers and its tokenizer, as llama.cpp's tools write it."""
    import gguf

    folder = path.parent
    byte_pairs(folder)
    own = json.loads((folder / "tokenizer.json").read_text())["model"]
    pieces = sorted(own["vocab"], key=own["vocab"].__getitem__)
    out = gguf.GGUFWriter(path, "llama")
    out.add_name("tiny")
    out.add_block_count(DEPTH)
    out.add_context_length(2048)
    out.add_embedding_length(WIDTH)
    out.add_feed_forward_length(FEED)
    out.add_head_count(HEADS)
    out.add_head_count_kv(GROUPS)
    out.add_rope_dimension_count(WIDTH // HEADS)
    out.add_rope_freq_base(500.0)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_vocab_size(len(pieces))
    out.add_tokenizer_model("gpt2")
    out.add_token_list(pieces)
    out.add_token_types([3 if piece in ("<pad>", "<s>", "</s>") else 1 for piece in pieces])
    out.add_token_merges([" ".join(pair) for pair in own["merges"]])
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    out.add_pad_token_id(0)
    out.add_chat_template("{% for m in messages %}<s>{{ m.role + ' ' + m.content }}</s>{% endfor %}<s>assistant ")
    chance = np.random.default_rng(0)
    shapes = {"token_embd.weight": (len(pieces), WIDTH), "output_norm.weight": (WIDTH,)}
    for n in range(DEPTH):
        size = WIDTH // HEADS
        rows = {"attn_q": WIDTH, "attn_k": GROUPS * size, "attn_v": GROUPS * size, "attn_output": WIDTH}
        shapes |= {f"blk.{n}.{part}.weight": (count, WIDTH) for part, count in rows.items()}
        shapes |= {f"blk.{n}.{part}.weight": (FEED, WIDTH) for part in ("ffn_gate", "ffn_up")}
        shapes |= {f"blk.{n}.ffn_down.weight": (WIDTH, FEED)}
        shapes |= {f"blk.{n}.{part}.weight": (WIDTH,) for part in ("attn_norm", "ffn_norm")}
    for name, shape in shapes.items():
        kind = np.float16 if len(shape) > 1 else np.float32
        out.add_tensor(name, chance.normal(0, 0.3, shape).astype(kind))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()


def stock(cache: Path) -> None:
    """Tiny models in the place of the packages that `seqloom weights` installs."""
    from seqloom.weights.packages import PACKAGES

    save(cache / "weights" / "minilm" / PACKAGES["minilm"].place, *ENCODERS["bert"], head="Model", pieces=True)
    path = cache / "weights" / "smollm2" / PACKAGES["smollm2"].place
    path.parent.mkdir(parents=True)
    write_gguf(path)
