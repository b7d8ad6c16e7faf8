"""Weights that other tools wrote: read without running any code, recognised, and renamed to the names used here.

A folder of Hugging Face transformers (config.json, tokenizer.json, *.safetensors) or a GGUF file is data from
strangers. Only JSON, safetensors and GGUF are opened, every name and size is checked before it is used, and anything
else is refused in one line.
"""
