// Gradients that hold only some rows of a tensor (IndexedSlices), and how they
// become dense, joined, or slices in the first place.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "sluice/graph/scope.h"

namespace sluice {

// The whole tensor; rows that appear more than once are added up, missing ones
// are zero. A dense gradient, or none, comes back as it is. Fails the scope if
// the number of rows is not known.
Output Densify(const Scope& scope, const Grad& grad,
               std::string_view name = "UnsortedSegmentSum");

// A dense gradient as slices that name every row.
Grad AsSlices(const Scope& scope, const Grad& grad);

// Gives all the same type of indices, int64 if they differ.
std::vector<Grad> WithSameIndexType(const Scope& scope,
                                    std::span<const Grad> slices);

// All rows one after the other.
Grad ConcatSlices(const Scope& scope, std::span<const Grad> slices);

}  // namespace sluice
