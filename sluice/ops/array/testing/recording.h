// Recordings of what TensorFlow does with single ops, read from text files of
// tests/golden. A record reads
//
//   == Slice                    a name
//   op Slice                    the op, if it is not the name
//   attr axis 1
//   in float [2,?]              a type and a static shape
//   in int32 [2] = 1 2          a value
//   in int32 [2] ~ ? 2          a vector packed of scalars, some of them known
//   --                          optional
//
// and then what came out, which is up to the test.
#pragma once

#include <string>
#include <vector>

#include "sluice/graph/scope.h"

namespace sluice {

struct RecordedInput {
  DType dtype = DType::kInvalid;
  PartialShape shape;
  // The elements, or "?" for those of a packed vector that are not known.
  std::vector<std::string> values;
  bool has_value = false;
  bool packed = false;
};

struct Recorded {
  std::string name;
  std::string op;
  AttrMap attrs;
  std::vector<RecordedInput> inputs;
  std::vector<std::string> results;  // The other lines.

  std::string DebugString() const;
};

std::vector<Recorded> ReadRecording(const std::string& path);
// "float [2] = 1 2".
RecordedInput ParseRecordedInput(std::string_view text);
Tensor TensorOf(const RecordedInput& input);
// A Const, a Pack or a Placeholder.
Output AddRecordedInput(const Scope& scope, std::string_view name,
                        const RecordedInput& input);

}  // namespace sluice
