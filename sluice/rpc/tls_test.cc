#include "sluice/rpc/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "sluice/kernel/testing/op_test.h"
#include "sluice/rpc/openssl.h"
#include "sluice/rpc/testing/test_certificates.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string Problem(const TlsOptions& options, TlsRole role = TlsRole::kTask) {
  const absl::StatusOr<TlsIdentityPtr> loaded = LoadTls(options, role);
  return loaded.ok() ? "" : std::string(loaded.status().message());
}

class TlsTest : public testing::Test {
 protected:
  const TestCertificates certificates_;
  const TlsOptions good_ = certificates_.Options();
};

TEST_F(TlsTest, IsOffWithoutFiles) {
  const auto loaded = LoadTls({}, TlsRole::kTask);
  SLUICE_ASSERT_OK(loaded.status());
  EXPECT_EQ(*loaded, nullptr);
}

TEST_F(TlsTest, LoadsWhatFits) {
  const auto loaded = LoadTls(good_, TlsRole::kTask);
  SLUICE_ASSERT_OK(loaded.status());
  EXPECT_EQ((*loaded)->ca, certificates_.ca().certificate);
}

TEST_F(TlsTest, NamesTheFileThatIsNotGiven) {
  EXPECT_THAT(Problem({"", good_.key, good_.ca}),
              HasSubstr("the certificate is missing (SLUICE_TLS_CERT)"));
  EXPECT_THAT(Problem({good_.certificate, "", good_.ca}),
              HasSubstr("the key is missing (SLUICE_TLS_KEY)"));
  EXPECT_THAT(Problem({good_.certificate, good_.key, ""}),
              HasSubstr("the CA is missing (SLUICE_TLS_CA)"));
}

TEST_F(TlsTest, NamesTheFileThatIsNotThere) {
  EXPECT_THAT(Problem({good_.certificate, "/no/such.key", good_.ca}),
              HasSubstr("TLS key /no/such.key; No such file or directory"));
}

TEST_F(TlsTest, TellsWhatIsNoPem) {
  const std::string text = certificates_.Write("text", "hello");
  EXPECT_THAT(Problem({text, good_.key, good_.ca}),
              HasSubstr(StrCat("TLS certificate ", text,
                               ": not a certificate in PEM form")));
  EXPECT_THAT(Problem({good_.certificate, text, good_.ca}),
              HasSubstr(StrCat("TLS key ", text, ": not a private key")));
  EXPECT_THAT(
      Problem({good_.certificate, good_.key, text}),
      HasSubstr(StrCat("TLS CA ", text, ": not a certificate in PEM form")));
  EXPECT_THAT(Problem({good_.key, good_.certificate, good_.ca}),
              HasSubstr("not a certificate"));
}

TEST_F(TlsTest, TellsAPemThatWasCutShort) {
  const std::string& whole = certificates_.ca().certificate;
  const std::string cut =
      certificates_.Write("cut", whole + whole.substr(0, whole.size() / 2));
  EXPECT_THAT(Problem({good_.certificate, good_.key, cut}),
              HasSubstr(StrCat("TLS CA ", cut, ": not a certificate")));
}

TEST_F(TlsTest, TellsAKeyOfAnotherCertificate) {
  const TlsOptions other = certificates_.Options("other");
  EXPECT_THAT(Problem({good_.certificate, other.key, good_.ca}),
              HasSubstr(StrCat("does not belong to the certificate ",
                               good_.certificate)));
}

TEST_F(TlsTest, TellsAKeyWithAPassphrase) {
  const KeyPtr key(EVP_EC_gen("P-256"));
  const BioPtr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(bio.get(), key.get(), EVP_aes_256_cbc(), nullptr, 0,
                           nullptr, const_cast<char*>("passphrase"));
  char* text = nullptr;
  const int64_t size = BIO_get_mem_data(bio.get(), &text);
  const std::string encrypted =
      certificates_.Write("encrypted", std::string(text, size));
  EXPECT_THAT(Problem({good_.certificate, encrypted, good_.ca}),
              HasSubstr("encrypted with a passphrase"));
}

TEST_F(TlsTest, TellsACertificateThatHasExpired) {
  EXPECT_THAT(Problem(certificates_.Options("old", {"localhost"}, -1)),
              AllOf(HasSubstr("old.crt"), HasSubstr("expired on ")));
}

TEST_F(TlsTest, TellsACertificateOfAnotherCa) {
  const TestCertificates others;
  EXPECT_THAT(Problem({good_.certificate, good_.key, others.ca_file()}),
              AllOf(HasSubstr(good_.certificate),
                    HasSubstr("not signed by the CA " + others.ca_file())));
}

