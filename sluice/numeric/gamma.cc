#include "sluice/numeric/gamma.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace sluice {
namespace numeric {
namespace {

// Long enough for any pair that converges at all: the slowest, both arguments
// alike and large, need about ten times their square root of terms.
constexpr int kMostTerms = 200000;
constexpr double kEnough = 1e-15;

// A value and its derivative by alpha.
struct Dual {
  double value = 0;
  double slope = 0;
};
Dual operator*(Dual a, Dual b) {
  return {a.value * b.value, a.slope * b.value + a.value * b.slope};
}
Dual operator+(Dual a, Dual b) {
  return {a.value + b.value, a.slope + b.slope};
}
Dual operator/(Dual a, Dual b) {
  const double value = a.value / b.value;
  return {value, (a.slope - value * b.slope) / b.value};
}

bool SmallBeside(Dual change, Dual whole) {
  return std::abs(change.value) + std::abs(change.slope) <=
         kEnough * (std::abs(whole.value) + std::abs(whole.slope));
}

// 1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + …, the series of the lower
// incomplete gamma function.
Dual LowerSeries(double a, double x) {
  Dual term{1, 0};
  Dual sum = term;
  for (int n = 1; n < kMostTerms; ++n) {
    term = term * (Dual{x, 0} / Dual{a + n, 1});
    sum = sum + term;
    if (SmallBeside(term, sum)) break;
  }
  return sum;
}

// 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - …)), the continued fraction of the
// upper one, by its convergents.
Dual UpperFraction(double a, double x) {
  Dual above_before{0, 0}, above{1, 0};
  Dual below_before{1, 0}, below{x + 1 - a, -1};
  Dual fraction = above / below;
  for (int n = 1; n < kMostTerms; ++n) {
    const Dual factor{-n * (n - a), static_cast<double>(n)};
    const Dual step{x + 2 * n + 1 - a, -1};
    const Dual next_above = step * above + factor * above_before;
    const Dual next_below = step * below + factor * below_before;
    above_before = above;
    above = next_above;
    below_before = below;
    below = next_below;
    const Dual next = above / below;
    const Dual change{next.value - fraction.value, next.slope - fraction.slope};
    fraction = next;
    if (SmallBeside(change, fraction)) break;
    if (std::abs(below.value) > 1e100) {  // Only ratios count.
      for (Dual* d : {&above, &above_before, &below, &below_before}) {
        d->value *= 1e-100;
        d->slope *= 1e-100;
      }
    }
  }
  return fraction;
}

}  // namespace

// By recurrence up to where the asymptotic series is exact enough, and by
// reflection for negative arguments.
double Digamma(double x) {
  double result = 0;
  if (x <= 0) {
    if (x == std::floor(x)) return std::numeric_limits<double>::infinity();
    // The fraction first: tan of a large argument would lose it.
    const double fraction = x - std::floor(x);
    result = -std::numbers::pi / std::tan(std::numbers::pi * fraction);
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  const double y = 1 / (x * x);
  const double series =
      y * (1.0 / 12 -
           y * (1.0 / 120 -
                y * (1.0 / 252 -
                     y * (1.0 / 240 - y * (1.0 / 132 - y * 691.0 / 32760)))));
  return result + std::log(x) - 0.5 / x - series;
}

double GammaSampleDerivative(double alpha, double sample) {
  if (sample == 0) return 0;
  if (!(sample > 0) || !(alpha > 0)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  // P is the series times sample^alpha e^-sample / Gamma(alpha + 1); divided by
  // the density all but sample / alpha cancels. The same for 1 - P.
  if (sample > 1 && sample > alpha) {
    const Dual upper = UpperFraction(alpha, sample);
    return sample *
           (upper.value * (std::log(sample) - Digamma(alpha)) + upper.slope);
  }
  const Dual lower = LowerSeries(alpha, sample);
  return -sample / alpha *
         (lower.value * (std::log(sample) - Digamma(alpha + 1)) + lower.slope);
}

}  // namespace numeric

namespace {

// Numbers one by one. They are made in pairs, each of one block, and the second
// of a pair comes first.
class PairedDraws {
 public:
  explicit PairedDraws(const Philox& stream) : stream_(stream) {}

  double Uniform() {
    if (uniforms_left_ == 0) {
      FillUniform(stream_.Skip(blocks_++), 0, 2, uniforms_);
      uniforms_left_ = 2;
    }
    return uniforms_[--uniforms_left_];
  }
  double Normal() {
    if (normals_left_ == 0) {
      FillNormal(stream_.Skip(blocks_++), 0, 2, normals_);
      normals_left_ = 2;
    }
    return normals_[--normals_left_];
  }

 private:
  const Philox stream_;
  uint64_t blocks_ = 0;
  double uniforms_[2] = {};
  double normals_[2] = {};
  int uniforms_left_ = 0;
  int normals_left_ = 0;
};

// Knuth: how many uniform numbers can be multiplied before their product falls
// below e^-rate.
double DrawSmallPoisson(PairedDraws& draws, double rate, double highest) {
  const double limit = std::exp(-rate);
  double product = 1;
  for (double count = 0;; count += 1) {
    product *= draws.Uniform();
    if (product <= limit && count <= highest) return count;
  }
}

double LogFactorial(double k) {
  int sign;
  return ::lgamma_r(k + 1, &sign);
}

// Hörmann's transformed rejection (1993), for rates of 10 and more.
double DrawLargePoisson(PairedDraws& draws, double rate, double highest) {
  const double log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * std::sqrt(rate);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  for (;;) {
    const double u = draws.Uniform() - 0.5;
    const double v = draws.Uniform();
    const double to_edge = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / to_edge + b) * u + rate + 0.43);
    if (k > highest) continue;
    if (to_edge >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (k < 0 || (to_edge < 0.013 && v > to_edge)) continue;
    const double drawn =
        std::log(v * inverse_alpha / (a / (to_edge * to_edge) + b));
    if (drawn <= -rate + k * log_rate - LogFactorial(k)) return k;
  }
}

}  // namespace

// Marsaglia and Tsang (2000). A shape below 1 is drawn one higher and corrected
// by a power of a uniform number.
double DrawGamma(const Philox& stream, double alpha) {
  PairedDraws draws(stream);
  if (alpha == 1) return -std::log1p(-draws.Uniform());
  const bool small = alpha < 1;
  const double d = alpha + (small ? 2.0 / 3 : -1.0 / 3);
  const double c = 1.0 / 3 / std::sqrt(d);
  for (;;) {
    const double x = draws.Normal();
    double v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    const double u = draws.Uniform();
    // The first test is a cheap way to most of what the second accepts.
    if (u < 1 - 0.0331 * (x * x) * (x * x) ||
        std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) {
      return small ? d * v * std::pow(draws.Uniform(), 1 / alpha) : d * v;
    }
  }
}

double DrawPoisson(const Philox& stream, double rate, double highest) {
  PairedDraws draws(stream);
  if (rate < 10) return DrawSmallPoisson(draws, rate, highest);
  if (!std::isfinite(rate)) return rate;  // No rejection would ever end.
  return DrawLargePoisson(draws, rate, highest);
}

}  // namespace sluice
