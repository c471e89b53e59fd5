#include "sluice/numeric/update_rules.h"

#include <algorithm>
#include <cmath>

#include "sluice/numeric/simd.h"

namespace sluice::numeric {
namespace {

template <typename T>
T Sign(T x) {
  return x > 0 ? T(1) : x < 0 ? T(-1) : T(0);
}

// The value at which l1 and l2 are balanced with a step that led to `x`.
template <typename T>
T Shrunk(T x, T rate, T l1, T l2) {
  if (l1 > 0) x = Sign(x) * std::max(std::abs(x) - rate * l1, T(0));
  return x / (T(1) + l2 * rate);
}

// Runs one step per element: body(i).
template <typename Body>
void ForEach(int64_t n, Body body) {
  Wide(n, [=] {
    SLUICE_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) body(i);
  });
}

}  // namespace

template <typename T>
void GradientDescentRule<T>::Apply(T* const* at, const T* grad,
                                   int64_t n) const {
  T* var = at[0];
  ForEach(n, [=, r = *this](int64_t i) { var[i] -= r.rate * grad[i]; });
}

template <typename T>
void MomentumRule<T>::Apply(T* const* at, const T* grad, int64_t n) const {
  T* var = at[0];
  T* accum = at[1];
  if (nesterov) {
    ForEach(n, [=, r = *this](int64_t i) {
      accum[i] = accum[i] * r.momentum + grad[i];
      var[i] -= grad[i] * r.rate + accum[i] * r.momentum * r.rate;
    });
  } else {
    ForEach(n, [=, r = *this](int64_t i) {
      accum[i] = accum[i] * r.momentum + grad[i];
      var[i] -= accum[i] * r.rate;
    });
  }
}

template <typename T>
void KerasMomentumRule<T>::Apply(T* const* at, const T* grad, int64_t n) const {
  T* var = at[0];
  T* accum = at[1];
  ForEach(n, [=, r = *this](int64_t i) {
    accum[i] = accum[i] * r.momentum - grad[i] * r.rate;
    var[i] += r.nesterov ? accum[i] * r.momentum - grad[i] * r.rate : accum[i];
  });
}

template <typename T>
void AdagradRule<T>::Apply(T* const* at, const T* grad, int64_t n) const {
  T* var = at[0];
  T* accum = at[1];
  ForEach(n, [=, r = *this](int64_t i) {
    const T a = r.update_slots ? accum[i] + grad[i] * grad[i] : accum[i];
    accum[i] = a;
    var[i] -= grad[i] * r.rate / std::sqrt(a);
  });
}

template <typename T>
void AdagradV2Rule<T>::Apply(T* const* at, const T* grad, int64_t n) const {
  T* var = at[0];
  T* accum = at[1];
  ForEach(n, [=, r = *this](int64_t i) {
    const T a = r.update_slots ? accum[i] + grad[i] * grad[i] : accum[i];
    accum[i] = a;
    var[i] -= grad[i] * r.rate / (std::sqrt(a) + r.epsilon);
  });
}

template <typename T>
void AdagradDaRule<T>::Apply(T* const* at, const T* grad, int64_t n) const {
  T* var = at[0];
  T* sum = at[1];
  T* squares = at[2];
  ForEach(n, [=, r = *this](int64_t i) {
    sum[i] += grad[i];
    squares[i] += grad[i] * grad[i];
    const T top =
        r.l1 > 0
            ? Sign(sum[i]) * std::max(std::abs(sum[i]) - r.step * r.l1, T(0))
            : sum[i];
    var[i] = -r.rate * top / (r.l2 * r.step * r.rate + std::sqrt(squares[i]));
  });
}

