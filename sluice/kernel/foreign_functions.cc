#include "sluice/kernel/foreign_functions.h"

#include <utility>

#include "sluice/base/status.h"

namespace sluice {
namespace {

ForeignCaller& TheCaller() {
  static auto* caller = new ForeignCaller;
  return *caller;
}

}  // namespace

void SetForeignCaller(ForeignCaller caller) { TheCaller() = std::move(caller); }

void CallForeign(const std::string& token, std::vector<Tensor> inputs,
                 ForeignDone done) {
  if (TheCaller() == nullptr) {
    done(NotFound("This process runs no Python program"));
    return;
  }
  TheCaller()(token, std::move(inputs), std::move(done));
}

}  // namespace sluice
