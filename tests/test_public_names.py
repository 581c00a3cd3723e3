"""Every public name says what its parameters are."""

import pytest
from numpydoc.validate import validate
from sphinx.pycode import ModuleAnalyzer

import goldfc

MESSAGES = ("Model", "Summary")
# A parameter that is not told, or told but not there; a result that is not told.
MISSING = {"PR01", "PR02", "RT01"}


@pytest.mark.parametrize("name", sorted({*goldfc.__all__, "OneShotClustering.fit", "GOLD.fit"} - {"errors", *MESSAGES}))
def test_every_parameter_is_documented(name: str) -> None:
    errors = validate(f"goldfc.{name}")["errors"]
    assert [sentence for code, sentence in errors if code in MISSING] == []


@pytest.mark.parametrize("name", MESSAGES)
def test_every_field_of_a_message_is_documented(name: str) -> None:
    content = getattr(goldfc, name)
    told = ModuleAnalyzer.for_module(content.__module__).find_attr_docs()
    assert [field for field in content.__dataclass_fields__ if (name, field) not in told] == []
