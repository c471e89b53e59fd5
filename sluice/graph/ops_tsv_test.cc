// Every op we register has the definition it has in TensorFlow.
#include "sluice/graph/testing/ops_tsv.h"

#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_join.h"

namespace sluice {
namespace {

// Taken before main, so before any test registers ops of its own.
const std::vector<std::string>& RegisteredOps() {
  static const auto* names =
      new std::vector<std::string>(OpRegistry::Global().Names());
  return *names;
}
[[maybe_unused]] const auto& kRegisteredOps = RegisteredOps();

OpDef OnlyArgs(const OpDef& def) {
  OpDef args;
  args.inputs = def.inputs;
  args.outputs = def.outputs;
  return args;
}

std::set<std::string> AllowedValues(const AttrDef& attr) {
  std::set<std::string> values(attr.allowed.strings.begin(),
                               attr.allowed.strings.end());
  for (DType type : attr.allowed.types) values.insert(DTypeName(type));
  return values;
}

bool Includes(const std::set<std::string>& all,
              const std::set<std::string>& some) {
  return std::ranges::includes(all, some);
}

// All of 1.15's values, and what 2.x has besides is fine too. No values means
// any.
bool AllowedFit(const AttrDef& ours, const AttrDef& old, const AttrDef& newer) {
  const auto values = AllowedValues(ours);
  const auto least = AllowedValues(old);
  const auto most = AllowedValues(newer);
  if (values.empty()) return least.empty() || most.empty();
  return !least.empty() && Includes(values, least) &&
         (most.empty() || Includes(most, values));
}

void CompareAttr(const AttrDef& ours, const AttrDef& old, const AttrDef& newer,
                 std::vector<std::string>* differences) {
  const auto differ = [&](std::string_view what, const std::string& is,
                          const std::string& should_be) {
    differences->push_back(StrCat("attr ", ours.name, ": ", what, " is ", is,
                                  " but should be ", should_be));
  };
  const auto number = [](std::optional<int64_t> n) {
    return n ? StrCat(*n) : std::string("none");
  };
  const auto text = [](const std::optional<AttrValue>& v) {
    return v ? v->DebugString() : std::string("none");
  };
  if (ours.type != old.type) differ("type", ours.type, old.type);
  if (ours.minimum != old.minimum && ours.minimum != newer.minimum) {
    differ("minimum", number(ours.minimum), number(old.minimum));
  }
  if (ours.default_value != old.default_value &&
      ours.default_value != newer.default_value) {
    differ("default", text(ours.default_value), text(old.default_value));
  }
  if (!AllowedFit(ours, old, newer)) {
    differ("allowed", StrCat("{", absl::StrJoin(AllowedValues(ours), ","), "}"),
           StrCat("{", absl::StrJoin(AllowedValues(old), ","), "}"));
  }
}

std::vector<std::string> Differences(const OpDef& ours,
                                     const OpsTsvEntry& entry) {
  std::vector<std::string> differences;
  const OpDef& old = entry.def;
  const OpDef& newer = entry.newer;
  const OpDef args = OnlyArgs(ours);
  if (args != OnlyArgs(old) && args != OnlyArgs(newer)) {
    differences.push_back(StrCat("arguments: ", OpSummary(args),
                                 " but should be ", OpSummary(OnlyArgs(old))));
  }
  for (const AttrDef& attr : old.attrs) {
    const AttrDef* found = ours.FindAttr(attr.name);
    if (found == nullptr) {
      differences.push_back(StrCat("attr ", attr.name, " is missing"));
    } else {
      CompareAttr(*found, attr, *newer.FindAttr(attr.name), &differences);
    }
  }
  for (const AttrDef& attr : ours.attrs) {
    const AttrDef* added = newer.FindAttr(attr.name);
    if (added == nullptr) {
      differences.push_back(StrCat("attr ", attr.name, " should not be there"));
    } else if (old.FindAttr(attr.name) == nullptr) {
      CompareAttr(attr, *added, *added, &differences);
    }
  }
  const auto flag = [&](std::string_view name, bool is, bool should_be) {
    if (is != should_be) {
      differences.push_back(
          StrCat(name, " is ", is, " but should be ", should_be));
    }
  };
  flag("stateful", ours.stateful, old.stateful);
  flag("aggregate", ours.aggregate, old.aggregate);
  flag("commutative", ours.commutative, old.commutative);
  flag("uninit_ok", ours.allows_uninitialized_input,
       old.allows_uninitialized_input);
  return differences;
}

TEST(OpsTsv, EveryRegisteredOpIsDefinedAsInTensorFlow) {
  auto table = ParseOpsTsv();
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->size(), 1225u);
  for (const std::string& name : RegisteredOps()) {
    // Of tests, and our own that no TensorFlow sends.
    if (name.starts_with("Test") || name.starts_with("_Sluice")) continue;
    auto entry = table->find(name);
    if (entry == table->end()) {
      ADD_FAILURE() << name << " is not an op of TensorFlow";
      continue;
    }
    const auto differences =
        Differences(OpRegistry::Global().Find(name)->def, entry->second);
    EXPECT_TRUE(differences.empty())
        << name << ":\n  " << absl::StrJoin(differences, "\n  ");
  }
}

TEST(OpsTsv, TheComparisonSeesEveryKindOfDifference) {
  auto table = ParseOpsTsv();
  ASSERT_TRUE(table.ok()) << table.status();
  const OpsTsvEntry& entry = table->at("AddN");
  EXPECT_TRUE(Differences(entry.def, entry).empty());
  EXPECT_TRUE(Differences(entry.newer, entry).empty());
  OpDef changed = entry.def;
  changed.inputs[0].number_attr = "";
  EXPECT_EQ(Differences(changed, entry).size(), 1u);
  changed = entry.def;
  changed.attrs[0].minimum = 3;
  changed.attrs[1].allowed.types.pop_back();
  changed.attrs[1].default_value = DType::kFloat;
  changed.aggregate = false;
  EXPECT_EQ(Differences(changed, entry).size(), 4u);
  changed = entry.def;
  changed.attrs[0].name = "M";
  EXPECT_EQ(Differences(changed, entry).size(), 2u);
}

TEST(OpsTsv, AnOpMayBeDefinedAsInNewerReleases) {
  auto table = ParseOpsTsv();
  ASSERT_TRUE(table.ok()) << table.status();
  for (const auto& [name, entry] : *table) {
    EXPECT_EQ(Differences(entry.newer, entry), std::vector<std::string>())
        << name;
  }
  const OpDef& top_k = table->at("TopKV2").newer;
  EXPECT_EQ(top_k.inputs[1].type_attr, "Tk");
  EXPECT_EQ(*top_k.FindAttr("Tk")->default_value, AttrValue(DType::kInt32));
}

}  // namespace
}  // namespace sluice
