// What moving bytes between two processes costs without an engine: the limit
// that the rows of `make rival` stand beside. Prints rows as rows.py does.
//
//   raw_transfer serve              prints the two ports it serves on
//   raw_transfer measure PORT PORT  of gRPC and of TCP, on this host
//
// By a unary gRPC call, a message of an open gRPC stream, or a plain socket,
// the measuring side names a size and gets that many bytes (a pull), or sends
// them and gets a short answer (a push). Who gets them copies them into memory
// of its own, as a tensor must be.
#include <arpa/inet.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

using grpc::ByteBuffer;

// Every event of a completion queue is a call of one of these.
using Event = std::function<void(bool)>;

void* Tag(Event event) { return new Event(std::move(event)); }

// False once the queue is closed.
bool Next(grpc::CompletionQueue& queue) {
  void* tag;
  bool ok;
  if (!queue.Next(&tag, &ok)) return false;
  Event* event = static_cast<Event*>(tag);
  (*event)(ok);
  delete event;
  return true;
}

uint64_t Size(const ByteBuffer& request) {
  grpc::Slice slice;
  uint64_t size = 0;
  if (request.DumpToSingleSlice(&slice).ok() && slice.size() == sizeof(size)) {
    memcpy(&size, slice.begin(), sizeof(size));
  }
  return size;
}

ByteBuffer Request(uint64_t size) {
  const grpc::Slice slice(&size, sizeof(size));
  return ByteBuffer(&slice, 1);
}

// The bytes that are sent: made once for each size, never copied.
const ByteBuffer& Answer(uint64_t size) {
  static auto* made = new std::map<uint64_t, ByteBuffer>;
  const auto [at, added] = made->try_emplace(size);
  if (added) {
    auto* bytes = new std::vector<char>(size, 1);
    const grpc::Slice slice(bytes->data(), size, grpc::Slice::STATIC_SLICE);
    at->second = ByteBuffer(&slice, 1);
  }
  return at->second;
}

void CopyOut(const ByteBuffer& from, std::vector<char>& to) {
  std::vector<grpc::Slice> slices;
  size_t at = 0;
  if (!from.Dump(&slices).ok()) return;
  if (to.size() < from.Length()) to.resize(from.Length());
  for (const grpc::Slice& slice : slices) {
    memcpy(to.data() + at, slice.begin(), slice.size());
    at += slice.size();
  }
}

// A message as long as a size asks for that many bytes; any other brings some.
const ByteBuffer& Take(const ByteBuffer& message) {
  static auto* memory = new std::vector<char>;
  if (message.Length() == sizeof(uint64_t)) return Answer(Size(message));
  CopyOut(message, *memory);
  return Answer(sizeof(uint64_t));
}

// One call: serves each of its messages.
struct Served {
  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream{&context};
  ByteBuffer request;

  static void Accept(grpc::AsyncGenericService& service,
                     grpc::ServerCompletionQueue& queue) {
    auto* call = new Served;
    service.RequestCall(&call->context, &call->stream, &queue, &queue,
                        Tag([call, &service, &queue](bool ok) {
                          if (!ok) return;
                          Accept(service, queue);
                          call->Read();
                        }));
  }
  void Read() {
    stream.Read(&request, Tag([this](bool ok) {
      if (!ok) {
        stream.Finish(grpc::Status::OK, Tag([this](bool) { delete this; }));
      } else if (context.method() == "/raw/Unary") {
        stream.WriteAndFinish(Take(request), {}, grpc::Status::OK,
                              Tag([this](bool) { delete this; }));
      } else {
        stream.Write(Take(request), Tag([this](bool) { Read(); }));
      }
    }));
  }
};

bool ReadAll(int socket, void* to, size_t size) {
  for (char* at = static_cast<char*>(to); size > 0;) {
    const ssize_t got = recv(socket, at, size, 0);
    if (got <= 0) return false;
    at += got;
    size -= got;
  }
  return true;
}

bool WriteAll(int socket, const void* from, size_t size) {
  for (const char* at = static_cast<const char*>(from); size > 0;) {
    const ssize_t put = send(socket, at, size, MSG_NOSIGNAL);
    if (put <= 0) return false;
    at += put;
    size -= put;
  }
  return true;
}

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// In the size that goes ahead: the bytes follow.
constexpr uint64_t kPush = uint64_t{1} << 63;

