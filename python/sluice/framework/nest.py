"""Structures of lists, tuples, named tuples and dicts around values."""

import collections.abc


def _is_namedtuple(value):
    return isinstance(value, tuple) and hasattr(value, "_fields")


def is_sequence(value):
    return isinstance(value, (list, tuple, collections.abc.Mapping))


is_nested = is_sequence


def _children(structure):
    """The parts of one level; those of a dict in the order of their keys."""
    if isinstance(structure, collections.abc.Mapping):
        return [structure[key] for key in sorted(structure)]
    return list(structure)


def _with_children(structure, children):
    """The same kind of container around other parts."""
    if isinstance(structure, collections.abc.Mapping):
        made = dict(zip(sorted(structure), children))
        return type(structure)((key, made[key]) for key in structure)
    if _is_namedtuple(structure):
        return type(structure)(*children)
    return type(structure)(children)


def flatten(structure):
    """The values of a structure as a list; a lone value gives one."""
    if not is_sequence(structure):
        return [structure]
    return [leaf for child in _children(structure) for leaf in flatten(child)]


def pack_sequence_as(structure, flat_sequence):
    """Puts values in the places that flatten() took them from."""
    if not is_sequence(flat_sequence):
        raise TypeError("flat_sequence must be a sequence")
    if not is_sequence(structure):
        if len(flat_sequence) != 1:
            raise ValueError(
                "Structure is a scalar but len(flat_sequence) == %d > 1" %
                len(flat_sequence))
        return flat_sequence[0]
    values = list(flat_sequence)
    if len(flatten(structure)) != len(values):
        raise ValueError(
            "Could not pack sequence. Structure had %d elements, but "
            "flat_sequence had %d elements.  Structure: %s, flat_sequence: "
            "%s." % (len(flatten(structure)), len(values), structure, values))
    values.reverse()

    def pack(part):
        if not is_sequence(part):
            return values.pop()
        return _with_children(part, [pack(c) for c in _children(part)])

    return pack(structure)


def _same(a, b, check_types):
    if is_sequence(a) != is_sequence(b):
        raise ValueError("One is a sequence and the other is not: %s vs %s" %
                         (a, b))
    if not is_sequence(a):
        return
    is_map = isinstance(a, collections.abc.Mapping)
    if is_map != isinstance(b, collections.abc.Mapping) or \
            check_types and type(a) is not type(b):
        raise TypeError(
            "The two namedtuples don't have the same sequence type. First "
            "structure has type %s, while second structure has type %s" %
            (type(a), type(b)) if _is_namedtuple(a) else
            "The two structures don't have the same sequence type. First "
            "structure has type %s, while second structure has type %s" %
            (type(a), type(b)))
    if is_map and set(a) != set(b):
        raise ValueError("The two dictionaries don't have the same set of "
                         "keys. First structure has keys %s, while second "
                         "structure has keys %s" % (list(a), list(b)))
    ours, theirs = _children(a), _children(b)
    if len(ours) != len(theirs):
        raise ValueError("The two structures don't have the same number of "
                         "elements: %s vs %s" % (a, b))
    for x, y in zip(ours, theirs):
        _same(x, y, check_types)


def assert_same_structure(nest1, nest2, check_types=True):
    try:
        _same(nest1, nest2, check_types)
    except (ValueError, TypeError) as e:
        raise type(e)(
            "The two structures don't have the same nested structure.\n\n"
            "First structure: %s\n\nSecond structure: %s\n\nMore "
            "Specifically: %s" % (nest1, nest2, e)) from None


def map_structure(func, *structures, **kwargs):
    check_types = kwargs.pop("check_types", True)
    if kwargs:
        raise ValueError("Only valid keyword arguments are `check_types`")
    if not callable(func):
        raise TypeError("func must be callable, got: %s" % func)
    if not structures:
        raise ValueError("Must provide at least one structure")
    for other in structures[1:]:
        assert_same_structure(structures[0], other, check_types)
    flat = [flatten(s) for s in structures]
    return pack_sequence_as(structures[0], [func(*x) for x in zip(*flat)])
