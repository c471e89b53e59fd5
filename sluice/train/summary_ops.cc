#include "sluice/train/summary_ops.h"

#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/client/collections.h"

namespace sluice {
namespace {

std::string CleanTag(std::string_view name) {
  std::string clean;
  for (const char c : name) {
    const bool allowed = isalnum(static_cast<unsigned char>(c)) || c == '_' ||
                         c == '-' || c == '/' || c == '.';
    clean += allowed ? c : '_';
  }
  clean.erase(0, clean.find_first_not_of('/'));
  if (clean != name) {
    SLUICE_LOG(INFO) << "Summary name " << name << " is illegal; using "
                     << clean << " instead.";
  }
  return clean;
}

// The scope of a summary, and its tag.
struct Tagged {
  Scope scope;
  std::string tag;

  // Adds the op with the name of the scope, and collects it.
  Output Add(std::string_view op, const std::vector<Output>& inputs,
             AttrMap attrs, const SummaryOptions& options) const {
    const Output summary = scope.Named(scope.context().name_scope)
                               .Add(op, inputs, std::move(attrs));
    if (!summary) return summary;
    for (const std::string& key : options.collections) {
      Collections::Of(scope.graph()).Add(key, summary);
    }
    return summary;
  }
  Output TagInput(std::string_view name) const {
    return scope.Named(name).Scalar<std::string>(tag);
  }
};

Tagged Enter(const Scope& outer, std::string_view name,
             const SummaryOptions& options) {
  const std::string family = CleanTag(options.family);
  std::string inner = CleanTag(name);
  if (!family.empty()) inner = StrCat(family, "/", inner);
  Tagged tagged{outer.NameScope(inner), ""};
  const std::string& inside = tagged.scope.context().name_scope;
  tagged.tag = inside.substr(0, inside.empty() ? 0 : inside.size() - 1);
  if (!family.empty()) tagged.tag = StrCat(family, "/", tagged.tag);
  return tagged;
}

}  // namespace

Output AddScalarSummary(const Scope& scope, std::string_view name, Output value,
                        const SummaryOptions& options) {
  const Tagged to = Enter(scope, name, options);
  return to.Add("ScalarSummary", {to.TagInput("tags"), value}, {}, options);
}

Output AddHistogramSummary(const Scope& scope, std::string_view name,
                           Output values, const SummaryOptions& options,
                           bool skip_nonfinite) {
  const Tagged to =
      Enter(scope, name.empty() ? "HistogramSummary" : name, options);
  const Output summary =
      to.Add("HistogramSummary", {to.TagInput("tag"), values}, {}, options);
  if (summary && skip_nonfinite) {
    summary.node->set_attr("_skip_nonfinite", true);
  }
  return summary;
}

Output AddImageSummary(const Scope& scope, std::string_view name, Output images,
                       int64_t max_outputs, const SummaryOptions& options) {
  const Tagged to = Enter(scope, name, options);
  return to.Add("ImageSummary", {to.TagInput("tag"), images},
                {{"max_images", max_outputs}}, options);
}

Output AddAudioSummary(const Scope& scope, std::string_view name, Output sounds,
                       float sample_rate, int64_t max_outputs,
                       const SummaryOptions& options) {
  const Tagged to = Enter(scope, name, options);
  const Output rate = to.scope.Named("sample_rate").Scalar(sample_rate);
  return to.Add("AudioSummaryV2", {to.TagInput("tag"), sounds, rate},
                {{"max_outputs", max_outputs}}, options);
}

Output AddTextSummary(const Scope& scope, std::string_view name, Output text,
                      const SummaryOptions& options) {
  if (text && BaseType(TypeOf(text)) != DType::kString) {
    scope.Fail(InvalidArgument("Expected tensor ", TensorName(text),
                               " to have dtype string, got ",
                               DTypeName(TypeOf(text))));
    return Output();
  }
  pb::SummaryMetadata metadata;
  metadata.mutable_plugin_data()->set_plugin_name("text");
  return AddTensorSummary(scope, name, text, metadata, options);
}

Output AddTensorSummary(const Scope& scope, std::string_view name, Output value,
                        const pb::SummaryMetadata& metadata,
                        const SummaryOptions& options) {
  const Tagged to = Enter(scope, name, options);
  const Output tag = to.TagInput("tag");
  const Output bytes = to.scope.Named("serialized_summary_metadata")
                           .Scalar<std::string>(metadata.SerializeAsString());
  return to.Add("TensorSummaryV2", {tag, value, bytes}, {}, options);
}

Output MergeSummaries(const Scope& outer,
                      const std::vector<Output>& summaries) {
  const Scope scope = outer.NameScope("Merge");
  return scope.Named("MergeSummary")
      .Add("MergeSummary", summaries,
           {{"N", static_cast<int64_t>(summaries.size())}});
}

Output MergeAllSummaries(const Scope& scope) {
  return MergeSummariesOf(scope, keys::kSummaries);
}

Output MergeSummariesOf(const Scope& scope, std::string_view key) {
  const std::vector<Output> all =
      Collections::Of(scope.graph()).outputs(std::string(key));
  return all.empty() ? Output() : MergeSummaries(scope, all);
}

}  // namespace sluice
