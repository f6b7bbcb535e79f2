"""A page that listens: the recogniser in a browser."""
