"""The process that holds a model: it reads requests from a socket, decodes all of them together, and answers there."""
