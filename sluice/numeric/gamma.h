// The gamma function's relatives, and random numbers of the gamma and the
// Poisson distribution, drawn in the order TensorFlow draws them.
#pragma once

#include "sluice/numeric/philox.h"

namespace sluice {

namespace numeric {

// The logarithmic derivative of the gamma function. Infinite at its poles.
double Digamma(double x);

// How a number `sample` of the gamma distribution of shape `alpha` changes with
// `alpha` while its quantile stays: -(dP(alpha, sample)/dalpha) / density.
// Not a number unless both are positive; 0 for a sample of 0.
double GammaSampleDerivative(double alpha, double sample);

}  // namespace numeric

// A number of the gamma distribution of shape `alpha` and scale 1; takes what
// it needs from the start of `stream`.
double DrawGamma(const Philox& stream, double alpha);

// A number of the Poisson distribution, at most `highest`. A rate that is
// infinite or no number comes back as it is.
double DrawPoisson(const Philox& stream, double rate, double highest);

}  // namespace sluice
