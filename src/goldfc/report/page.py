"""Pages as files: what they share, and how one is sealed against everything but its own style and script."""

import base64
import hashlib
from functools import cache
from importlib.metadata import version
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader

from goldfc.report.drawings import COLOURS, colour, ink, paint


@cache
def templates(*packages: str) -> Environment:
    """The pages of some packages, which may use what all pages share; names in them are strangers' and are escaped."""
    loaders = [PackageLoader(package) for package in (*packages, "goldfc.report")]
    environment = Environment(loader=ChoiceLoader(loaders), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.globals |= {"colour": colour, "ink": ink, "paint": paint, "version": version("goldfc")}
    return environment


def sealed_page(
    name: str, *packages: str, style: str = "model.css", script: str | None = "page.js", more: str = "", **content: Any
) -> str:
    """A page that runs its own style and script, and loads and runs nothing else, whatever is written in it.

    `more` is what else its policy allows, such as pictures that are in it.
    """
    environment = templates(*packages)
    styles = environment.get_template(style).render(colours=COLOURS, **content)
    code = "" if script is None else environment.get_template(script).render()
    scripts = f"script-src {hash_of(code)}; " if code else ""
    policy = f"default-src 'none'; style-src {hash_of(styles)}; {scripts}base-uri 'none'{more}"
    return environment.get_template(name).render(style=styles, script=code, policy=policy, **content)


def hash_of(text: str) -> str:
    """What a browser knows an inline part by."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
