#include "sluice/client/collections.h"

#include "sluice/client/variable.h"

namespace sluice {
namespace {

template <typename T>
std::vector<T> Kind(const std::vector<CollectionItem>& items) {
  std::vector<T> result;
  for (const CollectionItem& item : items) {
    if (const T* value = std::get_if<T>(&item)) result.push_back(*value);
  }
  return result;
}

}  // namespace

Collections& Collections::Of(Graph& graph) {
  return graph.Attached<Collections>();
}

void Collections::Add(std::string_view key, CollectionItem item) {
  items_[std::string(key)].push_back(std::move(item));
}

void Collections::Clear(std::string_view key) {
  if (auto it = items_.find(key); it != items_.end()) items_.erase(it);
}

const std::vector<CollectionItem>& Collections::Get(
    std::string_view key) const {
  static const auto* none = new std::vector<CollectionItem>;
  auto it = items_.find(key);
  return it == items_.end() ? *none : it->second;
}

std::vector<Variable> Collections::variables(std::string_view key) const {
  return Kind<Variable>(Get(key));
}
std::vector<Output> Collections::outputs(std::string_view key) const {
  return Kind<Output>(Get(key));
}
std::vector<Node*> Collections::nodes(std::string_view key) const {
  return Kind<Node*>(Get(key));
}
std::vector<std::string> Collections::messages(std::string_view key) const {
  return Kind<std::string>(Get(key));
}

std::vector<Variable> GlobalVariables(Graph& graph) {
  return Collections::Of(graph).variables(keys::kGlobalVariables);
}
std::vector<Variable> LocalVariables(Graph& graph) {
  return Collections::Of(graph).variables(keys::kLocalVariables);
}
std::vector<Variable> TrainableVariables(Graph& graph) {
  return Collections::Of(graph).variables(keys::kTrainableVariables);
}

}  // namespace sluice
