#include "sluice/ops/io/reader.h"

#include "sluice/base/file.h"
#include "sluice/base/testing/temp_dir.h"
#include "sluice/io/record_file.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/state/testing/op_session.h"

namespace sluice {
namespace {
namespace reader_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

// A reader, a queue of names and the ops on them.
class ReaderFixture {
 public:
  explicit ReaderFixture(const std::string& kind, const AttrMap& attrs = {},
                         bool v2 = true)
      : device_(MakeTestDevice()), session_(*device_), v2_(v2 ? "V2" : "") {
    reader_ = session_.Add(kind + v2_, {}, attrs, "reader");
    queue_ = session_.Add(
        "FIFOQueue" + v2_, {},
        {{"component_types", std::vector<DType>{DType::kString}},
         {"shapes", std::vector<PartialShape>{PartialShape::Scalar()}},
         {"shared_name", "files"}},
        "queue");
  }

  const TempDir& dir() const { return dir_; }
  OpSession& session() { return session_; }

  // Writes a file and puts its name in the queue.
  std::string AddFile(const std::string& name, const std::string& contents) {
    const std::string path = dir_ / name;
    SLUICE_EXPECT_OK(RealFileSystem().WriteFile(path, contents));
    AddName(path);
    return path;
  }
  void AddName(const std::string& name) {
    SLUICE_EXPECT_OK(session_.Run(session_.Add(
        "QueueEnqueue" + v2_,
        {queue_->output(0), session_.Value(Tensor::Scalar(name))})));
  }
  void CloseQueue() {
    SLUICE_EXPECT_OK(
        session_.Run(session_.Add("QueueClose" + v2_, {queue_->output(0)})));
  }

  std::shared_ptr<OpRun> Read() {
    return session_.Start(session_.Add(
        "ReaderRead" + v2_, {reader_->output(0), queue_->output(0)}));
  }
  std::shared_ptr<OpRun> ReadUpTo(int64_t n) {
    return session_.Start(session_.Add(
        "ReaderReadUpTo" + v2_, {reader_->output(0), queue_->output(0),
                                 session_.Value(Tensor::Scalar<int64_t>(n))}));
  }
  // "key=value" of the next record, or the error's message.
  std::string Next() {
    auto run = Read();
    const absl::Status status = run->Wait();
    if (!status.ok()) return std::string(status.message());
    return run->output(0).scalar<std::string>() + "=" +
           run->output(1).scalar<std::string>();
  }
  Tensor Ask(const std::string& op) {
    return session_.Output0(session_.Add(op + v2_, {reader_->output(0)}));
  }
  absl::Status Do(const std::string& op) {
    return session_.Run(session_.Add(op + v2_, {reader_->output(0)}));
  }
  absl::Status Restore(const std::string& state) {
    return session_.Run(session_.Add(
        "ReaderRestoreState" + v2_,
        {reader_->output(0), session_.Value(Tensor::Scalar(state))}));
  }

