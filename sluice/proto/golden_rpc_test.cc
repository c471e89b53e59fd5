// Messages recorded between real TensorFlow processes, held against our schema.
// list.txt names every file with its message type.

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sluice/proto/master.pb.h"
#include "sluice/proto/worker.pb.h"

namespace sluice {
namespace {

namespace proto = google::protobuf;

struct GoldenMessage {
  std::string file;
  std::string type;
  std::string bytes;
};

std::vector<GoldenMessage> ReadGoldenMessages() {
  std::vector<GoldenMessage> messages;
  std::ifstream list("tests/golden/rpc/list.txt");
  GoldenMessage message;
  while (list >> message.file >> message.type) {
    std::ifstream file("tests/golden/rpc/" + message.file, std::ios::binary);
    EXPECT_TRUE(file.is_open()) << message.file;
    message.bytes.assign(std::istreambuf_iterator<char>(file), {});
    messages.push_back(message);
  }
  return messages;
}

std::unique_ptr<proto::Message> NewMessage(const std::string& type) {
  const proto::Descriptor* descriptor =
      proto::DescriptorPool::generated_pool()->FindMessageTypeByName(
          "sluice.pb." + type);
  if (descriptor == nullptr) return nullptr;
  return std::unique_ptr<proto::Message>(
      proto::MessageFactory::generated_factory()
          ->GetPrototype(descriptor)
          ->New());
}

std::unique_ptr<proto::Message> Parse(const GoldenMessage& golden) {
  std::unique_ptr<proto::Message> message = NewMessage(golden.type);
  if (message == nullptr || !message->ParseFromString(golden.bytes)) {
    return nullptr;
  }
  return message;
}

std::string SerializeWithSortedMaps(const proto::Message& message) {
  std::string bytes;
  {
    proto::io::StringOutputStream stream(&bytes);
    proto::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

// What a walk over a message and all messages inside it came across.
struct Contents {
  bool unknown_fields = false;
  bool map_of_several = false;
};

void Look(const proto::Message& message, Contents& contents) {
  const proto::Reflection& reflection = *message.GetReflection();
  contents.unknown_fields |= !reflection.GetUnknownFields(message).empty();
  std::vector<const proto::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const proto::FieldDescriptor* field : fields) {
    if (field->is_map() && reflection.FieldSize(message, field) > 1) {
      contents.map_of_several = true;
    }
    if (field->cpp_type() != proto::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      Look(reflection.GetMessage(message, field), contents);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      Look(reflection.GetRepeatedMessage(message, field, i), contents);
    }
  }
}

std::string Sorted(std::string bytes) {
  std::sort(bytes.begin(), bytes.end());
  return bytes;
}

TEST(GoldenRpc, CoversTheMethodsOfBothReleases) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const GoldenMessage& golden : ReadGoldenMessages()) {
    seen.emplace(golden.file.substr(0, golden.file.find('/')), golden.type);
  }
  for (const char* release : {"tf1.15.5", "tf2.15.1"}) {
    for (const char* method :
         {"CreateSession", "ExtendSession", "PartialRunSetup", "RunStep",
          "CloseSession", "ListDevices", "Reset", "MakeCallable", "RunCallable",
          "ReleaseCallable", "GetStatus", "CreateWorkerSession",
          "DeleteWorkerSession", "RegisterGraph", "RunGraph", "CleanupGraph",
          "CleanupAll", "RecvTensor", "Logging"}) {
      for (const char* side : {"Request", "Response"}) {
        const std::string type = std::string(method) + side;
        EXPECT_TRUE(seen.contains({release, type})) << release << " " << type;
      }
    }
  }
}

TEST(GoldenRpc, NoFieldIsUnknown) {
  for (const GoldenMessage& golden : ReadGoldenMessages()) {
    const std::unique_ptr<proto::Message> message = Parse(golden);
    ASSERT_NE(message, nullptr) << golden.file << " is no " << golden.type;
    Contents contents;
    Look(*message, contents);
    EXPECT_FALSE(contents.unknown_fields) << golden.file << "\n"
                                          << message->DebugString();
  }
}

void ExpectSameMessage(const proto::Message& message,
                       const GoldenMessage& golden, const std::string& bytes) {
  const std::unique_ptr<proto::Message> again =
      Parse({golden.file, golden.type, bytes});
  ASSERT_NE(again, nullptr) << golden.file;
  EXPECT_TRUE(proto::util::MessageDifferencer::Equals(message, *again))
      << golden.file;
}

// Two kinds of message cannot come out byte for byte. TensorFlow writes the
// entries of a map in the order of its hash table: then the same bytes come in
// another order. And it builds RecvTensorResponse by hand, tensor last and with
// fields that hold their default: then only the contents are the same.
TEST(GoldenRpc, MessagesEncodeToTheBytesTheyCameFrom) {
  for (const GoldenMessage& golden : ReadGoldenMessages()) {
    const std::unique_ptr<proto::Message> message = Parse(golden);
    ASSERT_NE(message, nullptr) << golden.file << " is no " << golden.type;
    const std::string bytes = SerializeWithSortedMaps(*message);
    if (bytes == golden.bytes) continue;
    ExpectSameMessage(*message, golden, bytes);
    if (golden.type == "RecvTensorResponse") continue;
    Contents contents;
    Look(*message, contents);
    EXPECT_TRUE(contents.map_of_several) << golden.file;
    EXPECT_EQ(Sorted(bytes), Sorted(golden.bytes)) << golden.file;
  }
}

// Number 4 is easily mistaken for a typing error.
TEST(GoldenRpc, ExtendSessionAnswersInFieldFour) {
  pb::ExtendSessionResponse response;
  response.set_new_graph_version(1);
  EXPECT_EQ(response.SerializeAsString(), "\x20\x01");
}

}  // namespace
}  // namespace sluice
