#include "sluice/ops/summary/histogram.h"

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {
namespace histogram {

constexpr double kLargest = std::numeric_limits<double>::max();

// The upper limits of the buckets, which a value lies below.
struct Buckets {
  std::vector<double> limits;
  int zero;  // limits[zero] is 0.
  // Per power of two from 2^kLowest on, the first bucket whose limit is at
  // least that: a place to start from that is at most a few buckets too low.
  static constexpr int kLowest = -40;  // Below the first limit.
  static constexpr int kHighest = 66;  // What 1e20 lies above.
  std::vector<int> first_at;

  Buckets() {
    std::vector<double> positive;
    for (double limit = 1e-12; limit < 1e20; limit *= 1.1) {
      positive.push_back(limit);
    }
    positive.push_back(kLargest);
    for (auto it = positive.rbegin(); it != positive.rend(); ++it) {
      limits.push_back(-*it);
    }
    zero = static_cast<int>(limits.size());
    limits.push_back(0);
    limits.insert(limits.end(), positive.begin(), positive.end());
    for (int e = kLowest; e <= kHighest; ++e) {
      const double low = std::ldexp(1.0, e);
      first_at.push_back(static_cast<int>(
          std::lower_bound(limits.begin() + zero + 1, limits.end() - 1, low) -
          limits.begin()));
    }
  }

  // The first bucket above zero whose limit is at least (or above) `value`,
  // which is not negative. The last one takes what has no limit.
  template <bool kAbove>
  int Find(double value) const {
    const int last = static_cast<int>(limits.size()) - 1;
    if (value >= 1e20) return last;
    int at = zero + 1;
    if (value >= 1e-12) at = first_at[std::ilogb(value) - kLowest];
    while (at < last && (kAbove ? limits[at] <= value : limits[at] < value)) {
      ++at;
    }
    return at;
  }

  // The first bucket whose limit is above `value`. The limits below zero
  // mirror those above, so one search serves both.
  int Of(double value) const {
    if (value >= 0) return Find<true>(value);
    return 2 * zero - Find<false>(-value) + 1;
  }
};

const Buckets& AllBuckets() {
  static const Buckets* buckets = new Buckets;
  return *buckets;
}

}  // namespace histogram
}  // namespace

Histogram::Histogram() : counts_(histogram::AllBuckets().limits.size()) {}

void Histogram::Add(std::span<const double> values) {
  const histogram::Buckets& buckets = histogram::AllBuckets();
  for (const double value : values) {
    ++counts_[buckets.Of(value)];
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
    sum_ += value;
    sum_squares_ += value * value;
  }
  num_ += static_cast<int64_t>(values.size());
}

void Histogram::ToProto(pb::HistogramProto* proto) const {
  const std::vector<double>& limits = histogram::AllBuckets().limits;
  proto->Clear();
  proto->set_min(min_);
  proto->set_max(max_);
  proto->set_num(static_cast<double>(num_));
  proto->set_sum(sum_);
  proto->set_sum_squares(sum_squares_);
  for (size_t i = 0; i < counts_.size(); ++i) {
    const bool run_goes_on =
        counts_[i] == 0 && i + 1 < counts_.size() && counts_[i + 1] == 0;
    if (run_goes_on) continue;
    proto->add_bucket_limit(limits[i]);
    proto->add_bucket(static_cast<double>(counts_[i]));
  }
}

}  // namespace sluice
