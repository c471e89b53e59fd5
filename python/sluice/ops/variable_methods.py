"""Methods of variables that come in rows: scatters and references."""

from sluice.framework import ops


class Reference(object):
    """Equal if of the same variable; for sets and keys of dictionaries."""

    def __init__(self, variable):
        self._variable = variable

    def deref(self):
        return self._variable

    def __eq__(self, other):
        return isinstance(other, Reference) and \
            self._variable is other._variable

    def __hash__(self):
        return id(self._variable)


def add_scatters(cls):
    """scatter_add(slices) and the like, scatter_nd_add(indices, updates)."""
    def of_rows(op_type):
        def scatter(self, sparse_delta, use_locking=False, name=None):
            if not isinstance(sparse_delta, ops.IndexedSlices):
                raise TypeError("sparse_delta is not IndexedSlices: %s" %
                                (sparse_delta,))
            return self._scatter(op_type, sparse_delta.indices,
                                 sparse_delta.values, name,
                                 use_locking=use_locking)
        return scatter

    def of_slices(op_type):
        def scatter(self, indices, updates, name=None):
            return self._scatter(op_type, indices, updates, name,
                                 use_locking=True)
        return scatter

    for kind in ("Add", "Sub", "Update", "Mul", "Div", "Min", "Max"):
        name = "scatter_" + kind.lower()
        setattr(cls, name, of_rows("Scatter" + kind))
        getattr(cls, name).__name__ = name
    for kind in ("Add", "Sub", "Update"):
        name = "scatter_nd_" + kind.lower()
        setattr(cls, name, of_slices("ScatterNd" + kind))
        getattr(cls, name).__name__ = name
