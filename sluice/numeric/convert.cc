#include "sluice/numeric/convert.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>

#include "sluice/base/half.h"

// A loop for every pair of 15 types would be 225 loops. Instead numbers are
// widened to int64 or double, a block at a time, and then narrowed; only the
// common pairs have loops of their own.
namespace sluice {
namespace {

constexpr int64_t kBlock = 256;

template <typename T>
constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <typename T>
constexpr bool kIsComplex = std::is_same_v<T, std::complex<float>> ||
                            std::is_same_v<T, std::complex<double>>;

// What does not fit comes out as the processor has it, as in TensorFlow.
template <typename To, typename From>
__attribute__((no_sanitize("float-cast-overflow"))) To Narrow(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (kIsHalf<To>) {
    return To(static_cast<float>(x));
  } else if constexpr (kIsComplex<To>) {
    return To(static_cast<typename To::value_type>(x));
  } else if constexpr (std::is_floating_point_v<From> &&
                       std::is_integral_v<To> && sizeof(To) < 4) {
    return static_cast<To>(static_cast<int32_t>(x));
  } else if constexpr (std::is_floating_point_v<From> &&
                       std::is_same_v<To, uint32_t>) {
    return static_cast<To>(static_cast<int64_t>(x));
  } else {
    return static_cast<To>(x);
  }
}

template <typename Wide, typename From>
void WidenBlock(const void* src, int64_t n, void* wide) {
  const From* from = static_cast<const From*>(src);
  Wide* to = static_cast<Wide*>(wide);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (kIsHalf<From>) {
      to[i] = static_cast<float>(from[i]);
    } else if constexpr (kIsComplex<From>) {
      to[i] = from[i].real();
    } else {
      to[i] = static_cast<Wide>(from[i]);
    }
  }
}

template <typename Wide, typename To>
void NarrowBlock(const void* wide, int64_t n, void* dst) {
  const Wide* from = static_cast<const Wide*>(wide);
  To* to = static_cast<To*>(dst);
  for (int64_t i = 0; i < n; ++i) to[i] = Narrow<To>(from[i]);
}

using Loop = void (*)(const void* src, int64_t n, void* dst);

enum class Wide { kInt64, kUint64, kDouble };

struct TypeFacts {
  int64_t size;
  Wide wide;
  Loop widen;
  // By the enum.
  Loop narrow[3];
};

template <typename T, Wide kWide>
constexpr TypeFacts Facts() {
  using WideType = std::conditional_t<
      kWide == Wide::kDouble, double,
      std::conditional_t<kWide == Wide::kInt64, int64_t, uint64_t>>;
  return {sizeof(T),
          kWide,
          WidenBlock<WideType, T>,
          {NarrowBlock<int64_t, T>,
           // Bits do not care about the sign; only floating types do.
           std::is_integral_v<T> ? NarrowBlock<int64_t, T>
                                 : NarrowBlock<uint64_t, T>,
           NarrowBlock<double, T>}};
}

const TypeFacts& FactsOf(NumberType type) {
  static constexpr TypeFacts kFacts[] = {
      Facts<bool, Wide::kInt64>(),
      Facts<uint8_t, Wide::kInt64>(),
      Facts<int8_t, Wide::kInt64>(),
      Facts<uint16_t, Wide::kInt64>(),
      Facts<int16_t, Wide::kInt64>(),
      Facts<uint32_t, Wide::kInt64>(),
      Facts<int32_t, Wide::kInt64>(),
      Facts<uint64_t, Wide::kUint64>(),
      Facts<int64_t, Wide::kInt64>(),
      Facts<Half, Wide::kDouble>(),
      Facts<BFloat16, Wide::kDouble>(),
      Facts<float, Wide::kDouble>(),
      Facts<double, Wide::kDouble>(),
      Facts<std::complex<float>, Wide::kDouble>(),
      Facts<std::complex<double>, Wide::kDouble>(),
  };
  return kFacts[static_cast<int>(type)];
}

template <typename From, typename To>
__attribute__((no_sanitize("float-cast-overflow"))) void Direct(const void* src,
                                                                int64_t n,
                                                                void* dst) {
  const From* from = static_cast<const From*>(src);
  To* to = static_cast<To*>(dst);
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i]);
}

// The loops of common pairs; nullptr for the rest.
Loop DirectLoop(NumberType from, NumberType to) {
  using enum NumberType;
  if (to == kFloat) {
    switch (from) {
      case kBool:
      case kUint8:
        return Direct<uint8_t, float>;
      case kInt32:
        return Direct<int32_t, float>;
      case kInt64:
        return Direct<int64_t, float>;
      case kHalf:
        return Direct<Half, float>;
      case kBfloat16:
        return Direct<BFloat16, float>;
      case kDouble:
        return Direct<double, float>;
      default:
        return nullptr;
    }
  }
  if (from == kFloat) {
    switch (to) {
      case kInt32:
        return Direct<float, int32_t>;
      case kInt64:
        return Direct<float, int64_t>;
      case kHalf:
        return Direct<float, Half>;
      case kBfloat16:
        return Direct<float, BFloat16>;
      case kDouble:
        return Direct<float, double>;
      default:
        return nullptr;
    }
  }
  if (from == kInt32 && to == kInt64) return Direct<int32_t, int64_t>;
  if (from == kInt64 && to == kInt32) return Direct<int64_t, int32_t>;
  return nullptr;
}

}  // namespace

void ConvertNumbers(NumberType from, const void* src, NumberType to, void* dst,
                    int64_t n) {
  using enum NumberType;
  // Between complex types both parts count.
  if (from == kComplex64 && to == kComplex128) {
    return Direct<float, double>(src, 2 * n, dst);
  }
  if (from == kComplex128 && to == kComplex64) {
    return Direct<double, float>(src, 2 * n, dst);
  }
  const TypeFacts& source = FactsOf(from);
  const TypeFacts& target = FactsOf(to);
  if (from == to) {
    std::memcpy(dst, src, n * source.size);
    return;
  }
  if (const Loop direct = DirectLoop(from, to)) return direct(src, n, dst);
  const Loop narrow = target.narrow[static_cast<int>(source.wide)];
  alignas(64) int64_t block[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t size = std::min(kBlock, n - i);
    source.widen(static_cast<const char*>(src) + i * source.size, size, block);
    narrow(block, size, static_cast<char*>(dst) + i * target.size);
  }
}

}  // namespace sluice
