// Text graphs written by TensorFlow's Python front end.

#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sluice/proto/graph.pb.h"

namespace sluice {
namespace {

TEST(GoldenGraph, EveryTextGraphParses) {
  int graphs = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("tests/golden/graphs")) {
    if (entry.path().extension() != ".pbtxt") continue;
    std::ifstream file(entry.path());
    google::protobuf::io::IstreamInputStream stream(&file);
    pb::GraphDef graph;
    EXPECT_TRUE(google::protobuf::TextFormat::Parse(&stream, &graph))
        << entry.path();
    EXPECT_GT(graph.node_size(), 0) << entry.path();
    // The producer number of the release that wrote them.
    EXPECT_EQ(graph.versions().producer(), 134) << entry.path();
    ++graphs;
  }
  EXPECT_EQ(graphs, 35);
}

}  // namespace
}  // namespace sluice
