// Attribute values between Python and C++, guided by the op's definition.
#pragma once

#include <pybind11/pybind11.h>

#include <string_view>

#include "sluice/graph/attr_value.h"

namespace sluice::python {

// `type` is the attr's declared type ("int", "list(shape)", …), or empty for
// attrs outside the definition, whose kind then follows from the object.
AttrValue AttrFromPython(std::string_view type, const pybind11::handle& value);
pybind11::object AttrToPython(const AttrValue& value);

}  // namespace sluice::python
