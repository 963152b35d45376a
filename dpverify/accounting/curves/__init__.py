"""Privacy curves δ(ε), one distribution of outputs a module."""
