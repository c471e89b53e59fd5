#include "src/io_binding.h"

#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/base/file.h"
#include "sluice/base/status.h"
#include "sluice/io/checkpoint_reader.h"
#include "sluice/io/event_file.h"
#include "sluice/io/event_queue.h"
#include "sluice/io/record_file.h"
#include "sluice/train/restore_report.h"
#include "src/gil.h"
#include "src/graph_binding.h"
#include "src/status.h"
#include "src/tensor_convert.h"

namespace py = pybind11;

namespace sluice::python {
namespace {

// Calls `f` without the GIL and turns a bad status into an exception.
template <typename F>
auto Blocking(F f) {
  auto result = [&] {
    WithoutGil release;
    return f();
  }();
  return Check(std::move(result));
}

py::tuple ShapeOf(const Shape& shape) {
  py::tuple dims(shape.rank());
  for (int i = 0; i < shape.rank(); ++i) dims[i] = py::int_(shape.dim(i));
  return dims;
}

void BindEvents(py::module_& m) {
  py::class_<EventWriter>(m, "EventWriter")
      .def(py::init([](const std::string& logdir, const std::string& suffix) {
             return std::make_unique<EventWriter>(RealFileSystem(), RealClock(),
                                                  logdir, suffix);
           }),
           py::arg("logdir"), py::arg("suffix") = "")
      .def("write",
           [](EventWriter& w, const std::string& event) {
             Blocking([&] { return w.WriteSerialized(event); });
           })
      .def("flush", [](EventWriter& w) { Blocking([&] { return w.Flush(); }); })
      .def("close", [](EventWriter& w) { Blocking([&] { return w.Close(); }); })
      .def_property_readonly("path",
                             [](const EventWriter& w) { return w.path(); });
}

void BindEventQueue(py::module_& m) {
  py::class_<EventQueue>(m, "EventQueue")
      .def(py::init([](const std::string& logdir, int max_queue,
                       double flush_secs, const std::string& suffix) {
             return std::make_unique<EventQueue>(
                 RealFileSystem(), RealClock(), logdir,
                 EventQueueOptions{max_queue, flush_secs, suffix});
           }),
           py::arg("logdir"), py::arg("max_queue"), py::arg("flush_secs"),
           py::arg("suffix") = "")
      .def("add",
           [](EventQueue& q, std::string event) {
             WithoutGil release;
             q.Add(std::move(event));
           })
      .def("flush", [](EventQueue& q) { Blocking([&] { return q.Flush(); }); })
      .def("close", [](EventQueue& q) { Blocking([&] { return q.Close(); }); })
      .def("reopen", [](EventQueue& q) { q.Reopen(); })
      .def_property_readonly("path",
                             [](const EventQueue& q) { return q.path(); });
}

void BindRecords(py::module_& m) {
  py::class_<RecordWriter>(m, "RecordWriter")
      .def(py::init([](const std::string& path, const std::string& packed) {
             const Compression compression = Check(ParseCompression(packed));
             return Blocking([&] {
               return RecordWriter::Open(RealFileSystem(), path, compression);
             });
           }),
           py::arg("path"), py::arg("compression") = "")
      .def("write",
           [](RecordWriter& w, const std::string& record) {
             Blocking([&] { return w.Write(record); });
           })
      .def("flush",
           [](RecordWriter& w) { Blocking([&] { return w.Flush(); }); })
      .def("close",
           [](RecordWriter& w) { Blocking([&] { return w.Close(); }); });
  py::class_<RecordReader>(m, "RecordReader")
      .def(py::init([](const std::string& path, const std::string& packed) {
             const Compression compression = Check(ParseCompression(packed));
             return Blocking([&] {
               return RecordReader::Open(RealFileSystem(), path, compression);
             });
           }),
           py::arg("path"), py::arg("compression") = "")
      // The next record, or None at the end of the file.
      .def("read", [](RecordReader& r) -> py::object {
        std::string record;
        if (!Blocking([&] { return r.Read(&record); })) return py::none();
        return py::bytes(record);
      });
}

void BindCheckpoints(py::module_& m) {
  py::class_<CheckpointReader>(m, "CheckpointReader")
      .def(py::init([](const std::string& prefix) {
        return Blocking(
            [&] { return CheckpointReader::Open(RealFileSystem(), prefix); });
      }))
      .def("has_tensor",
           [](CheckpointReader& r, const std::string& name) {
             WithoutGil release;
             return r.Contains(name);
           })
      .def("get_tensor",
           [](CheckpointReader& r, const std::string& name) {
             Tensor tensor = Blocking([&] { return r.Lookup(name); });
             PyObject* value = ArrayFromTensor(std::move(tensor));
             if (value == nullptr) throw py::error_already_set();
             return py::reinterpret_steal<py::object>(value);
           })
      // [(name, dtype, shape), …] sorted by name.
      .def("list", [](CheckpointReader& r) {
        py::list list;
        for (const CheckpointTensor& t : Blocking([&] { return r.List(); })) {
          list.append(py::make_tuple(t.name, static_cast<int>(t.dtype),
                                     ShapeOf(t.shape)));
        }
        return list;
      });
}

// What of a checkpoint does not fit the variables of a graph, for a message.
std::string Mismatches(PyGraph& graph, const std::string& restore,
                       const std::string& prefix, bool resources_only) {
  GraphLock lock(graph);
  WithoutGil release;
  return RestoreMismatches(graph.graph, restore, RealFileSystem(), prefix,
                           resources_only);
}

void BindFiles(py::module_& m) {
  m.def("restore_mismatches", Mismatches);
  m.def("file_exists", [](const std::string& path) {
    WithoutGil release;
    return RealFileSystem().Exists(path);
  });
  m.def("read_file", [](const std::string& path) {
    return py::bytes(Blocking([&] { return RealFileSystem().ReadFile(path); }));
  });
  m.def("write_file", [](const std::string& path, const std::string& text) {
    Blocking([&] { return RealFileSystem().WriteFile(path, text); });
  });
  m.def("write_file_atomically", [](const std::string& path,
                                    const std::string& text) {
    Blocking([&] { return RealFileSystem().WriteFileAtomically(path, text); });
  });
  m.def("glob", [](const std::string& pattern) {
    return Blocking([&] { return RealFileSystem().Glob(pattern); });
  });
  m.def("list_directory", [](const std::string& path) {
    return Blocking([&] { return RealFileSystem().List(path); });
  });
  m.def("make_dirs", [](const std::string& path) {
    Blocking([&] { return RealFileSystem().MkDirs(path); });
  });
  m.def("delete_file", [](const std::string& path) {
    Blocking([&] { return RealFileSystem().Delete(path); });
  });
  m.def("delete_recursively", [](const std::string& path) {
    Blocking([&] { return RealFileSystem().DeleteRecursively(path); });
  });
  m.def("rename", [](const std::string& from, const std::string& to) {
    Blocking([&] { return RealFileSystem().Rename(from, to); });
  });
  // (size, mtime in nanoseconds, whether it is a directory).
  m.def("stat", [](const std::string& path) {
    const FileStat stat = Blocking([&] { return RealFileSystem().Stat(path); });
    return py::make_tuple(stat.size, stat.mtime_nanos, stat.is_dir);
  });
}

}  // namespace

void BindIo(py::module_& m) {
  BindEvents(m);
  BindEventQueue(m);
  BindRecords(m);
  BindCheckpoints(m);
  BindFiles(m);
}

}  // namespace sluice::python
