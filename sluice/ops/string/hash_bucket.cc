// StringToHashBucketFast, StringToHashBucketStrong: strings as numbers below a
// bound, the same in every program.

#include "sluice/base/fingerprint.h"
#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"

namespace sluice {
namespace {
namespace hash_bucket {

template <typename Hash>
absl::Status HashAll(KernelContext& ctx, Hash hash) {
  const Tensor& in = ctx.input(0);
  const uint64_t buckets = ctx.attr<int64_t>("num_buckets");
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, in.shape()));
  for (int64_t i = 0; i < in.size(); ++i) {
    out.mutable_data<int64_t>()[i] =
        static_cast<int64_t>(hash(in.data<std::string>()[i]) % buckets);
  }
  return absl::OkStatus();
}

absl::Status Fast(KernelContext& ctx) {
  return HashAll(ctx,
                 [](const std::string& text) { return Fingerprint64(text); });
}

absl::Status Strong(KernelContext& ctx) {
  const AttrList key = ctx.attr<AttrList>("key");
  if (key.ints.size() != 2) {
    return InvalidArgument("Key must have 2 elements");
  }
  return HashAll(ctx, [&](const std::string& text) {
    return SipHash(key.ints[0], key.ints[1], text);
  });
}

}  // namespace hash_bucket
}  // namespace

SLUICE_OP(StringToHashBucketFast)
    .Input("input: string")
    .Output("output: int64")
    .Attr("num_buckets: int >= 1")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();

SLUICE_OP(StringToHashBucketStrong)
    .Input("input: string")
    .Output("output: int64")
    .Attr("num_buckets: int >= 1")
    .Attr("key: list(int)")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();

SLUICE_KERNEL(StringToHashBucketFast, kCpu).Function(hash_bucket::Fast);
SLUICE_KERNEL(StringToHashBucketStrong, kCpu).Function(hash_bucket::Strong);

}  // namespace sluice
