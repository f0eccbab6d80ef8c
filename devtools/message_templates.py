"""Texts of a source file that a person may see, as templates.

An f-string becomes a template with holes: `f"Bone '{bone.name}' is {state}"` is read as "Bone '{name}' is
{*state}". The value of `{name}` is a name and stays; the value of `{*state}` is translated. Local variables
with a part of a sentence are substituted. Every branch of a choice ("frame", "frames") gives a template.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MOST = 16
"""Maximum of templates of a text; further choices become holes."""
DECLARE = {"STORED", "UNANIMATED", "SETTING", "KEYED", "LAST", "ONCE", "HIDDEN", "declare"}
"""Names of `registration.Declare` objects, whose methods take a label and a tooltip."""
LABELS = {"name", "description", "text", "heading", "bl_label", "bl_description", "because", "words"}
"""Keywords and class attributes whose values are texts even if they are single words."""
WORD_ENUMS = {"Part", "Kind", "Group"}
"""Enumerations whose values are words of a message."""
WORD_TABLES = {"SIMULATIONS", "WORDS", "FIXES", "BOUNDS", "CHOICES", "COLOURS", "PRESET_WORDS"}
"""Tables whose values are words of messages."""
RAW = re.compile(
    r"(names?|bones?|tips?|constraints?|rows?|path|root|joint|hinge|who|first|one|other|action|axis|order|"
    r"library|stream|target|figure_bone|strerror)$"
)
"""Names of holes whose values are not translated."""


@dataclass
class Hole:
    """Hole in a template.

    Attributes:
        name: in the template.
        words: whether its value is translated.
        source: the expression.
    """

    name: str
    words: bool
    source: str = ""


Template = tuple["str | Hole", ...]


@dataclass
class _Scope:
    """Assignments of a function.

    Attributes:
        values: {name: assigned expressions}.
        changed: names with augmented assignments.
    """

    values: dict[str, list[ast.expr]] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)


class SourceTexts:
    """A source file."""

    def __init__(self, tree: ast.Module) -> None:
        self.nodes = list(ast.walk(tree))
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self.constants = _scope(tree.body)
        self.functions = {
            node: _scope(node.body)
            for node in self.nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }

    def texts(self) -> Iterator[tuple[int, str]]:
        """Yield (line, text) of all texts that a person may see."""
        for node in self.nodes:
            if not is_text(node) or is_text(self.parents[node]) or self._is_no_text(node):
                continue
            assert isinstance(node, ast.expr)
            is_label = self._is_label(node)
            is_verb = self._is_verb(node)
            for template in self._templates(node):
                if is_verb:  # between two things
                    template = (Hole("trail", True, "1"), " ", *template, " ", Hole("mover", True, "2"))
                for text in _written(template, is_label):
                    yield node.lineno, text

    def _templates(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> list[Template]:
        """Return a template per value of an expression."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return [(node.value,)]
        if isinstance(node, ast.IfExp):
            return [*self._templates(node.body, seen), *self._templates(node.orelse, seen)]
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and any(map(is_text, node.values)):
            return [each for value in node.values for each in self._templates(value, seen)]
        if isinstance(node, ast.BinOp) and is_text(node):
            return self._joined([node.left, node.right], seen)
        if isinstance(node, ast.JoinedStr):
            return self._joined(node.values, seen)
        if isinstance(node, ast.FormattedValue):
            if node.format_spec is not None or node.conversion == ord("r"):
                return [(Hole(_hole_name(node.value), False, ast.unparse(node.value)),)]
            return self._templates(node.value, seen)
        if isinstance(node, ast.Name) and node.id not in seen:
            values = self._reaching(node)
            if values and all(map(is_text, values)):
                return [each for value in values for each in self._templates(value, seen | {node.id})]
        if isinstance(node, ast.Subscript) and (words := self._few_words(node.value)):
            return [(word,) for word in words]
        return [(Hole(_hole_name(node), _is_words(node), ast.unparse(node)),)]

    def _joined(self, nodes: list[ast.expr], seen: frozenset[str]) -> list[Template]:
        pieces = [self._templates(node, seen) for node in nodes]
        for index, node in enumerate(nodes):
            if math.prod(map(len, pieces)) > MOST and len(pieces[index]) > 1:
                pieces[index] = [(Hole(_hole_name(node), True, ast.unparse(node)),)]
        return [tuple(itertools.chain(*each)) for each in itertools.product(*pieces)]

    def _few_words(self, node: ast.expr) -> list[str]:
        """Values of a small table of words in lower case."""
        tables = self.constants.values.get(node.id, []) if isinstance(node, ast.Name) else []
        if len(tables) != 1 or not isinstance(tables[0], ast.Dict) or len(tables[0].values) > 4:
            return []
        words = [value.value for value in tables[0].values if isinstance(value, ast.Constant)]
        return [word for word in words if isinstance(word, str) and word.islower()]

    def _reaching(self, use: ast.Name) -> list[ast.expr]:
        """Expressions that may reach the use of a name; empty if the function does not assign it."""
        function = self._function_of(use)
        if function is None:
            constants = self.constants.values.get(use.id, [])
            return [] if use.id in self.constants.changed else constants
        if use.id not in self.functions[function].values:
            return [] if use.id in self.constants.changed else self.constants.values.get(use.id, [])
        if use.id in self.functions[function].changed:
            return []
        values: list[ast.expr] = []
        node: ast.AST = use
        while node is not function:
            parent = self.parents[node]
            for block in ("body", "orelse", "finalbody"):
                row = getattr(parent, block, None)
                if isinstance(row, list) and node in row:
                    for before in reversed(row[: row.index(node)]):  # type: ignore[arg-type]
                        if isinstance(before, ast.Assign) and _gives(before, use.id):
                            return [*values, before.value]
                        inner, is_all = _assigned(before, use.id)
                        values += inner
                        if is_all:
                            return values
            node = parent
        return values

    def _function_of(self, node: ast.AST) -> ast.AST | None:
        while node in self.parents:
            node = self.parents[node]
            if node in self.functions:
                return node
        return None

    def _is_no_text(self, node: ast.AST) -> bool:
        """Whether a string is a docstring, key, comparison, format or substituted part of a text."""
        parent = self.parents[node]
        if isinstance(parent, ast.Expr | ast.Compare | ast.Subscript | ast.FormattedValue):
            return True
        if isinstance(parent, ast.Attribute):
            return parent.attr not in ("format", "strip", "rstrip", "lstrip")
        if isinstance(parent, ast.Dict) and node in parent.keys:
            return True
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute):
            return parent.func.attr in ("startswith", "endswith", "removeprefix", "removesuffix", "partition")
        if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
            return self._is_put_in(parent.targets[0].id, node)
        return False

    def _is_put_in(self, name: str, node: ast.AST) -> bool:
        """Whether a local name is only used as a part of texts."""
        function = self._function_of(node)
        if function is None or name in self.functions[function].changed:
            return False
        uses = [
            each
            for each in ast.walk(function)
            if isinstance(each, ast.Name)
            and each.id == name
            and isinstance(each.ctx, ast.Load)
            and any(value is node for value in self._reaching(each))
        ]
        return bool(uses) and all(self._is_in_text(each) for each in uses)

    def _is_in_text(self, use: ast.Name) -> bool:
        parent = self.parents[use]
        if not all(map(is_text, self._reaching(use))):
            return False
        return isinstance(parent, ast.FormattedValue) or (isinstance(parent, ast.BinOp) and is_text(parent))

    def _is_verb(self, node: ast.AST) -> bool:
        """Whether a text is a verb, whose subject and object are holes before and after it."""
        parent = self.parents[node]
        if isinstance(parent, ast.Assign):
            return any(isinstance(target, ast.Name) and target.id == "verb" for target in parent.targets)
        return isinstance(parent, ast.Call) and ast.unparse(parent.func) == "_Source"

    def _is_label(self, node: ast.AST) -> bool:
        """Whether a string is a text by its place, even if it is a single word."""
        parent = self.parents[node]
        while isinstance(parent, ast.IfExp):
            parent = self.parents[parent]
        if isinstance(parent, ast.Call):  # STORED.number("Height", "World height of the ground")
            owner = parent.func.value if isinstance(parent.func, ast.Attribute) else None
            if not isinstance(owner, ast.Name) or owner.id not in DECLARE:
                return False
            return node in parent.args[:2] and parent.func.attr != "of"  # which takes the name of a field
        if isinstance(parent, ast.keyword):
            return parent.arg in LABELS
        if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
            above = self.parents[parent]
            named = parent.targets[0].id
            return named in LABELS or (isinstance(above, ast.ClassDef) and above.name in WORD_ENUMS)
        if isinstance(parent, ast.Tuple):
            first = parent.elts[0]
            is_item = isinstance(first, ast.Constant) and str(first.value).isupper()
            return (is_item and node is not first) or self._table(parent) in WORD_TABLES
        if isinstance(parent, ast.Dict):
            return self._table(parent) in WORD_TABLES
        return False

    def _table(self, node: ast.AST) -> str:
        while node in self.parents and not isinstance(node, ast.stmt):
            node = self.parents[node]
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        return target.id if isinstance(target, ast.Name) else ""


