// Attributes that releases after 1.15 added to ops we know.
#pragma once

#include <string_view>

#include "sluice/graph/attr_value.h"

namespace sluice {

// Whether an attribute that our op does not have changes nothing when it is
// left out: it holds what the newer definition has as default, or is only a
// hint. (DESIGN D1; the defaults are those in the column tf2_changes of the op
// table.)
bool IsHarmlessNewerAttr(std::string_view name, const AttrValue& value);

}  // namespace sluice
