"""margo: large-margin speech recognition, as recipes."""

__version__ = "0.1.0"