def _gives(statement: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)


def _assigned(statement: ast.stmt, name: str) -> tuple[list[ast.expr], bool]:
    """Expressions that a compound statement assigns to a name, and whether it does so in any case."""
    if isinstance(statement, ast.Assign):
        return ([statement.value], True) if _gives(statement, name) else ([], False)
    blocks = [getattr(statement, block, None) or [] for block in ("body", "orelse")]
    if not isinstance(statement, ast.If | ast.For | ast.With | ast.Try | ast.While):
        return [], False
    values, sure = [], []
    for block in blocks:
        if block and isinstance(block[-1], ast.Return | ast.Raise | ast.Continue | ast.Break):
            sure.append(True)  # what follows is not reached from here
            continue
        here: list[ast.expr] = []
        is_sure = False
        for each in reversed(block):
            inner, is_sure = _assigned(each, name)
            here += inner
            if is_sure:
                break
        values += here
        sure.append(is_sure)
    return values, isinstance(statement, ast.If) and all(sure)


def _scope(body: list[ast.stmt]) -> _Scope:
    scope = _Scope()
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop(0)
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            scope.values.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            scope.changed.add(node.target.id)
        pending += ast.iter_child_nodes(node)
    return scope


def is_text(node: ast.AST) -> bool:
    """Whether an expression has the form of a text."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.JoinedStr):
        return True
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add) and (is_text(node.left) or is_text(node.right))
    if isinstance(node, ast.IfExp):
        return is_text(node.body) or is_text(node.orelse)
    return False


def _hole_name(node: ast.AST) -> str:
    """Name of a hole: the last name in the expression."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join":
        return _hole_name(node.args[0]) if node.args else "list"
    if isinstance(node, ast.GeneratorExp | ast.ListComp):
        return _hole_name(node.generators[0].iter)
    if isinstance(node, ast.FormattedValue | ast.Starred):
        return _hole_name(node.value)
    if isinstance(node, ast.Call):
        name = _hole_name(node.args[0]) if node.args else _hole_name(node.func)
        return "count" if isinstance(node.func, ast.Name) and node.func.id == "len" else name
    if isinstance(node, ast.Attribute):
        if node.attr in ("name", "words", "bone") and not isinstance(node.value, ast.Name):
            return node.attr
        return _hole_name(node.value) if node.attr == "name" else node.attr.strip("_")
    if isinstance(node, ast.Subscript):
        return _hole_name(node.value)
    if isinstance(node, ast.Name):
        return node.id.strip("_")
    return "value"


