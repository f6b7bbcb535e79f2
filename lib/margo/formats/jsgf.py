"""Grammars of commands in JSGF, the part of it that says which words may follow which.

``#JSGF V1.0;`` stands first, ``grammar NAME;`` may follow, then rules ``[public] <name> = expansion;``. An expansion is
words, ``<names>`` of rules, ``( )`` for groups, ``[ ]`` around what may be absent, ``|`` between alternatives, and
``*`` (any number) or ``+`` (at least one) behind a word, name or group. What public rules say can be recognised.
Weights, tags, imports and rules that refer to themselves are refused.
"""

import re
from dataclasses import dataclass

from margo.errors import MargoError, refuse
from margo.formats.reading import DEEPEST, MOST, read_text
from margo.knobs import brief
from margo.model.automaton import NOTHING

HEAD = "#JSGF"
TOKEN = re.compile(
    r"\s+|//[^\n]*|/\*.*?\*/|(?P<mark>[=;|()\[\]*+])|<(?P<name>[^<>\s]+)>"
    r'|"(?P<quoted>[^"\n]+)"|(?P<word>[^\s=;|()\[\]*+<>{}/"]+)',
    re.DOTALL,
)
REFUSED = {"/": "weights are not read", "{": "tags are not read"}


@dataclass(frozen=True)
class Token:
    """``kind``: mark, name, word, or end; ``place`` as messages tell it."""

    kind: str
    text: str
    place: str


def is_jsgf(path) -> bool:
    """Whether the file says that it is."""
    return read_text(path).lstrip().startswith(HEAD)


def read_jsgf(path, words) -> tuple:
    """The expression (:mod:`margo.model.automaton`) of the public rules, over ``words``; what is wrong with a file is
    told by line and column."""
    try:
        rules, public, used = _Parser(_tokens(read_text(path))).rules()
    except MargoError as error:
        raise MargoError(f"{path}: {error}") from None
    known = {*words}
    unknown = [(word, place) for word, place in used if word not in known]
    refuse([f"{place}: {word} is not a word of the model" for word, place in unknown], str(path), MOST)
    if not public:
        raise MargoError(f"{path}: no public rule, expected: public <name> = ...;")
    try:
        expressions = [_resolved(name, rules, ()) for name in public]
    except MargoError as error:
        raise MargoError(f"{path}: {error}") from None
    return ("any", *expressions)


def _tokens(text: str) -> list[Token]:
    """Of the text behind its head."""
    head = re.match(rf"\s*{HEAD}[^;\n]*;", text)
    if not head:
        raise MargoError(f"line 1, column 1: {brief(text[:40])}, expected: {HEAD} V1.0;")
    tokens, at = [], head.end()
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            found = text[at]
            why = REFUSED.get(found, "expected a word, a <name> or one of = ; | ( ) [ ] * +")
            raise MargoError(f"{_place(text, at)}: found {brief(found)}: {why}")
        if kind := match.lastgroup:
            tokens.append(Token("word" if kind == "quoted" else kind, match[kind], _place(text, at)))
        at = match.end()
    return [*tokens, Token("end", "the end of the file", _place(text, len(text)))]


def _place(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)}"


class _Parser:
    """Descends through tokens; an expression has ``("rule", name, place)`` where a rule is named."""

    def __init__(self, tokens: list[Token]):
        self.tokens, self.at, self.depth = tokens, 0, 0
        self.used: list[tuple[str, str]] = []  # words and their places

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def take(self, kind: str, *texts: str) -> Token:
        token = self.next
        if token.kind != kind or texts and token.text not in texts:
            wanted = " or ".join(map(repr, texts)) or f"a {kind}"
            raise MargoError(f"{token.place}: found {brief(token.text)}, expected {wanted}")
        self.at += 1
        return token

    def is_mark(self, *texts: str) -> bool:
        return self.next.kind == "mark" and self.next.text in texts

    def rules(self) -> tuple[dict[str, tuple], list[str], list[tuple[str, str]]]:
        """``(expression of each rule, names of public ones, words with their places)``."""
        rules, public = {}, []
        if self.next.kind == "word" and self.next.text == "grammar":
            self.at += 1
            self.take("word")
            self.take("mark", ";")
        while self.next.kind != "end":
            if self.next.text == "import":
                raise MargoError(f"{self.next.place}: imports are not read")
            shown = self.next.kind == "word" and bool(self.take("word", "public"))
            name = self.take("name")
            if name.text in rules:
                raise MargoError(f"{name.place}: <{name.text}> is there already")
            self.take("mark", "=")
            rules[name.text] = self.alternatives()
            self.take("mark", ";")
            public += [name.text] * shown
        return rules, public, self.used

    def alternatives(self) -> tuple:
        parts = [self.sequence()]
        while self.is_mark("|"):
            self.at += 1
            parts.append(self.sequence())
        return ("any", *parts)

    def sequence(self) -> tuple:
        parts = [self.item()]
        while self.next.kind in ("word", "name") or self.is_mark("(", "["):
            parts.append(self.item())
        return ("all", *parts)

    def item(self) -> tuple:
        token = self.next
        if token.kind == "word":
            self.used.append((token.text, token.place))
        if self.is_mark("(", "["):
            found = self.group()
        elif token.kind in ("word", "name"):
            self.at += 1
            found = ("word", token.text) if token.kind == "word" else ("rule", token.text, token.place)
        else:
            raise MargoError(f"{token.place}: found {brief(token.text)}, expected a word, a <name>, ( or [")
        while self.is_mark("*", "+"):
            found = ("some", found)
            found = ("any", NOTHING, found) if self.take("mark").text == "*" else found
        return found

    def group(self) -> tuple:
        opening = self.take("mark")
        self.depth += 1
        if self.depth > DEEPEST:
            raise MargoError(f"{opening.place}: groups within one another, more than {DEEPEST} deep")
        found = self.alternatives()
        self.take("mark", ")" if opening.text == "(" else "]")
        self.depth -= 1
        return found if opening.text == "(" else ("any", NOTHING, found)


def _resolved(name: str, rules: dict[str, tuple], above: tuple[str, ...]) -> tuple:
    """The expression of a rule with those that it names put in."""

    def put(expression):
        kind, *parts = expression
        if kind == "word":
            return expression
        if kind != "rule":
            return (kind, *map(put, parts))
        called, place = parts
        if called == "NULL":
            return NOTHING
        if called not in rules:
            raise MargoError(f"{place}: no rule <{called}>")
        if called in (*above, name):
            raise MargoError(f"{place}: <{called}> refers to itself, expected * or +")
        return _resolved(called, rules, (*above, name))

    return put(rules[name])
