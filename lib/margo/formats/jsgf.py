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
DEPTH, LARGEST = 100, 200_000  # of an expression: levels, and parts
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
    refuse([f"{place}: {word[:60]} is not a word of the model" for word, place in unknown], str(path), MOST)
    if not public:
        raise MargoError(f"{path}: no public rule, expected: public <name> = ...;")
    try:
        expressions = [*map(_Resolver(rules).rule, public)]
    except MargoError as error:
        raise MargoError(f"{path}: {error}") from None
    return ("any", *expressions)


def _tokens(text: str) -> list[Token]:
    """Of the text behind its head."""
    head = re.match(rf"\s*{HEAD}[^;\n]*;", text)
    if not head:
        raise MargoError(f"line 1, column 1: {brief(text[:40])}, expected: {HEAD} V1.0;")
    tokens, at, line, begin = [], head.end(), text.count("\n", 0, head.end()) + 1, text.rfind("\n", 0, head.end())
    while at < len(text):
        match, place = TOKEN.match(text, at), f"line {line}, column {at - begin}"
        if not match:
            why = REFUSED.get(text[at], "expected a word, a <name> or one of = ; | ( ) [ ] * +")
            raise MargoError(f"{place}: found {brief(text[at])}: {why}")
        if kind := match.lastgroup:
            tokens.append(Token("word" if kind == "quoted" else kind, match[kind], place))
        elif "\n" in match[0]:
            line, begin = line + match[0].count("\n"), text.rfind("\n", 0, match.end())
        at = match.end()
    return [*tokens, Token("end", "the end of the file", f"line {line}, column {at - begin}")]


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
                raise MargoError(f"{name.place}: <{name.text[:60]}> is there already")
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


class _Resolver:
    """Puts rules in the place of their names."""

    def __init__(self, rules: dict[str, tuple]):
        self.rules, self.size = rules, 0

    def rule(self, name: str, above: tuple[str, ...] = (), depth: int = 0) -> tuple:
        """The expression of a rule that those ``above`` it have named."""

        def put(expression, depth):
            kind, *parts = expression
            self.size += 1
            if depth > DEPTH or self.size > LARGEST:
                raise MargoError(f"<{name[:60]}>: rules within one another, more than {DEPTH} deep or {LARGEST} in all")
            if kind == "word":
                return expression
            if kind in ("any", "all") and len(parts) == 1:
                return put(parts[0], depth)
            if kind != "rule":
                return (kind, *(put(part, depth + 1) for part in parts))
            called, place = parts
            if called == "NULL":
                return NOTHING
            if called not in self.rules:
                raise MargoError(f"{place}: no rule <{called[:60]}>")
            if called in (*above, name):
                raise MargoError(f"{place}: <{called[:60]}> refers to itself, expected * or +")
            return self.rule(called, (*above, name), depth + 1)

        return put(self.rules[name], depth)