TEST_F(TlsTest, TakesACertificateWithItsChain) {
  const std::string chain = certificates_.Write(
      "chain", *RealFileSystem().ReadFile(good_.certificate) +
                   certificates_.ca().certificate);
  EXPECT_EQ(Problem({chain, good_.key, good_.ca}), "");
}

TEST_F(TlsTest, ReadsADirectoryAndTheEnvironment) {
  const TlsOptions options = TlsOptions::InDirectory("/d");
  EXPECT_EQ(options.certificate, "/d/tls.crt");
  EXPECT_EQ(options.key, "/d/tls.key");
  EXPECT_EQ(options.ca, "/d/ca.crt");
  EXPECT_TRUE(TlsOptions::FromEnvironment().empty());
  setenv("SLUICE_TLS_CA", "/x", 1);
  EXPECT_EQ(TlsOptions::FromEnvironment().ca, "/x");
  unsetenv("SLUICE_TLS_CA");
}

TEST_F(TlsTest, IsNotOffWhereItsFilesHaveEmptyNames) {
  for (const char* name :
       {"SLUICE_TLS_CERT", "SLUICE_TLS_KEY", "SLUICE_TLS_CA"}) {
    setenv(name, "", 1);
    EXPECT_FALSE(TlsOptions::FromEnvironment().empty()) << name;
    EXPECT_THAT(Problem(TlsOptions::FromEnvironment()),
                HasSubstr("the certificate is missing (SLUICE_TLS_CERT)"));
    unsetenv(name);
  }
}

// Whatever is in the files: an answer, no crash.
TEST_F(TlsTest, SurvivesFilesOfAnyBytes) {
  std::mt19937 random(1);
  const std::string files[] = {*RealFileSystem().ReadFile(good_.certificate),
                               *RealFileSystem().ReadFile(good_.key),
                               *RealFileSystem().ReadFile(good_.ca)};
  for (int i = 0; i < 600; ++i) {
    std::string paths[3] = {good_.certificate, good_.key, good_.ca};
    const int which = i % 3;
    std::string text = files[which];
    for (unsigned n = random() % 8; n > 0; --n) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) text.resize(random() % text.size());
    paths[which] = certificates_.Write("fuzzed", text);
    LoadTls({paths[0], paths[1], paths[2]}, TlsRole::kTask).IgnoreError();
  }
}

TEST(MakeCertificate, RefusesHostsThatAreNone) {
  const CertifiedKey ca = *MakeCa({.name = "CA"});
  for (const char* host :
       {"", "a b", "host:2222", "[::1]", "a,DNS:evil", "a/b", "\n", "ü"}) {
    EXPECT_EQ(
        MakeCertificate({.name = "x", .hosts = {host}}, ca).status().code(),
        absl::StatusCode::kInvalidArgument)
        << host;
  }
  SLUICE_EXPECT_OK(MakeCertificate({.name = "x",
                                    .hosts = {"*.example.org", "10.0.0.1",
                                              "::1", "under_score-1"}},
                                   ca)
                       .status());
}

TEST(MakeCertificate, EndsWithItsCa) {
  const CertifiedKey ca = *MakeCa({.name = "CA", .days = 10});
  for (const auto& [asked, got] : {std::pair{700, 10}, {10, 10}, {3, 3}}) {
    const auto made = MakeCertificate({.name = "x", .days = asked}, ca);
    SLUICE_ASSERT_OK(made.status());
    EXPECT_EQ(*DaysLeft(made->certificate), got);
  }
  const CertifiedKey old = *MakeCa({.name = "CA", .days = -1});
  EXPECT_THAT(
      std::string(MakeCertificate({.name = "x"}, old).status().message()),
      HasSubstr("has expired"));
}

TEST(MakeCertificate, RefusesATimeThatCannotBeWritten) {
  EXPECT_FALSE(MakeCa({.name = "CA", .days = 3'000'000}).ok());
}

TEST(MakeCertificate, RefusesACaThatIsNone) {
  const CertifiedKey ca = *MakeCa({.name = "CA"});
  const CertifiedKey other = *MakeCa({.name = "Other"});
  for (const CertifiedKey& wrong :
       {CertifiedKey{"", ""}, CertifiedKey{ca.certificate, "x"},
        CertifiedKey{ca.certificate, other.key}}) {
    EXPECT_EQ(MakeCertificate({.name = "x"}, wrong).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace sluice
