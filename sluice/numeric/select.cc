#include "sluice/numeric/select.h"

namespace sluice {
namespace {

struct alignas(8) Pair {
  uint64_t words[2];
};

template <typename Word>
void Select(const bool* condition, const void* a, const void* b, void* out,
            int64_t n) {
  const Word* x = static_cast<const Word*>(a);
  const Word* y = static_cast<const Word*>(b);
  Word* to = static_cast<Word*>(out);
  for (int64_t i = 0; i < n; ++i) {
    const Word if_true = x[i];
    const Word if_false = y[i];
    to[i] = condition[i] ? if_true : if_false;
  }
}

}  // namespace

void SelectElements(int64_t element_size, const bool* condition, const void* a,
                    const void* b, void* out, int64_t n) {
  switch (element_size) {
    case 1:
      return Select<uint8_t>(condition, a, b, out, n);
    case 2:
      return Select<uint16_t>(condition, a, b, out, n);
    case 4:
      return Select<uint32_t>(condition, a, b, out, n);
    case 8:
      return Select<uint64_t>(condition, a, b, out, n);
    default:
      return Select<Pair>(condition, a, b, out, n);
  }
}

}  // namespace sluice
