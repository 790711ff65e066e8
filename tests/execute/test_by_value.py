"""Code that no fresh process could import comes out as it went in."""

from __future__ import annotations

import math
import pickle

import pytest
import torch

from explorer.errors import ModelError
from explorer.execute.by_value import from_bytes, to_bytes

OFFSET = 3


def there_and_back(value):
    return from_bytes(to_bytes(value, what="model"))


def test_a_closure_keeps_its_globals_defaults_and_what_it_closed_over():
    factor = 2

    def scaled(x, power=2, *, shift=1):
        return factor * x**power + shift + OFFSET + math.floor(0.5)

    again = there_and_back(scaled)
    assert again is not scaled
    assert again(5) == 2 * 25 + 1 + 3
    assert again(5, 1, shift=0) == 2 * 5 + 3


def test_a_function_that_calls_itself_does_so_afterwards():
    def factorial(n):
        return n * factorial(n - 1) if n else 1

    again = there_and_back(factorial)
    assert again(5) == 120
    assert again.__closure__[0].cell_contents is again


def test_a_class_keeps_its_bases_super_properties_and_methods_of_every_sort():
    class Base:
        def __init__(self, x):
            self.x = x

    class Child(Base):
        count = 7

        def __init__(self, x):
            super().__init__(x + 1)

        @property
        def double(self):
            return 2 * self.x

        @staticmethod
        def plain(y):
            return -y

        @classmethod
        def made(cls):
            return cls(cls.count)

    child = there_and_back(Child(1))
    assert type(child) is not Child
    assert [cls.__name__ for cls in type(child).__mro__] == ["Child", "Base", "object"]
    assert (child.x, child.double, child.plain(3), type(child).made().x) == (2, 4, -3, 8)


def test_what_is_found_by_name_goes_by_name():
    for value in (torch._C._nn.linear, math.floor, pickle.Pickler, ModelError, type(None), Ellipsis):
        assert there_and_back(value) is value


def test_a_parametrized_module_goes_with_the_class_that_torch_made_for_it():
    # torch forbids to pickle them: the class has no name to be found by
    parametrizations = torch.nn.utils.parametrizations
    layer = torch.nn.Sequential(
        parametrizations.weight_norm(torch.nn.Linear(4, 4)), parametrizations.orthogonal(torch.nn.Linear(4, 4))
    )
    again, x = there_and_back(layer), torch.randn(2, 4)
    assert torch.equal(again(x), layer(x))
    assert [name for name, _ in again.named_parameters()] == [name for name, _ in layer.named_parameters()]
    assert isinstance(again[0], torch.nn.Linear)
    assert type(again[0]) is not type(layer[0])


def test_what_cannot_go_is_refused():
    with pytest.raises(
        ModelError, match=r'must be sent there; the loss cannot be: .*generator.*run backend="kernel"'
    ) as caught:
        to_bytes((x for x in ()), what="loss")
    assert caught.value.argument == "loss"

    class Slotted:
        __slots__ = ("x",)

    with pytest.raises(ModelError, match=r"Slotted has __slots__ and is in no file"):
        to_bytes(Slotted(), what="model")
