// FunctionLibrary: the functions that came with a graph, kept as data. They go
// out again as they came in; nothing here runs them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace sluice {

namespace pb {
class FunctionDef;
class FunctionDefLibrary;
}  // namespace pb

struct OpInfo;

// Thread-compatible.
class FunctionLibrary {
 public:
  FunctionLibrary();
  ~FunctionLibrary();
  // Cheap: definitions are shared.
  FunctionLibrary(const FunctionLibrary& other);
  FunctionLibrary& operator=(const FunctionLibrary& other);

  // Adds all functions and gradients. The same definition again is fine,
  // another one of the same name is an error; then nothing is added.
  absl::Status Add(const pb::FunctionDefLibrary& library);
  // nullptr if there is none.
  const pb::FunctionDef* Find(std::string_view name) const;
  // The function as an op, for nodes that call it by using its name as theirs.
  // nullptr if there is none. Valid as long as the function is in a library.
  const OpInfo* FindOp(std::string_view name) const;
  bool empty() const;
  void ToProto(pb::FunctionDefLibrary* library) const;
  absl::Status AddAll(const FunctionLibrary& other);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
