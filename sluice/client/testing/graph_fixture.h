// A graph, its root scope and a local session that runs it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "sluice/graph/scope.h"
#include "sluice/session/session.h"

namespace sluice {

class GraphFixture : public testing::Test {
 protected:
  absl::StatusOr<Tensor> Eval(Output y,
                              const std::vector<Session::Feed>& feeds = {}) {
    if (session_ == nullptr) session_ = *Session::Create({}, graph_);
    return session_->Eval(y, feeds);
  }
  // The elements of y; none and a failure if it cannot be had.
  template <typename T>
  std::vector<T> Values(Output y,
                        const std::vector<Session::Feed>& feeds = {}) {
    const absl::StatusOr<Tensor> value = Eval(y, feeds);
    EXPECT_TRUE(value.ok()) << value.status();
    if (!value.ok()) return {};
    EXPECT_EQ(value->dtype(), DTypeOf<T>::value);
    if (value->dtype() != DTypeOf<T>::value) return {};
    return {value->data<T>().begin(), value->data<T>().end()};
  }
  template <typename T>
  T Scalar(Output y, const std::vector<Session::Feed>& feeds = {}) {
    const std::vector<T> values = Values<T>(y, feeds);
    EXPECT_EQ(values.size(), 1);
    return values.size() == 1 ? values[0] : T();
  }

  Graph graph_;
  Scope root_{graph_};
  std::unique_ptr<Session> session_;
};

}  // namespace sluice
