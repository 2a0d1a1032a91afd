"""Random data of every nasty kind, fitted in every way, and what must hold whatever they are: ``python -m fuzz``."""
