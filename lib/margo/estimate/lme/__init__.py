"""Large-margin estimation [LJ07]: ``Problem`` in, ``solve``, ``Solution`` out. docs/dual.md derives the method."""

_HOMES = {"Problem": "problem", "Solution": "problem", "margins": "problem", "solve": "solver",
          "projected_means": "model", "augmented_means": "model"}  # fmt: skip
__all__ = list(_HOMES)


def __getattr__(name):
    """Import the module that holds ``name`` at first use, so that naming the package costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
