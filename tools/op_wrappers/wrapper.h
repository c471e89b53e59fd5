// The C++ text of one op's function.
#pragma once

#include <string>

#include "sluice/graph/op_registry.h"

namespace sluice::tools {

// The struct of its optional attrs, that of its outputs if it has several, and
// the declaration of the function, with a comment.
std::string Declaration(const OpDef& op);

// The function.
std::string Definition(const OpDef& op);

}  // namespace sluice::tools
