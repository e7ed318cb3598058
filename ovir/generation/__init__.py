"""Text generation: a prompt and the three models of a folder, a tokenizer, a decoder and a detokenizer, give a text."""
