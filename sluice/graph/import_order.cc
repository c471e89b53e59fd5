#include "sluice/graph/import_order.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

namespace sluice {
namespace {

bool InOrderAlready(const ImportEdges& edges) {
  for (int node = 0; node < edges.size(); ++node) {
    for (int source : edges.SourcesOf(node)) {
      if (source >= node) return false;
    }
  }
  return true;
}

// The users of each node, in the same form as ImportEdges.
struct Users {
  std::vector<int> begin, users;

  explicit Users(const ImportEdges& edges)
      : begin(edges.size() + 1), users(edges.sources.size()) {
    for (int source : edges.sources) {
      if (source >= 0) ++begin[source + 1];
    }
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<int> next(begin.begin(), begin.end());
    for (int node = 0; node < edges.size(); ++node) {
      for (int source : edges.SourcesOf(node)) {
        if (source >= 0) users[next[source]++] = node;
      }
    }
  }
};

// Every node with pending sources has one that is pending too, so going back
// far enough meets a node again.
std::vector<int> FindCycle(const ImportEdges& edges,
                           const std::vector<int>& pending) {
  int node = 0;
  while (pending[node] == 0) ++node;
  std::vector<bool> seen(edges.size());
  std::vector<int> path;
  while (!seen[node]) {
    seen[node] = true;
    path.push_back(node);
    for (int source : edges.SourcesOf(node)) {
      if (source >= 0 && pending[source] > 0) {
        node = source;
        break;
      }
    }
  }
  path.erase(path.begin(), std::ranges::find(path, node));
  std::ranges::reverse(path);  // Now in the direction of the edges.
  return path;
}

}  // namespace

std::vector<int> ImportOrder(const ImportEdges& edges,
                             std::vector<int>* cycle) {
  std::vector<int> order;
  order.reserve(edges.size());
  if (InOrderAlready(edges)) {
    order.resize(edges.size());
    std::iota(order.begin(), order.end(), 0);
    return order;
  }
  const Users users(edges);
  std::vector<int> pending(edges.size());
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int node = 0; node < edges.size(); ++node) {
    for (int source : edges.SourcesOf(node)) pending[node] += source >= 0;
    if (pending[node] == 0) ready.push(node);
  }
  while (!ready.empty()) {
    const int node = ready.top();
    ready.pop();
    order.push_back(node);
    for (int i = users.begin[node]; i < users.begin[node + 1]; ++i) {
      if (--pending[users.users[i]] == 0) ready.push(users.users[i]);
    }
  }
  if (static_cast<int>(order.size()) < edges.size()) {
    *cycle = FindCycle(edges, pending);
  }
  return order;
}

}  // namespace sluice
