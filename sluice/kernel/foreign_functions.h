// Functions of the program itself, in another language: PyFunc nodes call them
// by token. The extension behind the Python package brings the way to call
// them; a process without it has none.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

using ForeignDone =
    absl::AnyInvocable<void(absl::StatusOr<std::vector<Tensor>>)>;

// Calls the function and then `done`, once, on any thread. Must not block.
// NOT_FOUND is for tokens that this process has not given out.
using ForeignCaller = std::function<void(
    const std::string& token, std::vector<Tensor> inputs, ForeignDone done)>;

// To be called once, before any step runs.
void SetForeignCaller(ForeignCaller caller);

// `done` gets NOT_FOUND if nobody has set a caller.
void CallForeign(const std::string& token, std::vector<Tensor> inputs,
                 ForeignDone done);

}  // namespace sluice
