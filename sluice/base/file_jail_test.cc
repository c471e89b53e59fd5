#include "sluice/base/file_jail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sluice/base/status.h"
#include "sluice/base/testing/temp_dir.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Two folders, of which one is allowed. Both hold a file "f".
class FileJailTest : public testing::Test {
 protected:
  FileJailTest() {
    for (const std::string& dir : {in_, out_}) {
      EXPECT_TRUE(RealFileSystem().MkDirs(dir).ok());
      EXPECT_TRUE(RealFileSystem().WriteFile(dir + "/f", "text").ok());
    }
    jail_ = *FileJail({in_});
  }
  static void MakeLink(const std::string& target, const std::string& path) {
    ASSERT_EQ(symlink(target.c_str(), path.c_str()), 0);
  }
  // Every call that takes a path.
  std::vector<absl::Status> All(const std::string& path) {
    return {jail_->NewWritable(path).status(),
            jail_->NewAppendable(path).status(),
            jail_->NewRandomAccess(path).status(),
            jail_->Rename(path, in_ + "/new"),
            jail_->Rename(in_ + "/f", path),
            jail_->Link(path, in_ + "/new"),
            jail_->Link(in_ + "/f", path),
            jail_->Delete(path),
            jail_->DeleteRecursively(path),
            jail_->List(path).status(),
            jail_->MkDirs(path),
            jail_->Stat(path).status(),
            jail_->SyncDir(path),
            jail_->ReadFile(path).status(),
            jail_->WriteFile(path, "new"),
            jail_->WriteFileAtomically(path, "new"),
            jail_->Glob(path + "/*").status()};
  }
  void ExpectDenied(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  }

  const TempDir dir_;
  const std::string in_ = dir_ / "in";
  const std::string out_ = dir_ / "out";
  FileSystem* jail_;
};

TEST_F(FileJailTest, LetsThroughWhatIsInside) {
  EXPECT_EQ(*jail_->ReadFile(in_ + "/f"), "text");
  EXPECT_TRUE(jail_->MkDirs(in_ + "/a/b").ok());
  EXPECT_TRUE(jail_->WriteFile(in_ + "/a/b/c", "new").ok());
  EXPECT_TRUE(jail_->WriteFileAtomically(in_ + "/a/b/d", "new").ok());
  EXPECT_TRUE(jail_->Rename(in_ + "/a/b/c", in_ + "/g").ok());
  EXPECT_THAT(*jail_->List(in_), ElementsAre("a", "f", "g"));
  EXPECT_THAT(*jail_->Glob(in_ + "/*/b/*"), ElementsAre(in_ + "/a/b/d"));
  EXPECT_TRUE(jail_->DeleteRecursively(in_ + "/a").ok());
}

TEST_F(FileJailTest, DeniesAllThatIsOutside) {
  for (const absl::Status& status : All(out_)) ExpectDenied(status);
  EXPECT_EQ(*RealFileSystem().ReadFile(out_ + "/f"), "text");
}

TEST_F(FileJailTest, NamesThePathAndTheRoots) {
  EXPECT_THAT(std::string(jail_->ReadFile("/etc/passwd").status().message()),
              AllOf(HasSubstr("/etc/passwd"), HasSubstr(in_),
                    HasSubstr("--allow-files")));
}

TEST_F(FileJailTest, TellsNothingOfWhatIsOutside) {
  EXPECT_EQ(jail_->ReadFile(out_ + "/f").status().code(),
            jail_->ReadFile(out_ + "/not_there").status().code());
  EXPECT_FALSE(jail_->Exists(out_ + "/f"));
  ExpectDenied(jail_->Glob(out_ + "/f").status());
}

TEST_F(FileJailTest, IsNotLeftByDots) {
  ExpectDenied(jail_->ReadFile(in_ + "/../out/f").status());
  ExpectDenied(jail_->ReadFile(in_ + "/not_there/../../out/f").status());
  ExpectDenied(jail_->WriteFile(in_ + "/./.././out/new", ""));
  ExpectDenied(jail_->Glob(in_ + "/../*/f").status());
  EXPECT_EQ(*jail_->ReadFile(out_ + "/../in/f"), "text");
}

TEST_F(FileJailTest, IsNotLeftByAFolderWhoseNameBeginsAlike) {
  ASSERT_TRUE(RealFileSystem().MkDirs(in_ + "side").ok());
  ExpectDenied(jail_->WriteFile(in_ + "side/f", ""));
}

TEST_F(FileJailTest, IsNotLeftByLinks) {
  MakeLink(out_, in_ + "/absolute");
  MakeLink("../out", in_ + "/relative");
  MakeLink("absolute", in_ + "/second");
  for (const char* link : {"/absolute", "/relative", "/second"}) {
    ExpectDenied(jail_->ReadFile(in_ + link + "/f").status());
    ExpectDenied(jail_->WriteFile(in_ + link + "/new", ""));
    ExpectDenied(jail_->MkDirs(in_ + link + "/new/newer"));
    ExpectDenied(jail_->List(in_ + link).status());
    ExpectDenied(jail_->Delete(in_ + link + "/f"));
    ExpectDenied(jail_->DeleteRecursively(in_ + link + "/f"));
    ExpectDenied(jail_->Rename(in_ + link + "/f", in_ + "/stolen"));
    ExpectDenied(jail_->Link(in_ + link + "/f", in_ + "/stolen"));
  }
  EXPECT_THAT(*RealFileSystem().List(out_), ElementsAre("f"));
}