 private:
  TempDir dir_;
  std::unique_ptr<Device> device_;
  OpSession session_;
  const std::string v2_;
  Node* reader_;
  Node* queue_;
};

std::vector<std::string> Strings(const Tensor& tensor) {
  const auto data = tensor.data<std::string>();
  return {data.begin(), data.end()};
}

TEST(TextLineReader, GivesLinesAndSaysWhereTheyWere) {
  for (const bool v2 : {false, true}) {
    ReaderFixture r("TextLineReader", {}, v2);
    const std::string a = r.AddFile("a", "one\r\n\nthree");
    const std::string b = r.AddFile("b", "");
    const std::string c = r.AddFile("c", "x\n");
    r.CloseQueue();
    EXPECT_EQ(r.Next(), a + ":1=one");
    EXPECT_EQ(r.Next(), a + ":2=");
    EXPECT_EQ(r.Next(), a + ":3=three");
    EXPECT_EQ(r.Next(), c + ":1=x");
    EXPECT_THAT(r.Next(), HasSubstr("is closed and has insufficient elements "
                                    "(requested 1, current size 0)"));
    EXPECT_EQ(r.Ask("ReaderNumRecordsProduced").scalar<int64_t>(), 4);
    EXPECT_EQ(r.Ask("ReaderNumWorkUnitsCompleted").scalar<int64_t>(), 3);
    SLUICE_ASSERT_OK(r.Do("ReaderReset"));
    EXPECT_EQ(r.Ask("ReaderNumRecordsProduced").scalar<int64_t>(), 0);
  }
}

TEST(TextLineReader, SkipsHeadersOfEveryFile) {
  ReaderFixture r("TextLineReader", {{"skip_header_lines", int64_t{2}}});
  const std::string a = r.AddFile("a", "h1\nh2\nA\n");
  r.AddFile("short", "h1\n");
  const std::string b = r.AddFile("b", "h1\nh2\nB");
  EXPECT_EQ(r.Next(), a + ":3=A");
  EXPECT_EQ(r.Next(), b + ":3=B");
  ReaderFixture bad("TextLineReader", {{"skip_header_lines", int64_t{-1}}});
  EXPECT_EQ(bad.Next(), "skip_header_lines must be >= 0 not -1");
}

TEST(TextLineReader, ReadsLinesLongerThanWhatItReadsAtOnce) {
  ReaderFixture r("TextLineReader");
  const std::string line(700000, 'x');
  const std::string path = r.AddFile("a", line + "\n" + line);
  EXPECT_EQ(r.Next(), path + ":1=" + line);
  EXPECT_EQ(r.Next(), path + ":2=" + line);
}

TEST(Readers, GiveUpToSoManyRecordsOfOneFile) {
  ReaderFixture r("TextLineReader");
  const std::string a = r.AddFile("a", "1\n2\n3\n");
  r.AddFile("b", "4\n");
  auto first = r.ReadUpTo(2);
  SLUICE_ASSERT_OK(first->Wait());
  EXPECT_THAT(Strings(first->output(0)), ElementsAre(a + ":1", a + ":2"));
  EXPECT_THAT(Strings(first->output(1)), ElementsAre("1", "2"));
  auto rest = r.ReadUpTo(10);
  SLUICE_ASSERT_OK(rest->Wait());
  EXPECT_THAT(Strings(rest->output(1)), ElementsAre("3"));
  auto next = r.ReadUpTo(10);
  SLUICE_ASSERT_OK(next->Wait());
  EXPECT_THAT(Strings(next->output(1)), ElementsAre("4"));
  auto none = r.ReadUpTo(0);
  SLUICE_ASSERT_OK(none->Wait());
  EXPECT_EQ(none->output(0).shape(), Shape({0}));
  EXPECT_THAT(r.ReadUpTo(-1)->Wait(),
              StatusIs(Code::kInvalidArgument, HasSubstr("must be >= 0")));
}

TEST(Readers, WaitForANameAndCanBeCancelledMeanwhile) {
  ReaderFixture r("WholeFileReader");
  auto waiting = r.Read();
  auto behind = r.Read();  // Waits for the first one.
  EXPECT_FALSE(waiting->finished());
  behind->cancellation().Cancel(absl::CancelledError("enough"));
  EXPECT_EQ(behind->Wait().code(), Code::kCancelled);
  const std::string a = r.AddFile("a", "contents");
  SLUICE_ASSERT_OK(waiting->Wait());
  EXPECT_EQ(waiting->output(0).scalar<std::string>(), a);
  EXPECT_EQ(waiting->output(1).scalar<std::string>(), "contents");
  auto last = r.Read();
  last->cancellation().Cancel(absl::CancelledError("enough"));
  EXPECT_EQ(last->Wait().code(), Code::kCancelled);
}

TEST(Readers, NameAFileThatIsMissingAndGoOnWithTheNext) {
  ReaderFixture r("TFRecordReader");
  r.AddName("/nonexistent/file");
  EXPECT_EQ(r.Next(), "/nonexistent/file; No such file or directory");
  const std::string path = r.dir() / "ok";
  auto writer = RecordWriter::Open(RealFileSystem(), path);
  ASSERT_TRUE(writer.ok());
  SLUICE_ASSERT_OK((*writer)->Write("first"));
  SLUICE_ASSERT_OK((*writer)->Write("second"));
  SLUICE_ASSERT_OK((*writer)->Close());
  r.AddName(path);
  EXPECT_EQ(r.Next(), path + ":0=first");
  EXPECT_EQ(r.Next(), path + ":21=second");
}

TEST(TfRecordReader, ReadsPackedFilesOfTensorFlow) {
  for (const char* packing : {"", "GZIP", "ZLIB"}) {
    ReaderFixture r("TFRecordReader", {{"compression_type", packing}});
    r.AddName(StrCat("tests/golden/events/",
                     *packing == 0     ? "plain"
                     : *packing == 'G' ? "gzip"
                                       : "zlib",
                     ".tfrecord"));
    EXPECT_THAT(r.Next(), HasSubstr(".tfrecord:0=hello"));
    EXPECT_THAT(r.Next(), HasSubstr(".tfrecord:21="));
  }
  ReaderFixture bad("TFRecordReader", {{"compression_type", "LZMA"}});
  EXPECT_THAT(bad.Next(), HasSubstr("LZMA"));
}

TEST(TfRecordReader, SaysWhereAFileIsCorrupt) {
  ReaderFixture r("TFRecordReader");
  r.AddFile("bad", "0123456789abcdefgh");
  EXPECT_THAT(r.Next(), HasSubstr("corrupted record at 0"));
}

TEST(FixedLengthRecordReader, CutsBetweenHeaderAndFooter) {
  ReaderFixture r("FixedLengthRecordReader", {{"header_bytes", int64_t{2}},
                                              {"record_bytes", int64_t{3}},
                                              {"footer_bytes", int64_t{1}}});
  const std::string a = r.AddFile("a", "HHabcdefF");
  const std::string b = r.AddFile("b", "HHabcdeF");  // The rest is no record.
  r.AddFile("c", "H");
  r.CloseQueue();
  EXPECT_EQ(r.Next(), a + ":0=abc");
  EXPECT_EQ(r.Next(), a + ":1=def");
  EXPECT_EQ(r.Next(), b + ":0=abc");
  EXPECT_THAT(r.Next(), HasSubstr("is closed"));
}

TEST(FixedLengthRecordReader, HopsAndReadsPackedFiles) {
  ReaderFixture r("FixedLengthRecordReader",
                  {{"record_bytes", int64_t{3}}, {"hop_bytes", int64_t{2}}});
  const std::string a = r.AddFile("a", "abcdef");
  EXPECT_EQ(r.Next(), a + ":0=abc");
  EXPECT_EQ(r.Next(), a + ":1=cde");
  ReaderFixture packed("FixedLengthRecordReader",
                       {{"record_bytes", int64_t{2}}, {"encoding", "GZIP"}});
  const std::string path = packed.dir() / "packed";
  auto file = RealFileSystem().NewWritable(path);
  ASSERT_TRUE(file.ok());
  auto writer = NewDeflatingFile(*std::move(file), Compression::kGzip);
  SLUICE_ASSERT_OK(writer->Append("wxyz"));
  SLUICE_ASSERT_OK(writer->Close());
  packed.AddName(path);
  EXPECT_EQ(packed.Next(), path + ":0=wx");
  EXPECT_EQ(packed.Next(), path + ":1=yz");
  ReaderFixture bad("FixedLengthRecordReader", {{"record_bytes", int64_t{-3}}});
  EXPECT_EQ(bad.Next(), "record_bytes must be >= 0 not -3");
}

TEST(IdentityReader, GivesNamesAndKeepsItsState) {
  ReaderFixture r("IdentityReader");
  r.AddName("a");
  r.AddName("b");
  EXPECT_EQ(r.Next(), "a=a");
  const std::string state = r.Ask("ReaderSerializeState").scalar<std::string>();
  EXPECT_EQ(r.Next(), "b=b");
  SLUICE_ASSERT_OK(r.Restore(state));
  EXPECT_EQ(r.Ask("ReaderNumRecordsProduced").scalar<int64_t>(), 1);
  EXPECT_THAT(r.Restore("\xff"), StatusIs(Code::kInvalidArgument,
                                          HasSubstr("Could not parse state")));
  // work_started 1, work_finished 5.
  EXPECT_THAT(r.Restore("\x08\x01\x10\x05"),
              StatusIs(Code::kInvalidArgument, HasSubstr("Inconsistent work")));
}

TEST(Readers, WithoutStateSaySo) {
  ReaderFixture r("TextLineReader");
  EXPECT_THAT(r.Do("ReaderSerializeState"),
              StatusIs(Code::kUnimplemented, "Reader SerializeState"));
  EXPECT_THAT(r.Restore(""),
              StatusIs(Code::kUnimplemented, "Reader RestoreState"));
}

}  // namespace reader_test
}  // namespace
}  // namespace sluice
