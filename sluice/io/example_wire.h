// Example and SequenceExample read where they lie, without making messages:
// the reader of training input spends most of its time here. Field numbers are
// those of proto/example.proto; as in any protobuf, unknown fields are skipped,
// maps may come in parts, and of equal keys the last one counts.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "sluice/tensor/dtype.h"

namespace sluice {

// The values of one Feature; which vector is used follows from `dtype`, which
// is kInvalid for a feature that says nothing. Strings point into the message.
struct FeatureValues {
  DType dtype = DType::kInvalid;
  std::vector<std::string_view> strings;
  std::vector<float> floats;
  std::vector<int64_t> ints;

  int64_t size() const;
  void Clear();
};

using EntryVisitor =
    absl::FunctionRef<bool(std::string_view key, std::string_view value)>;

// Calls `visit` with each key of an Example and its serialized Feature, in the
// order of the message. False if the message is malformed or `visit` said so.
bool VisitExample(std::string_view example, EntryVisitor visit);
// As VisitExample for the context of a SequenceExample, and for its lists,
// whose values are serialized FeatureLists.
bool VisitSequenceExample(std::string_view example, EntryVisitor context,
                          EntryVisitor lists);
// Calls `visit` with each serialized Feature of a FeatureList.
bool VisitFeatureList(std::string_view list,
                      absl::FunctionRef<bool(std::string_view feature)> visit);
// False if the message is malformed.
bool DecodeFeature(std::string_view feature, FeatureValues* values);

}  // namespace sluice
