"""What a row was made with, in a word: a digest of the code that matters for it.

It is of some modules, of what they import of goldfc and goldfc_bench, and so on. Comments, docstrings and layout do not
count. Neither do other packages: constraints.txt has their versions.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

OURS = ("goldfc", "goldfc_bench")


@cache
def digest_of(*modules: str) -> str:
    """Of modules by their names, or of files, with whatever of ours they import."""
    digest = hashlib.blake2b(digest_size=8)
    for module in sorted(with_imports(modules)):
        digest.update(f"{'' if is_file(module) else module} {in_words(tree_of(module))}\n".encode())
    return digest.hexdigest()


def with_imports(modules: tuple[str, ...]) -> set[str]:
    """The modules, what they import of ours, what these import, and so on."""
    found, waiting = set[str](), list(modules)
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += imported_by(module)
    return found


@cache
def imported_by(module: str) -> tuple[str, ...]:
    """The modules of ours that one imports somewhere, be it inside a function; for annotations alone does not count."""
    tree = tree_of(module)
    used = set(names_in(tree))
    return tuple(home for node in ast.walk(tree) for name, home in imports_of(node) if name in used and is_ours(home))


def imports_of(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that an import makes known, and the modules behind them; none behind anything else."""
    if isinstance(node, ast.Import):
        yield from ((alias.asname or alias.name.partition(".")[0], alias.name) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from ((alias.asname or alias.name, home_of(node.module or "", alias.name)) for alias in node.names)


def names_in(node: ast.AST) -> Iterator[str]:
    """All names that code uses, but for annotations."""
    if isinstance(node, ast.Name):
        yield node.id
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns"):
            parts = value if isinstance(value, list) else [value]
            yield from (name for part in parts if isinstance(part, ast.AST) for name in names_in(part))


def home_of(module: str, name: str) -> str:
    """Where a name is from: a module of a package, or what the package has it from, or the module that was named."""
    if not is_ours(module):
        return module
    if find_spec(module).submodule_search_locations is None:  # type: ignore[union-attr] # what we import is there
        return module
    if find_spec(f"{module}.{name}") is not None:
        return f"{module}.{name}"
    handed_on = (node for node in ast.walk(tree_of(module)) if isinstance(node, ast.ImportFrom))
    homes = [node.module for node in handed_on if node.module and name in {alias.name for alias in node.names}]
    return home_of(homes[0], name) if homes else module


def is_ours(module: str) -> bool:
    """Whether its code counts."""
    return module.partition(".")[0] in OURS


def is_file(module: str) -> bool:
    """Whether it is a file somewhere, and not a module of a package; where it lies does not count."""
    return module.endswith(".py")


@cache
def tree_of(module: str) -> ast.Module:
    """The code of a module."""
    path = module if is_file(module) else find_spec(module).origin  # type: ignore[union-attr] # as above
    return ast.parse(Path(str(path)).read_bytes())


def in_words(node: object) -> str:
    """Code without docstrings, in the same words whatever the version of Python."""
    if isinstance(node, ast.AST):
        fields = (f"{name}={in_words(value)}" for name, value in ast.iter_fields(node) if value not in (None, []))
        return f"{type(node).__name__}({', '.join(fields)})"
    if isinstance(node, list):
        return f"[{', '.join(in_words(one) for one in node if not is_text(one))}]"
    return repr(node)


def is_text(node: object) -> bool:
    """A docstring, or another text that nothing is done with."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
