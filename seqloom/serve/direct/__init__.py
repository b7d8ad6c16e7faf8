"""Routes that hand what they are asked straight to a model process, and the way in: page, health, session."""
