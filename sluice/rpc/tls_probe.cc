#include "sluice/rpc/tls_probe.h"

#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "sluice/base/status.h"
#include "sluice/rpc/openssl.h"

namespace sluice {
namespace {

// For each of connecting, shaking hands and waiting for a word.
constexpr timeval kPatience = {.tv_sec = 1, .tv_usec = 0};

std::string WantsTls(const std::string& address) {
  return StrCat("the server at ", address,
                " wants TLS, this side has no certificate: give it one by "
                "--tls, or by SLUICE_TLS_CERT, SLUICE_TLS_KEY and "
                "SLUICE_TLS_CA");
}

struct HostPort {
  std::string host;
  std::string port;
};

HostPort Split(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  return {host, address.substr(colon + 1)};
}

// OpenSSL writes without saying that a peer that hung up is no reason to end
// the process. Holds for the calling thread.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  ~NoSigpipe() {
    if (sigismember(&before_, SIGPIPE) == 1) return;
    constexpr timespec kNow = {};
    while (sigtimedwait(&sigpipe_, nullptr, &kNow) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t sigpipe_;
  sigset_t before_;
};

class Socket {
 public:
  explicit Socket(const HostPort& to) {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(to.host.c_str(), to.port.c_str(), &hints, &found) != 0) {
      return;
    }
    for (const addrinfo* a = found; a != nullptr && fd_ < 0; a = a->ai_next) {
      Connect(*a);
    }
    freeaddrinfo(found);
  }
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  void Connect(const addrinfo& to) {
    fd_ = socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd_ < 0) return;
    // Bounds connect too.
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
    if (connect(fd_, to.ai_addr, to.ai_addrlen) == 0) return;
    close(fd_);
    fd_ = -1;
  }

  int fd_ = -1;
};

using ContextPtr = std::unique_ptr<SSL_CTX, OpensslDeleter<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, OpensslDeleter<SSL_free>>;

// Shows our certificate and demands one of our CA for `host`, as gRPC does.
void UseIdentity(const TlsIdentity& tls, const std::string& host, SSL* ssl) {
  const BioPtr own = MemoryBio(tls.certificate);
  SSL_use_certificate(ssl, ReadCertificate(own.get()).get());
  while (const X509Ptr next = ReadCertificate(own.get())) {
    SSL_add1_chain_cert(ssl, next.get());
  }
  KeyProblem problem;
  SSL_use_PrivateKey(ssl, ReadKey(tls.key, &problem).get());
  X509_STORE* const store = SSL_CTX_get_cert_store(SSL_get_SSL_CTX(ssl));
  const BioPtr ca = MemoryBio(tls.ca);
  while (const X509Ptr next = ReadCertificate(ca.get())) {
    X509_STORE_add_cert(store, next.get());
  }
  X509_VERIFY_PARAM* const expected = SSL_get0_param(ssl);
  if (X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str()) != 1) {
    X509_VERIFY_PARAM_set1_host(expected, host.c_str(), host.size());
  }
  SSL_set_verify(ssl, SSL_VERIFY_PEER, nullptr);
}

// HTTP/2 is what gRPC demands of the peer; without it a gRPC server hangs up.
void OfferHttp2(SSL* ssl) {
  constexpr unsigned char kH2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(ssl, kH2, sizeof(kH2));
}

std::string CertificateProblem(const std::string& address, long error) {
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return StrCat("the certificate of ", address, " has expired");
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return StrCat("the certificate of ", address,
                    " is not valid yet; are the clocks right?");
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return StrCat("the certificate of ", address,
                    " is for other hosts; `sluice certs --host` makes one for "
                    "this one");
    default:
      break;
  }
  return StrCat("the certificate of ", address,
                " is not signed by the CA of this side: ",
                X509_verify_cert_error_string(error));
}

enum class Outcome {
  kUnclear,
  kPlain,     // The peer does not answer as TLS does.
  kTls,       // It does, and all is well.
  kBadPeer,   // Its certificate is not what it should be.
  kRejected,  // It hangs up when it has seen ours.
};
struct Finding {
  Outcome outcome = Outcome::kUnclear;
  std::string problem;
};

