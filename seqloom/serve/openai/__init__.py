"""The protocol of OpenAI's API, so that its clients work unchanged: models, completions, chat, embeddings."""
