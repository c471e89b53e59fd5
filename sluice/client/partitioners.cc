#include "sluice/client/partitioners.h"

#include <algorithm>

#include "sluice/base/strings.h"

namespace sluice {
namespace {

// What TensorFlow takes a string for.
constexpr int64_t kStringBytes = 16;

int64_t BytesOf(DType dtype) {
  return dtype == DType::kString ? kStringBytes
                                 : static_cast<int64_t>(ElementSize(dtype));
}

int64_t RoundedUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// `count` along `axis`, whole along the others; none if there is no such axis.
std::vector<int> Along(int axis, int64_t count, const Shape& shape) {
  std::vector<int> cuts(shape.rank(), 1);
  if (axis < 0 || axis >= shape.rank()) return {};
  cuts[axis] = static_cast<int>(count);
  return cuts;
}

int64_t Rows(const Shape& shape, int axis) {
  return axis < 0 || axis >= shape.rank() ? 1 : shape.dim(axis);
}

}  // namespace

Partitioner FixedSizePartitioner(int shards, int axis) {
  return [=](const Shape& shape, DType) {
    return Along(axis, std::min<int64_t>(shards, Rows(shape, axis)), shape);
  };
}

Partitioner VariableAxisSizePartitioner(int64_t max_bytes, int axis,
                                        int max_shards) {
  return [=](const Shape& shape, DType dtype) {
    int64_t row = BytesOf(dtype);
    for (int i = 0; i < shape.rank(); ++i) row *= i == axis ? 1 : shape.dim(i);
    const int64_t rows =
        row == 0 ? Rows(shape, axis) : std::max<int64_t>(1, max_bytes / row);
    int64_t shards = RoundedUp(Rows(shape, axis), std::max<int64_t>(1, rows));
    if (max_shards > 0) shards = std::min<int64_t>(shards, max_shards);
    return Along(axis, shards, shape);
  };
}

Partitioner MinMaxVariablePartitioner(int max_shards, int axis,
                                      int64_t min_bytes) {
  return [=](const Shape& shape, DType dtype) {
    const int64_t size = shape.size() * BytesOf(dtype);
    const int64_t shards = std::min<int64_t>(
        {Rows(shape, axis), max_shards, RoundedUp(size, min_bytes)});
    return Along(axis, std::max<int64_t>(1, shards), shape);
  };
}

std::vector<VariablePart> CutVariable(const std::string& name,
                                      const Shape& shape,
                                      const std::vector<int>& cuts) {
  int axis = 0;
  while (axis + 1 < shape.rank() && cuts[axis] == 1) ++axis;
  const int64_t count = cuts[axis], rows = shape.dim(axis);
  std::vector<VariablePart> parts;
  std::vector<int64_t> offset(shape.rank(), 0);
  for (int64_t i = 0; i < count; ++i) {
    VariablePart part;
    part.name = StrCat("part_", i);
    part.slice = {name, shape, offset};
    for (int d = 0; d < shape.rank(); ++d) {
      part.shape.AddDim(d == axis ? rows / count + (i < rows % count ? 1 : 0)
                                  : shape.dim(d));
    }
    offset[axis] += part.shape.dim(axis);
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace sluice