TEST_F(FileJailTest, IsNotLeftByALinkToWhatDoesNotExist) {
  MakeLink(out_ + "/new", in_ + "/dangling");
  ExpectDenied(jail_->WriteFile(in_ + "/dangling", "text"));
  ExpectDenied(jail_->NewAppendable(in_ + "/dangling").status());
  EXPECT_FALSE(RealFileSystem().Exists(out_ + "/new"));
}

TEST_F(FileJailTest, FollowsLinksThatStayInside) {
  MakeLink("f", in_ + "/link");
  MakeLink("../in/link", in_ + "/second");
  EXPECT_EQ(*jail_->ReadFile(in_ + "/second"), "text");
}

TEST_F(FileJailTest, TakesALinkAwayAndNotItsTarget) {
  MakeLink(out_ + "/f", in_ + "/link");
  EXPECT_TRUE(jail_->Delete(in_ + "/link").ok());
  EXPECT_EQ(*RealFileSystem().ReadFile(out_ + "/f"), "text");
  MakeLink(out_, in_ + "/folder");
  EXPECT_TRUE(jail_->DeleteRecursively(in_ + "/folder").ok());
  EXPECT_EQ(*RealFileSystem().ReadFile(out_ + "/f"), "text");
}

TEST_F(FileJailTest, IsNotLeftByAZeroByte) {
  using std::string_literals::operator""s;
  for (const std::string& path :
       {in_ + "/..\0"s, in_ + "/..\0/f"s, in_ + "/f\0/../../../out/f"s}) {
    for (const absl::Status& status : All(path)) EXPECT_FALSE(status.ok());
  }
}

TEST_F(FileJailTest, TellsWhereLinksLeadOnlyIfTheyAreItsOwn) {
  MakeLink(out_, dir_ / "alias");
  MakeLink(out_, in_ + "/inner");
  EXPECT_THAT(jail_->ReadFile(in_ + "/inner/f").status().ToString(),
              HasSubstr("(" + out_ + "/f)"));
  for (const std::string& path : {dir_ / "alias/f", in_ + "/../alias/f"}) {
    EXPECT_THAT(jail_->ReadFile(path).status().ToString(), Not(HasSubstr(out_)))
        << path;
  }
}

TEST_F(FileJailTest, EndsALoopOfLinks) {
  MakeLink("b", in_ + "/a");
  MakeLink("a", in_ + "/b");
  EXPECT_FALSE(jail_->ReadFile(in_ + "/a").ok());
  EXPECT_FALSE(jail_->WriteFile(in_ + "/a/x", "").ok());
}

TEST_F(FileJailTest, KeepsItsRoots) {
  ExpectDenied(jail_->DeleteRecursively(in_));
  ExpectDenied(jail_->Rename(in_, in_ + "/f"));
  EXPECT_TRUE(RealFileSystem().Exists(in_));
}

TEST_F(FileJailTest, MayHaveSeveralRoots) {
  auto both = *FileJail({in_, out_});
  EXPECT_TRUE(both->Rename(in_ + "/f", out_ + "/g").ok());
  EXPECT_EQ(*both->ReadFile(out_ + "/g"), "text");
  EXPECT_FALSE(both->Exists(dir_.path()));
}

TEST_F(FileJailTest, MayHaveARootThatIsALink) {
  MakeLink(in_, dir_ / "link");
  auto jail = *FileJail({dir_ / "link"});
  EXPECT_EQ(*jail->ReadFile(dir_ / "link/f"), "text");
  EXPECT_EQ(*jail->ReadFile(in_ + "/f"), "text");
}

TEST_F(FileJailTest, NeedsFoldersThatExist) {
  EXPECT_THAT(std::string(FileJail({dir_ / "no"}).status().message()),
              HasSubstr(dir_ / "no"));
  EXPECT_THAT(std::string(FileJail({in_ + "/f"}).status().message()),
              HasSubstr("not a folder"));
}

TEST(AllowedFiles, ComeFromTheEnvironment) {
  setenv("SLUICE_ALLOW_FILES", "/a::b/c:", 1);
  EXPECT_THAT(*AllowedFilesFromEnvironment(), ElementsAre("/a", "b/c"));
  unsetenv("SLUICE_ALLOW_FILES");
  EXPECT_THAT(*AllowedFilesFromEnvironment(), IsEmpty());
}

TEST(AllowedFiles, AreNotAllOfThemIfNoneIsNamed) {
  for (const char* text : {"", ":", "::"}) {
    setenv("SLUICE_ALLOW_FILES", text, 1);
    EXPECT_THAT(std::string(AllowedFilesFromEnvironment().status().message()),
                HasSubstr("SLUICE_ALLOW_FILES is set and names no folder"));
  }
  unsetenv("SLUICE_ALLOW_FILES");
}

}  // namespace
}  // namespace sluice
