"""The public names of a class."""

from typing import ClassVar

import pytest

from ovir.core.public_names import PublicNames


class Mine(PublicNames):
    _internal = frozenset({"own"})
    _elsewhere: ClassVar = {"get_name": "name"}
    name = own = 1


def test_names_that_only_openvino_has_are_explained() -> None:
    mine = Mine()
    assert {"name", "own", "get_name"} & {*dir(mine)} == {"name"}
    for name, message in (("get_name", "no attribute 'get_name': use name"), ("other", "no attribute 'other'")):
        with pytest.raises(AttributeError) as caught:
            getattr(mine, name)
        assert str(caught.value) == f"'Mine' object has {message}"
        assert (caught.value.name, caught.value.obj) == (name, mine)


def test_a_subclass_may_have_such_a_name_after_all() -> None:
    class Subclass(Mine):
        get_name = 2

    assert Subclass().get_name == 2
    assert not hasattr(Subclass, "__getattr__")  # with which Python would read every attribute in the slow way
