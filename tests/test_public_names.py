"""Every public name says what its parameters are."""

import pytest
from numpydoc.validate import validate
from sphinx.pycode import ModuleAnalyzer

import goldfc
from goldfc._looks import Explored

MESSAGES = ("Model", "Summary")
# A parameter that is not told, or told but not there; a result that is not told.
MISSING = {"PR01", "PR02", "RT01"}


METHODS = (
    "OneShotClustering.fit",
    "GOLD.fit",
    *(f"Model.{name}" for name in vars(Explored) if not name.startswith("_")),
)


@pytest.mark.parametrize("name", sorted({*goldfc.__all__, *METHODS} - {"errors", *MESSAGES}))
def test_every_parameter_is_documented(name: str) -> None:
    errors = validate(f"goldfc.{name}")["errors"]
    assert [sentence for code, sentence in errors if code in MISSING] == []


@pytest.mark.parametrize("name", MESSAGES)
def test_every_field_of_a_message_is_documented(name: str) -> None:
    content = getattr(goldfc, name)
    told = ModuleAnalyzer.for_module(content.__module__).find_attr_docs()
    assert [field for field in content.__dataclass_fields__ if (name, field) not in told] == []


@pytest.mark.parametrize("name", ["GOLD", "OneShotClustering"])
def test_an_estimator_can_be_looked_at_as_its_model_can(name: str) -> None:
    assert issubclass(getattr(goldfc, name), Explored)
    assert issubclass(goldfc.Model, Explored)