void NoDelay(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// Returns the port; serves one connection after the other for ever.
int ServeTcp() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof(address);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener, any, length) != 0 || listen(listener, 8) != 0 ||
      getsockname(listener, any, &length) != 0) {
    perror("raw_transfer: cannot listen");
    exit(1);
  }
  std::thread([listener] {
    for (;;) {
      const int peer = accept(listener, nullptr, nullptr);
      if (peer < 0) continue;
      NoDelay(peer);
      std::vector<char> bytes;
      uint64_t size;
      while (ReadAll(peer, &size, sizeof(size))) {
        const bool push = (size & kPush) != 0;
        size &= ~kPush;
        if (bytes.size() < size) bytes.resize(size, 1);
        if (push && !ReadAll(peer, bytes.data(), size)) break;
        if (!WriteAll(peer, bytes.data(), push ? sizeof(size) : size)) break;
      }
      close(peer);
    }
  }).detach();
  return ntohs(address.sin_port);
}

int Serve() {
  grpc::AsyncGenericService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.SetMaxSendMessageSize(INT_MAX);
  builder.SetMaxReceiveMessageSize(INT_MAX);
  builder.RegisterAsyncGenericService(&service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  if (server == nullptr) {
    fprintf(stderr, "raw_transfer: gRPC cannot listen\n");
    return 1;
  }
  Served::Accept(service, *queue);
  printf("%d %d\n", port, ServeTcp());
  fflush(stdout);
  while (Next(*queue)) {
  }
  return 0;
}

// The best mean time of a call, in µs.
double Time(const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  using Micros = std::chrono::duration<double, std::micro>;
  call();
  double best = 1e300;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto begin = Clock::now();
    int count = 0;
    do {
      call();
      ++count;
    } while (Clock::now() - begin < std::chrono::milliseconds(200));
    best = std::min(best, Micros(Clock::now() - begin).count() / count);
  }
  return best;
}

int Measure(int grpc_port, int tcp_port) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(INT_MAX);
  grpc::GenericStub stub(
      grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(grpc_port),
                                grpc::InsecureChannelCredentials(), arguments));
  grpc::CompletionQueue queue;
  bool done = false;
  const auto wait = [&] {
    while (!done) Next(queue);
    done = false;
  };
  const auto finished = [&] { return Tag([&](bool) { done = true; }); };

  grpc::ClientContext stream_context;
  const auto stream = stub.PrepareCall(&stream_context, "/raw/Stream", &queue);
  stream->StartCall(finished());
  wait();

  const int peer = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = Loopback(tcp_port);
  if (connect(peer, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    perror("raw_transfer: cannot connect");
    return 1;
  }
  NoDelay(peer);

  const std::pair<const char*, uint64_t> sizes[] = {{"1 KB", 1 << 10},
                                                    {"256 KB", 256 << 10},
                                                    {"4 MB", 4 << 20},
                                                    {"64 MB", 64 << 20},
                                                    {"256 MB", 256 << 20}};
  std::vector<char> memory(sizes[std::size(sizes) - 1].second);
  const auto row = [](const char* way, const char* size, double micros) {
    printf("ROW [\"raw %s %s\", %.3f]\n", way, size, micros);
    fflush(stdout);
  };
  const auto unary = [&](const ByteBuffer& request) {
    grpc::ClientContext context;
    ByteBuffer response;
    grpc::Status status;
    const auto call =
        stub.PrepareUnaryCall(&context, "/raw/Unary", request, &queue);
    call->StartCall();
    call->Finish(&response, &status, finished());
    wait();
    CopyOut(response, memory);
  };
  const auto message = [&](const ByteBuffer& request) {
    ByteBuffer response;
    stream->Write(request, finished());
    wait();
    stream->Read(&response, finished());
    wait();
    CopyOut(response, memory);
  };
  for (const auto& [name, size] : sizes) {
    const ByteBuffer ask = Request(size);
    const ByteBuffer& bytes = Answer(size);
    row("gRPC unary, pull", name, Time([&] { unary(ask); }));
    row("gRPC unary, push", name, Time([&] { unary(bytes); }));
    row("gRPC stream, pull", name, Time([&] { message(ask); }));
    row("gRPC stream, push", name, Time([&] { message(bytes); }));
    row("TCP, pull", name, Time([&] {
          WriteAll(peer, &size, sizeof(size));
          ReadAll(peer, memory.data(), size);
        }));
    row("TCP, push", name, Time([&] {
          const uint64_t head = size | kPush;
          uint64_t answer;
          WriteAll(peer, &head, sizeof(head));
          WriteAll(peer, memory.data(), size);
          ReadAll(peer, &answer, sizeof(answer));
        }));
  }
  _exit(0);  // The stream is still open, and nobody waits for it.
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "serve" && argc == 2) return Serve();
  if (what == "measure" && argc == 4) {
    return Measure(atoi(argv[2]), atoi(argv[3]));
  }
  fprintf(stderr, "usage: raw_transfer serve | measure GRPC_PORT TCP_PORT\n");
  return 2;
}