def _is_words(node: ast.AST) -> bool:
    """Whether the value of an expression may be words of a message, not a name or a number."""
    if isinstance(node, ast.Attribute):
        return not RAW.search(node.attr)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "join":
            return _is_words(node.args[0])
        return not (isinstance(node.func, ast.Name) and node.func.id in ("len", "repr", "_shown"))
    if isinstance(node, ast.GeneratorExp | ast.ListComp):
        return _is_words(node.elt)
    if isinstance(node, ast.Name):
        return not RAW.search(node.id)
    return isinstance(node, ast.Subscript) and _is_words(node.value)


def _written(template: Template, is_label: bool) -> Iterator[str]:
    """Write a template as a key of catalogues, if it has words."""
    names: dict[str, str] = {}
    written = ""
    for index, part in enumerate(template):
        if isinstance(part, str):
            written += part.replace("{", "{{").replace("}", "}}")
            continue
        name = next((known for known, source in names.items() if source == part.source), part.name)
        while names.get(name, part.source) != part.source:
            name = f"{part.name}{len(names) + 1}"
        names[name] = part.source
        after = template[index + 1] if index + 1 < len(template) else ""
        is_quoted = written.endswith(("'", '"')) and isinstance(after, str) and after[:1] in ("'", '"')
        written += f"{{{'*' if part.words and not is_quoted else ''}{name}}}"
    text = written.strip().strip(";,").lstrip(".:").strip()
    literal = re.sub(r"(?<!\{)\{\*?\w+\}", "", text)
    has_word = re.search(r"[A-Za-z]{2}" if "{" in text or not is_label else "[A-Za-z]", literal)
    if has_word and (is_label or " " in text):
        yield text