template <typename T>
void AdadeltaRule<T>::Apply(T* const* at, const T* grad, int64_t n) const {
  T* var = at[0];
  T* accum = at[1];
  T* updates = at[2];
  ForEach(n, [=, r = *this](int64_t i) {
    accum[i] = accum[i] * r.rho + grad[i] * grad[i] * (T(1) - r.rho);
    const T update = std::sqrt(updates[i] + r.epsilon) /
                     std::sqrt(accum[i] + r.epsilon) * grad[i];
    var[i] -= update * r.rate;
    updates[i] = updates[i] * r.rho + update * update * (T(1) - r.rho);
  });
}

template <typename T>
void AdamRule<T>::Apply(T* const* at, const T* grad, int64_t n) const {
  T* var = at[0];
  T* m = at[1];
  T* v = at[2];
  ForEach(n, [=, r = *this](int64_t i) {
    const T g = grad[i];
    m[i] += (g - m[i]) * (T(1) - r.beta1);
    v[i] += (g * g - v[i]) * (T(1) - r.beta2);
    const T top = r.nesterov ? g * (T(1) - r.beta1) + r.beta1 * m[i] : m[i];
    var[i] -= top * r.rate / (std::sqrt(v[i]) + r.epsilon);
  });
}

template <typename T>
void AmsgradRule<T>::Apply(T* const* at, const T* grad, int64_t n) const {
  T* var = at[0];
  T* m = at[1];
  T* v = at[2];
  T* largest = at[3];
  ForEach(n, [=, r = *this](int64_t i) {
    const T g = grad[i];
    m[i] += (g - m[i]) * (T(1) - r.beta1);
    v[i] += (g * g - v[i]) * (T(1) - r.beta2);
    largest[i] = std::max(largest[i], v[i]);
    var[i] -= m[i] * r.rate / (std::sqrt(largest[i]) + r.epsilon);
  });
}

template <typename T>
void AdaMaxRule<T>::Apply(T* const* at, const T* grad, int64_t n) const {
  T* var = at[0];
  T* m = at[1];
  T* v = at[2];
  ForEach(n, [=, r = *this](int64_t i) {
    m[i] += (grad[i] - m[i]) * (T(1) - r.beta1);
    v[i] = std::max(r.beta2 * v[i], std::abs(grad[i]));
    var[i] -= r.rate * (m[i] / (v[i] + r.epsilon));
  });
}

template <typename T>
void RmsPropRule<T>::Apply(T* const* at, const T* grad, int64_t n) const {
  T* var = at[0];
  T* ms = at[1];
  T* mom = at[2];
  ForEach(n, [=, r = *this](int64_t i) {
    const T square = grad[i] * grad[i];
    ms[i] = r.sparse ? ms[i] * r.rho + square * (T(1) - r.rho)
                     : ms[i] + (square - ms[i]) * (T(1) - r.rho);
    mom[i] =
        mom[i] * r.momentum + grad[i] * r.rate / std::sqrt(ms[i] + r.epsilon);
    var[i] -= mom[i];
  });
}

template <typename T>
void CenteredRmsPropRule<T>::Apply(T* const* at, const T* grad,
                                   int64_t n) const {
  T* var = at[0];
  T* mg = at[1];
  T* ms = at[2];
  T* mom = at[3];
  ForEach(n, [=, r = *this](int64_t i) {
    const T square = grad[i] * grad[i];
    ms[i] = r.sparse ? ms[i] * r.rho + square * (T(1) - r.rho)
                     : ms[i] + (square - ms[i]) * (T(1) - r.rho);
    mg[i] = r.sparse ? mg[i] * r.rho + grad[i] * (T(1) - r.rho)
                     : mg[i] + (grad[i] - mg[i]) * (T(1) - r.rho);
    mom[i] = mom[i] * r.momentum +
             grad[i] * r.rate / std::sqrt(ms[i] - mg[i] * mg[i] + r.epsilon);
    var[i] -= mom[i];
  });
}

