"""Ways to look at a model on one input: ONE FILE PER VIEW, each a function of a model and an `Instance`."""
