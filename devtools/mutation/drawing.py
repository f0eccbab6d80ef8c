"""Mutants of a part of the code, drawn by a seed: evenly over the lines that have any, one of each line.

Runs where cosmic-ray is installed.
"""

from __future__ import annotations

import ast
import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

import parso  # noqa: F401  (before cosmic-ray, whose own order of imports goes round in a circle)
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_item import MutationSpec, WorkItem

# Of each kind of operator the nearest others: what any test of the line would notice says nothing.
BINARY = (
    "Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul", "Mod_Mul", "Pow_Mul",
    "BitOr_BitAnd", "BitAnd_BitOr", "BitXor_BitAnd", "LShift_RShift", "RShift_LShift",
)  # fmt: skip
COMPARISON = (
    "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt",
    "Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is",
)  # fmt: skip
UNARY = ("Delete_Not", "Delete_USub", "Delete_Invert")
KINDS = {
    "binary operator": [f"core/ReplaceBinaryOperator_{name}" for name in BINARY],
    "comparison": [f"core/ReplaceComparisonOperator_{name}" for name in COMPARISON],
    "unary operator": [f"core/ReplaceUnaryOperator_{name}" for name in UNARY],
    "condition": ["core/AddNot", "core/ReplaceAndWithOr", "core/ReplaceOrWithAnd"],
    "constant": ["core/NumberReplacer", "core/ReplaceTrueWithFalse", "core/ReplaceFalseWithTrue"],
    "flow": [
        "core/ReplaceBreakWithContinue",
        "core/ReplaceContinueWithBreak",
        "core/ZeroIterationForLoop",
        "core/ExceptionReplacer",
    ],
}
GUARDS = {"strict", "frozen", "slots", "init"}
"""Keywords of `zip`, `dataclass` and `field` that forbid what the code does not do."""

Place = tuple[int, int]


def draw(root: Path, files: list[str], seed: int, count: int) -> list[WorkItem]:
    """The first `count` mutants of the draw; a larger count begins with the same ones.

    Args:
        root: of the project.
        files: from there, of the part.
        seed: of the draw.
        count: how many.
    """
    by_line = {(file, line): mutants for file in files for line, mutants in candidates(root, file).items()}
    lines = sorted(by_line)
    random.Random(seed).shuffle(lines)
    drawn = []
    for file, line in lines[:count]:
        kinds = by_line[file, line]
        choice = random.Random(f"{seed} {file} {line}")
        drawn.append(choice.choice(kinds[choice.choice(sorted(kinds))]))
    return drawn


def candidates(root: Path, file: str) -> dict[int, dict[str, list[WorkItem]]]:
    """{line: {kind: mutants}} of a file."""
    source = (root / file).read_text(encoding="utf-8")
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    left_out = list(_pointless(source))
    nodes = list(ast_nodes(get_ast(source)))
    found: dict[int, dict[str, list[WorkItem]]] = {}
    for kind, names in KINDS.items():
        for name in names:
            operator = get_operator(name)()
            places = ((node, *ends) for node in nodes for ends in operator.mutation_positions(node))
            for occurrence, (node, start, end) in enumerate(places):
                if any(first <= start < last for first, last in left_out):
                    continue
                mutation = MutationSpec(
                    module_path=file,
                    operator_name=name,
                    occurrence=occurrence,
                    start_pos=start,
                    end_pos=end,
                    definition_name=ASTQuery(node).get_definition_name(),
                )
                job = f"{file}:{start[0]}:{start[1]} {name} {occurrence} {digest}"
                found.setdefault(start[0], {}).setdefault(kind, []).append(WorkItem.single(job, mutation))
    return found


def _pointless(source: str) -> Iterator[tuple[Place, Place]]:
    """Where no test could notice a change, or none has to: types, asserts, guards of zip and dataclass."""
    lines = source.splitlines()

    def ends(node: ast.AST) -> tuple[Place, Place]:
        def place(line: int, column: int) -> Place:  # ast counts bytes, parso characters
            return line, len(lines[line - 1].encode()[:column].decode())

        return (
            place(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            place(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg) and node.annotation is not None:
            yield ends(node.annotation)
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            yield ends(node.returns)
        elif isinstance(node, ast.AnnAssign):
            yield ends(node.annotation)
            if isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias":
                yield ends(node)
        elif (
            isinstance(node, ast.Assert)
            or (isinstance(node, ast.keyword) and node.arg in GUARDS)
            or (isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"))
        ):
            yield ends(node)


def mutated(source: str, mutation: MutationSpec) -> str:
    """The source with the change.

    Raises:
        ValueError: the source has no such place.
    """
    operator = get_operator(mutation.operator_name)()
    changed: str | None = mutate_code(source, operator, mutation.occurrence)
    if changed is None:
        raise ValueError(f"{mutation.module_path}: {mutation.operator_name} has no such place")
    return changed
