"""Named values of a model (tf.contrib.training.HParams)."""

import json
import numbers
import re

# A name, an index in brackets if there is one, and a value: a list in brackets
# or a text without comma.
_ASSIGNMENT = re.compile(r"""
    (?P<name>[a-zA-Z][\w\.]*)
    (\[\s*(?P<index>\d+)\s*\])?
    \s*=\s*
    ((?P<value>[^,\[]*)|\[(?P<list>[^\]]*)\])
    ($|,\s*)""", re.VERBOSE)


def _cast(name, param_type, value):
    """`value` as the type of the parameter, if it loses nothing by that."""
    def fail():
        raise ValueError("Could not cast hparam '%s' of type '%s' from value "
                         "%r" % (name, param_type, value))
    if isinstance(value, param_type) and not (
            param_type in (int, float) and isinstance(value, bool)):
        return value
    if param_type is type(None) or value is None:
        return value
    if issubclass(param_type, (str, bytes)) != isinstance(value,
                                                          (str, bytes)):
        fail()
    if issubclass(param_type, bool) != isinstance(value, bool):
        fail()
    if issubclass(param_type, numbers.Integral) and not isinstance(
            value, numbers.Integral):
        fail()
    return param_type(value)


def _parse_one(name, param_type, text, whole):
    def fail():
        raise ValueError("Could not parse hparam '%s' of type '%s' with value "
                         "'%s' in %s" % (name, param_type.__name__, text,
                                         whole))
    if param_type is bool:
        if text in ("true", "True"):
            return True
        if text in ("false", "False"):
            return False
        try:
            return bool(int(text))
        except ValueError:
            fail()
    try:
        return param_type(text)
    except ValueError:
        fail()


def parse_values(values, type_map):
    """{name: value} of "a=1,b=[2,3],c[1]=4"; {index: value} for the last."""
    found, position = {}, 0
    while position < len(values):
        match = _ASSIGNMENT.match(values, position)
        if not match:
            raise ValueError("Malformed hyperparameter value: %s" %
                             values[position:])
        position = match.end()
        name = match.group("name")
        if name not in type_map:
            raise ValueError("Unknown hyperparameter type for %s" % name)
        if match.group("list") is not None:
            if match.group("index"):
                raise ValueError("Assignment of a list to a list index.")
            value = [_parse_one(name, type_map[name], part.strip(), values)
                     for part in match.group("list").split(",")
                     if part.strip()]
        else:
            value = _parse_one(name, type_map[name],
                               match.group("value").strip(), values)
        index = match.group("index")
        known = found.get(name)
        if index is None:
            if known is not None:
                raise ValueError("Multiple assignments to variable '%s' in %s"
                                 % (name, values))
            found[name] = value
        elif known is not None and not isinstance(known, dict) or \
                int(index) in (known or {}):
            raise ValueError("Multiple assignments to variable '%s' in %s" %
                             (name, values))
        else:
            found.setdefault(name, {})[int(index)] = value
    return found


class HParams(object):
    """Named values of a model; they keep the type they began with."""

    def __init__(self, hparam_def=None, model_structure=None, **kwargs):
        if hparam_def is not None:
            raise NotImplementedError("HParamDef is no message of Sluice's; "
                                      "use parse_json.")
        # Name: (type of it or of its elements, whether it is a list).
        self._hparam_types = {}
        self._model_structure = model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name, value):
        if getattr(self, name, None) is not None:
            raise ValueError("Hyperparameter name is reserved: %s" % name)
        if isinstance(value, (list, tuple)):
            if not value:
                raise ValueError("Multi-valued hyperparameters cannot be "
                                 "empty: %s" % name)
            self._hparam_types[name] = type(value[0]), True
        else:
            self._hparam_types[name] = type(value), False
        setattr(self, name, value)

    def set_hparam(self, name, value):
        param_type, is_list = self._hparam_types[name]
        if isinstance(value, (list, tuple)):
            if not is_list:
                raise ValueError("Must not pass a list for single-valued "
                                 "parameter: %s" % name)
            value = [_cast(name, param_type, v) for v in value]
        else:
            if is_list:
                raise ValueError("Must pass a list for multi-valued "
                                 "parameter: %s." % name)
            value = _cast(name, param_type, value)
        setattr(self, name, value)

    def del_hparam(self, name):
        if hasattr(self, name):
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values):
        """Takes values from a text like "a=1,b=[2,3]"."""
        types = {name: t for name, (t, _) in self._hparam_types.items()}
        return self.override_from_dict(parse_values(values, types))

    def override_from_dict(self, values_dict):
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def set_from_map(self, values_map):
        return self.override_from_dict(values_map)

    def parse_json(self, values_json):
        return self.override_from_dict(json.loads(values_json))

    def to_json(self, indent=None, separators=None, sort_keys=False):
        return json.dumps(self.values(), indent=indent, separators=separators,
                          sort_keys=sort_keys)

    def set_model_structure(self, model_structure):
        self._model_structure = model_structure

    def get_model_structure(self):
        return self._model_structure

    def get(self, key, default=None):
        if key not in self._hparam_types:
            return default
        param_type, is_list = self._hparam_types[key]
        if default is not None:
            shown = "list<%s>" % param_type if is_list else param_type
            fail = "Hparam '%s' of type '%s' is incompatible with " \
                "default=%s" % (key, shown, default)
            if is_list != isinstance(default, (list, tuple)):
                raise ValueError(fail)
            try:
                for v in default if is_list else [default]:
                    _cast(key, param_type, v)
            except ValueError as e:
                raise ValueError("%s. %s" % (fail, e))
        return getattr(self, key)

    def values(self):
        return {name: getattr(self, name) for name in self._hparam_types}

    def __contains__(self, key):
        return key in self._hparam_types

    def __str__(self):
        return ",".join("%s=%s" % item for item in
                        sorted(self.values().items()))

    def __repr__(self):
        return "HParams(%r)" % sorted(self.values().items())
