// How a variable is cut into parts, and functions that say into how many.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sluice/client/variable.h"

namespace sluice {

// In how many parts a variable of that shape and type is cut, for each of its
// dimensions; more than one for one dimension at most.
using Partitioner =
    std::function<std::vector<int>(const Shape& shape, DType dtype)>;

// `shards` along `axis`, or as many as there are rows.
Partitioner FixedSizePartitioner(int shards, int axis = 0);
// As many as it takes to have none above `max_bytes`, and at most `max_shards`
// if that is not 0.
Partitioner VariableAxisSizePartitioner(int64_t max_bytes, int axis = 0,
                                        int max_shards = 0);
// At most `max_shards`, none below `min_bytes`.
Partitioner MinMaxVariablePartitioner(int max_shards = 1, int axis = 0,
                                      int64_t min_bytes = 256 << 10);

struct VariablePart {
  std::string name;  // "part_0"
  Shape shape;
  SaveSlice slice;
};
// The parts of a variable `name`. `cuts` as a Partitioner gives them, checked.
// The first ones are larger by one if it does not come out even.
std::vector<VariablePart> CutVariable(const std::string& name,
                                      const Shape& shape,
                                      const std::vector<int>& cuts);

}  // namespace sluice
