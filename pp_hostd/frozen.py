"""Frozen dataclasses of which only `__init__` is generated.

Whatever `dataclass(frozen=True)` generates besides is compiled again in each process, for a hundred classes: that was
half of what the agent's start cost. Here all classes share it. `dataclasses.replace`, `fields` and `asdict` work as
ever.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Callable, NoReturn, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[Any], Any]:
        return lambda decorator: decorator


T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Makes a dataclass: equal are objects of one class with equal fields, and none can be changed."""
    known = fields(dataclass(init=False, repr=False, eq=False)(cls))  # type: ignore[arg-type]
    compared = [each.name for each in known if each.compare]
    key: Callable[[Any], Any] = attrgetter(*compared) if compared else lambda _: ()
    shown = [each.name for each in known if each.repr]

    def equal(self: object, other: object) -> bool:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def text(self: object) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    methods = {"__init__": _init(cls, known), "__setattr__": _refuse, "__delattr__": _refuse}
    methods.update({"__eq__": equal, "__hash__": lambda self: hash(key(self)), "__repr__": text})
    for name in methods.keys() - cls.__dict__.keys():
        setattr(cls, name, methods[name])
    return cls


def _init(cls: type, known: tuple[Field[Any], ...]) -> Any:
    """A default is the class's attribute of that name, as dataclasses have it. No field's name begins with "__"."""
    names: dict[str, Any] = {"__cls": cls, "__set": object.__setattr__, "__missing": MISSING}
    parameters, lines = ["self"], ["pass"]
    for each in known:
        default, given = "", each.name
        if each.default is not MISSING:
            default = f"=__cls.{each.name}"
        elif each.default_factory is not MISSING:
            names[f"__make_{each.name}"] = each.default_factory
            default, given = "=__missing", f"__make_{each.name}() if {each.name} is __missing else {each.name}"
        parameters.append(each.name + default)
        lines.append(f"__set(self, {each.name!r}, {given})")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines), names)
    return names["__init__"]


def _refuse(self: object, name: str, *_: object) -> NoReturn:
    raise FrozenInstanceError(f"{self.__class__.__qualname__}.{name} can't be changed")
