// Histogram: counts of values in buckets that grow by a tenth, and the message
// TensorBoard shows them from. docs/formats/events.md has the buckets.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sluice/proto/summary.pb.h"

namespace sluice {

// Thread-compatible.
class Histogram {
 public:
  Histogram();

  // All values must be finite.
  void Add(std::span<const double> values);
  // Runs of empty buckets become one.
  void ToProto(pb::HistogramProto* proto) const;

 private:
  double min_ = std::numeric_limits<double>::max();
  double max_ = -std::numeric_limits<double>::max();
  double sum_ = 0;
  double sum_squares_ = 0;
  int64_t num_ = 0;
  std::vector<int64_t> counts_;
};

}  // namespace sluice