namespace {

template <typename T, typename Power>
void ApplyFtrl(const FtrlRule<T>& r, T* const* at, const T* grad, int64_t n,
               Power power) {
  T* var = at[0];
  T* accum = at[1];
  T* linear = at[2];
  ForEach(n, [=](int64_t i) {
    const T shrunk = grad[i] + T(2) * r.l2_shrinkage * var[i];
    const T next = accum[i] + grad[i] * grad[i];
    const T next_power = power(next);
    linear[i] += shrunk - (next_power - power(accum[i])) / r.rate * var[i];
    const T l = linear[i];
    var[i] = std::abs(l) > r.l1
                 ? (Sign(l) * r.l1 - l) / (next_power / r.rate + T(2) * r.l2)
                 : T(0);
    accum[i] = next;
  });
}

}  // namespace

template <typename T>
void FtrlRule<T>::Apply(T* const* at, const T* grad, int64_t n) const {
  if (rate_power == T(-0.5)) {
    ApplyFtrl(*this, at, grad, n, [](T x) { return std::sqrt(x); });
  } else {
    ApplyFtrl(*this, at, grad, n,
              [q = -rate_power](T x) { return std::pow(x, q); });
  }
}

template <typename T>
void ProximalGradientDescentRule<T>::Apply(T* const* at, const T* grad,
                                           int64_t n) const {
  T* var = at[0];
  ForEach(n, [=, r = *this](int64_t i) {
    var[i] = Shrunk(var[i] - r.rate * grad[i], r.rate, r.l1, r.l2);
  });
}

template <typename T>
void ProximalAdagradRule<T>::Apply(T* const* at, const T* grad,
                                   int64_t n) const {
  T* var = at[0];
  T* accum = at[1];
  ForEach(n, [=, r = *this](int64_t i) {
    accum[i] += grad[i] * grad[i];
    const T rate = r.rate / std::sqrt(accum[i]);
    var[i] = Shrunk(var[i] - rate * grad[i], rate, r.l1, r.l2);
  });
}

template <typename T>
void AddSignRule<T>::Apply(T* const* at, const T* grad, int64_t n) const {
  T* var = at[0];
  T* m = at[1];
  ForEach(n, [=, r = *this](int64_t i) {
    m[i] = m[i] * r.beta + grad[i] * (T(1) - r.beta);
    const T agree = Sign(grad[i]) * Sign(m[i]);
    var[i] -= r.rate * (r.alpha + r.sign_decay * agree) * grad[i];
  });
}

template <typename T>
void PowerSignRule<T>::Apply(T* const* at, const T* grad, int64_t n) const {
  T* var = at[0];
  T* m = at[1];
  // The exponent takes three values only.
  const T agree = std::exp(log_base * sign_decay);
  const T differ = std::exp(-log_base * sign_decay);
  ForEach(n, [=, r = *this](int64_t i) {
    m[i] = m[i] * r.beta + grad[i] * (T(1) - r.beta);
    const T sign = Sign(grad[i]) * Sign(m[i]);
    const T scale = sign > 0 ? agree : sign < 0 ? differ : T(1);
    var[i] -= r.rate * scale * grad[i];
  });
}

#define SLUICE_INSTANTIATE_RULES(T)               \
  template struct GradientDescentRule<T>;         \
  template struct MomentumRule<T>;                \
  template struct KerasMomentumRule<T>;           \
  template struct AdagradRule<T>;                 \
  template struct AdagradV2Rule<T>;               \
  template struct AdagradDaRule<T>;               \
  template struct AdadeltaRule<T>;                \
  template struct AdamRule<T>;                    \
  template struct AmsgradRule<T>;                 \
  template struct AdaMaxRule<T>;                  \
  template struct RmsPropRule<T>;                 \
  template struct CenteredRmsPropRule<T>;         \
  template struct FtrlRule<T>;                    \
  template struct ProximalGradientDescentRule<T>; \
  template struct ProximalAdagradRule<T>;         \
  template struct AddSignRule<T>;                 \
  template struct PowerSignRule<T>
SLUICE_INSTANTIATE_RULES(float);
SLUICE_INSTANTIATE_RULES(double);
#undef SLUICE_INSTANTIATE_RULES

}  // namespace sluice::numeric
