// The kinds of readers: what a record of a file is.
#pragma once

#include <memory>
#include <string>

#include "sluice/io/byte_stream.h"
#include "sluice/io/record_file.h"
#include "sluice/ops/io/reader.h"

namespace sluice {

// The name itself; no file is touched.
class IdentityReader : public Reader {
 public:
  using Reader::Reader;
  absl::StatusOr<std::string> SerializeState() const override {
    return SerializeBase();
  }
  absl::Status RestoreState(const std::string& state,
                            FileSystem& files) override {
    return RestoreBase(state, files);
  }

 protected:
  absl::Status Open(FileSystem&, const std::string&) override;
  absl::StatusOr<bool> Next(const std::string& path, Record* record) override;
  void Close() override {}

 private:
  bool given_ = false;
};

// The contents of a file.
class WholeFileReader : public Reader {
 public:
  using Reader::Reader;
  absl::StatusOr<std::string> SerializeState() const override {
    return SerializeBase();
  }
  absl::Status RestoreState(const std::string& state,
                            FileSystem& files) override {
    return RestoreBase(state, files);
  }

 protected:
  absl::Status Open(FileSystem& files, const std::string&) override;
  absl::StatusOr<bool> Next(const std::string& path, Record* record) override;
  void Close() override { files_ = nullptr; }

 private:
  FileSystem* files_ = nullptr;  // Until the file was read.
};

// Bytes of a stream, gathered so that single ones are cheap to take.
class ByteWindow {
 public:
  void Start(std::unique_ptr<ByteStream> stream);
  void Stop() { stream_ = nullptr; }
  // Reads until `n` bytes are there, or all that the stream has; whether they
  // are.
  absl::StatusOr<bool> Fill(size_t n);
  std::string_view bytes() const {
    return std::string_view(buffer_).substr(begin_);
  }
  void Skip(size_t n) { begin_ += n; }

 private:
  std::unique_ptr<ByteStream> stream_;
  std::string buffer_;
  size_t begin_ = 0;
};

// Lines without their ends.
class TextLineReader : public Reader {
 public:
  TextLineReader(std::string name, int64_t skip_header_lines)
      : Reader(std::move(name)), skip_(skip_header_lines) {}

 protected:
  absl::Status Open(FileSystem& files, const std::string& path) override;
  absl::StatusOr<bool> Next(const std::string& path, Record* record) override;
  void Close() override { window_.Stop(); }

 private:
  absl::StatusOr<bool> ReadLine(std::string* line);

  const int64_t skip_;
  ByteWindow window_;
  int64_t line_ = 0;
};

// Pieces of one size between a header and a footer.
class FixedLengthRecordReader : public Reader {
 public:
  struct Layout {
    int64_t header = 0;
    int64_t record = 0;
    int64_t footer = 0;
    int64_t hop = 0;  // From one record to the next; 0: its size.
    Compression packing = Compression::kNone;
  };
  FixedLengthRecordReader(std::string name, const Layout& layout)
      : Reader(std::move(name)), layout_(layout) {}

 protected:
  absl::Status Open(FileSystem& files, const std::string& path) override;
  absl::StatusOr<bool> Next(const std::string& path, Record* record) override;
  void Close() override { window_.Stop(); }

 private:
  // Takes so many bytes away; false if the file ends before.
  absl::StatusOr<bool> SkipBytes(int64_t n);

  const Layout layout_;
  ByteWindow window_;
  int64_t number_ = 0;
};

// The records of a TFRecord file.
class TfRecordReader : public Reader {
 public:
  TfRecordReader(std::string name, Compression packing)
      : Reader(std::move(name)), packing_(packing) {}

 protected:
  absl::Status Open(FileSystem& files, const std::string& path) override;
  absl::StatusOr<bool> Next(const std::string& path, Record* record) override;
  void Close() override { file_ = nullptr; }

 private:
  const Compression packing_;
  std::unique_ptr<RecordReader> file_;
};

}  // namespace sluice