Finding Shake(const std::string& address, const TlsIdentityPtr& tls) {
  const HostPort to = Split(address);
  const Socket socket(to);
  if (socket.fd() < 0) return {};
  ERR_clear_error();
  const ContextPtr context(SSL_CTX_new(TLS_client_method()));
  const SslPtr ssl(SSL_new(context.get()));
  OfferHttp2(ssl.get());
  SSL_set_tlsext_host_name(ssl.get(), to.host.c_str());
  if (tls != nullptr) UseIdentity(*tls, to.host, ssl.get());
  ERR_clear_error();
  SSL_set_fd(ssl.get(), socket.fd());
  if (SSL_connect(ssl.get()) != 1) {
    const int reason = ERR_GET_REASON(ERR_peek_error());
    ERR_clear_error();
    if (const long error = SSL_get_verify_result(ssl.get());
        error != X509_V_OK && reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
      return {Outcome::kBadPeer, CertificateProblem(address, error)};
    }
    // An alert is TLS too: older versions refuse a client in the handshake.
    if (reason >= SSL_AD_REASON_OFFSET) return {Outcome::kRejected, ""};
    return {reason == SSL_R_WRONG_VERSION_NUMBER ? Outcome::kPlain
                                                 : Outcome::kUnclear,
            ""};
  }
  if (tls == nullptr) return {Outcome::kTls, ""};
  // A server of TLS 1.3 looks at our certificate after that. One that takes it
  // speaks first.
  char byte;
  const int got = SSL_read(ssl.get(), &byte, 1);
  const int error = SSL_get_error(ssl.get(), got);
  ERR_clear_error();
  if (got == 1) return {Outcome::kTls, ""};
  const bool timed_out = error == SSL_ERROR_WANT_READ ||
                         (error == SSL_ERROR_SYSCALL && errno == EAGAIN);
  return {timed_out ? Outcome::kUnclear : Outcome::kRejected, ""};
}

bool IsExpired(const TlsIdentity& tls) {
  const BioPtr own = MemoryBio(tls.certificate);
  const X509Ptr certificate = ReadCertificate(own.get());
  return certificate != nullptr &&
         X509_cmp_current_time(X509_get0_notAfter(certificate.get())) <= 0;
}

}  // namespace

bool IsForHost(const TlsIdentity& tls, const std::string& host) {
  const BioPtr own = MemoryBio(tls.certificate);
  const X509Ptr certificate = ReadCertificate(own.get());
  if (certificate == nullptr) return false;
  return X509_check_ip_asc(certificate.get(), host.c_str(), 0) == 1 ||
         X509_check_host(certificate.get(), host.c_str(), host.size(), 0,
                         nullptr) == 1;
}

std::string TlsProblem(const std::string& address, const TlsIdentityPtr& tls) {
  const NoSigpipe no_sigpipe;
  Finding finding = Shake(address, tls);
  // A server that ends hangs up too; but then it is gone the second time.
  if (finding.outcome == Outcome::kRejected) finding = Shake(address, tls);
  switch (finding.outcome) {
    case Outcome::kUnclear:
      return "";
    case Outcome::kPlain:
      if (tls == nullptr) return "";
      return StrCat(address,
                    " speaks plain text where TLS is expected: its server was "
                    "started without certificates, or something else listens "
                    "there");
    case Outcome::kBadPeer:
      return finding.problem;
    case Outcome::kTls:
      if (tls != nullptr) return "";
      return WantsTls(address);
    case Outcome::kRejected:
      if (tls == nullptr) return WantsTls(address);
      return StrCat("the server at ", address,
                    " does not take the certificate of this side",
                    IsExpired(*tls)
                        ? ": it has expired; restart with a new one"
                        : "; is it signed by the CA of that server?");
  }
  return "";
}

}  // namespace sluice
