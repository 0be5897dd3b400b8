"""Frozen dataclasses of which only `__init__` is generated at once.

Whatever `dataclass(frozen=True)` generates besides is compiled again in each process, for a hundred classes: that was
half of what the agent's start cost. Here all classes share it, or each has its own when that is first called: what
names its fields is faster than what looks for them. `fields` and `asdict` of dataclasses work as ever, and `replace`
is here.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Callable, NoReturn, TypeVar

if TYPE_CHECKING:
    from dataclasses import replace

    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[Any], Any]:
        return lambda decorator: decorator

    def replace(before: Any, /, **changes: Any) -> Any:
        """As that of dataclasses, for objects of frozen classes."""
        return before.__replace__(**changes)


__all__ = ["frozen", "replace"]

T = TypeVar("T")
Known = tuple[Field[Any], ...]
Text = Callable[[Known], str]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Makes a dataclass: equal are objects of one class with equal fields, and none can be changed."""
    own = set(cls.__dict__)
    known = fields(dataclass(init=False, repr=False, eq=False)(cls))  # type: ignore[arg-type]
    methods = {"__init__": _init(cls, known), **_SHARED}
    for name in methods.keys() - own:
        setattr(cls, name, methods[name])
    return cls


def _late(name: str, text: Text) -> Any:
    """A method that a class has compiled for itself when it is first called: in most processes few classes need
    theirs."""

    def first(self: Any, *others: object, **changes: object) -> Any:
        names: dict[str, Any] = {"__missing": MISSING}
        exec(f"def {name}{text(fields(self))}", names)
        setattr(self.__class__, name, names[name])
        return names[name](self, *others, **changes)

    return first


def _text(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _equal(known: Known) -> str:
    alike = f"{_key(known, 'self')} == {_key(known, 'other')}"
    return f"(self, other): return {alike} if other.__class__ is self.__class__ else NotImplemented"


def _hash(known: Known) -> str:
    return f"(self): return hash({_key(known, 'self')})"


def _replaced(known: Known) -> str:
    parameters = ", ".join(["self", *(["*"] if known else []), *(f"{each.name}=__missing" for each in known)])
    values = ", ".join(f"self.{each.name} if {each.name} is __missing else {each.name}" for each in known)
    return f"({parameters}): return self.__class__({values})"


def _key(known: Known, of: str) -> str:
    return f"({', '.join(f'{of}.{each.name}' for each in known if each.compare)})"


def _init(cls: type, known: Known) -> Any:
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


_SHARED = {
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__repr__": _text,
    "__eq__": _late("__eq__", _equal),
    "__hash__": _late("__hash__", _hash),
    "__replace__": _late("__replace__", _replaced),
}
"""By all classes: functions of each class's own would take a tenth of a megabyte of the agent's locked memory."""
