// Collections: the lists a graph keeps under well-known names, by which parts
// of a program find what others built: variables, summaries, savers, the global
// step. A meta graph carries them along (train/meta_graph.h).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sluice/client/graph_keys.h"
#include "sluice/client/variable.h"

namespace sluice {

// One member: a tensor, an op, a variable, or a serialized message (savers and
// queue runners are kept as these and made again by whoever needs them).
using CollectionItem = std::variant<Output, Node*, Variable, std::string>;

// Thread-compatible. Names without members do not exist.
class Collections {
 public:
  // Those of `graph`, which owns them.
  static Collections& Of(Graph& graph);

  // Appends.
  void Add(std::string_view key, CollectionItem item);
  void Clear(std::string_view key);

  // All members, in the order they came.
  const std::vector<CollectionItem>& Get(std::string_view key) const;
  const std::map<std::string, std::vector<CollectionItem>, std::less<>>& all()
      const {
    return items_;
  }

  // The members of one kind; others are left out.
  std::vector<Variable> variables(std::string_view key) const;
  std::vector<Output> outputs(std::string_view key) const;
  std::vector<Node*> nodes(std::string_view key) const;
  std::vector<std::string> messages(std::string_view key) const;

 private:
  std::map<std::string, std::vector<CollectionItem>, std::less<>> items_;
};

// Collections by name, for programs.
std::vector<Variable> GlobalVariables(Graph& graph);
std::vector<Variable> LocalVariables(Graph& graph);
std::vector<Variable> TrainableVariables(Graph& graph);

}  // namespace sluice
