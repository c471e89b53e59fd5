#include "src/tensor_convert.h"

#include <cstring>

#include "sluice/base/status.h"
#include "sluice/proto/tensor.pb.h"
#include "sluice/tensor/codec.h"
#include "src/gil.h"
#include "src/status.h"

namespace py = pybind11;

namespace sluice::python {
namespace {

// NumPy's types and functions, looked up once and kept for ever.
struct NumPy {
  PyObject* asarray;
  PyObject* frombuffer;
  PyObject* ndarray;
  PyObject* types[24] = {};      // Scalar types by DType.
  PyObject* bfloat16 = nullptr;  // The package's stand-in, if it has one.

  NumPy() {
    PyObject* module = PyImport_ImportModule("numpy");
    if (module == nullptr) throw py::error_already_set();
    asarray = PyObject_GetAttrString(module, "asarray");
    frombuffer = PyObject_GetAttrString(module, "frombuffer");
    ndarray = PyObject_GetAttrString(module, "ndarray");
    const std::pair<DType, const char*> names[] = {
        {DType::kFloat, "float32"},
        {DType::kDouble, "float64"},
        {DType::kInt32, "int32"},
        {DType::kUint8, "uint8"},
        {DType::kInt16, "int16"},
        {DType::kInt8, "int8"},
        {DType::kComplex64, "complex64"},
        {DType::kInt64, "int64"},
        {DType::kBool, "bool_"},
        {DType::kUint16, "uint16"},
        {DType::kComplex128, "complex128"},
        {DType::kHalf, "float16"},
        {DType::kUint32, "uint32"},
        {DType::kUint64, "uint64"},
        {DType::kQint8, "int8"},
        {DType::kQuint8, "uint8"},
        {DType::kQint16, "int16"},
        {DType::kQuint16, "uint16"},
        {DType::kQint32, "int32"},
        {DType::kBfloat16, "uint16"},
        {DType::kString, "object_"}};
    for (const auto& [type, name] : names) {
      types[static_cast<int>(type)] = PyObject_GetAttrString(module, name);
    }
    Py_DECREF(module);
  }
  static NumPy& Get() {
    static NumPy* numpy = new NumPy;
    return *numpy;
  }
};

// A Python object that shows a tensor's memory through the buffer protocol and
// keeps it alive.
struct TensorMemory {
  PyObject_HEAD Tensor* tensor;
};

int MemoryGetBuffer(PyObject* self, Py_buffer* view, int flags) {
  Tensor* tensor = reinterpret_cast<TensorMemory*>(self)->tensor;
  return PyBuffer_FillInfo(view, self, tensor->mutable_raw(), tensor->bytes(),
                           /*readonly=*/0, flags);
}

void MemoryDealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<TensorMemory*>(self)->tensor;
  type->tp_free(self);
  Py_DECREF(type);
}

PyTypeObject* MemoryType() {
  static PyTypeObject* type = [] {
    PyType_Slot slots[] = {
        {Py_tp_dealloc, reinterpret_cast<void*>(MemoryDealloc)},
        {Py_bf_getbuffer, reinterpret_cast<void*>(MemoryGetBuffer)},
        {0, nullptr}};
    PyType_Spec spec = {"sluice._sluice.TensorMemory", sizeof(TensorMemory), 0,
                        Py_TPFLAGS_DEFAULT, slots};
    return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  }();
  return type;
}

PyObject* ShapeTuple(const Shape& shape) {
  PyObject* tuple = PyTuple_New(shape.rank());
  for (int i = 0; i < shape.rank(); ++i) {
    PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(shape.dim(i)));
  }
  return tuple;
}

PyObject* StringArray(const Tensor& tensor) {
  NumPy& numpy = NumPy::Get();
  PyObject* shape = ShapeTuple(tensor.shape());
  PyObject* array = PyObject_CallFunctionObjArgs(
      numpy.ndarray, shape, numpy.types[static_cast<int>(DType::kString)],
      nullptr);
  Py_DECREF(shape);
  if (array == nullptr) return nullptr;
  // Through `flat`, which takes every rank.
  PyObject* flat = PyObject_GetAttrString(array, "flat");
  const auto values = tensor.data<std::string>();
  for (size_t i = 0; i < values.size(); ++i) {
    PyObject* bytes =
        PyBytes_FromStringAndSize(values[i].data(), values[i].size());
    // By item: `flat` is no sequence.
    PyObject* index = PyLong_FromSize_t(i);
    const bool ok = bytes != nullptr && index != nullptr &&
                    PyObject_SetItem(flat, index, bytes) == 0;
    Py_XDECREF(index);
    if (!ok) {
      Py_XDECREF(bytes);
      Py_DECREF(flat);
      Py_DECREF(array);
      return nullptr;
    }
    Py_DECREF(bytes);
  }
  Py_DECREF(flat);
  return array;
}

PyObject* NumberArray(Tensor tensor) {
  NumPy& numpy = NumPy::Get();
  PyObject* type = numpy.types[static_cast<int>(tensor.dtype())];
  if (type == nullptr) {
    PyErr_Format(PyExc_TypeError, "tensors of type %s have no NumPy form",
                 DTypeName(tensor.dtype()).c_str());
    return nullptr;
  }
  PyObject* shape = ShapeTuple(tensor.shape());
  PyObject* array;
  if (tensor.bytes() == 0) {
    array = PyObject_CallFunctionObjArgs(numpy.ndarray, shape, type, nullptr);
  } else {
    // The array may outlive everything and be written to, so nothing else may
    // see its memory: no variable, no constant, no other fetch.
    if (!tensor.unique() || tensor.buffer()->borrowed())
      tensor = tensor.Clone();
    if (!tensor.initialized()) {
      Py_DECREF(shape);
      return PyErr_NoMemory();
    }
    auto* memory = PyObject_New(TensorMemory, MemoryType());
    memory->tensor = new Tensor(std::move(tensor));
    array = PyObject_CallFunctionObjArgs(numpy.ndarray, shape, type,
                                         reinterpret_cast<PyObject*>(memory),
                                         nullptr);
    Py_DECREF(memory);
  }
  Py_DECREF(shape);
  return array;
}

template <typename T>
PyObject* NumberScalar(const Tensor& tensor, PyObject* value) {
  PyObject* result = PyObject_CallFunctionObjArgs(
      NumPy::Get().types[static_cast<int>(tensor.dtype())], value, nullptr);
  Py_XDECREF(value);
  return result;
}

PyObject* Scalar(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kFloat:
      return NumberScalar<float>(tensor,
                                 PyFloat_FromDouble(tensor.scalar<float>()));
    case DType::kDouble:
      return NumberScalar<double>(tensor,
                                  PyFloat_FromDouble(tensor.scalar<double>()));
    case DType::kInt32:
      return NumberScalar<int>(tensor,
                               PyLong_FromLong(tensor.scalar<int32_t>()));
    case DType::kInt64:
      return NumberScalar<int>(tensor,
                               PyLong_FromLongLong(tensor.scalar<int64_t>()));
    case DType::kBool:
      return NumberScalar<bool>(tensor, PyBool_FromLong(tensor.scalar<bool>()));
    case DType::kString: {
      const std::string& s = tensor.scalar<std::string>();
      return PyBytes_FromStringAndSize(s.data(), s.size());
    }
    default:
      return nullptr;
  }
}

absl::StatusOr<Tensor> StringsFromArray(PyObject* array) {
  PyObject* shape = PyObject_GetAttrString(array, "shape");
  PyObject* list = PyObject_CallMethod(array, "ravel", nullptr);
  if (shape == nullptr || list == nullptr) {
    PyErr_Clear();
    return InvalidArgument("Cannot make a tensor of this object");
  }
  absl::InlinedVector<int64_t, 4> dims;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); ++i) {
    dims.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i)));
  }
  Py_DECREF(shape);
  Tensor tensor(DType::kString,
                Shape(std::span<const int64_t>(dims.data(), dims.size())));
  auto out = tensor.mutable_data<std::string>();
  for (size_t i = 0; i < out.size(); ++i) {
    PyObject* item = PySequence_GetItem(list, i);
    const char* data = nullptr;
    Py_ssize_t size = 0;
    if (item != nullptr && PyBytes_Check(item)) {
      PyBytes_AsStringAndSize(item, const_cast<char**>(&data), &size);
    } else if (item != nullptr && PyUnicode_Check(item)) {
      data = PyUnicode_AsUTF8AndSize(item, &size);
    }
    if (data == nullptr) {
      PyErr_Clear();
      Py_XDECREF(item);
      Py_DECREF(list);
      return InvalidArgument("Unsupported object type in an array of strings");
    }
    out[i].assign(data, size);
    Py_DECREF(item);
  }
  Py_DECREF(list);
  return tensor;
}

}  // namespace

DType DTypeOfFormat(const char* format, Py_ssize_t itemsize) {
  if (format == nullptr) return DType::kUint8;
  std::string_view f = format;
  if (!f.empty() && (f[0] == '<' || f[0] == '=' || f[0] == '@'))
    f.remove_prefix(1);
  if (f == "Zf") return DType::kComplex64;
  if (f == "Zd") return DType::kComplex128;
  if (f.size() != 1) return DType::kInvalid;
  switch (f[0]) {
    case 'f':
      return DType::kFloat;
    case 'd':
      return DType::kDouble;
    case 'e':
      return DType::kHalf;
    case '?':
      return DType::kBool;
    case 'b':
      return DType::kInt8;
    case 'B':
      return DType::kUint8;
    case 'h':
      return DType::kInt16;
    case 'H':
      return DType::kUint16;
    case 'i':
    case 'l':
    case 'q':
      return itemsize == 8 ? DType::kInt64 : DType::kInt32;
    case 'I':
    case 'L':
    case 'Q':
      return itemsize == 8 ? DType::kUint64 : DType::kUint32;
    default:
      return DType::kInvalid;
  }
}

namespace {

// Gives an array's memory back, on whatever thread dropped the last tensor over
// it. When the interpreter has ended, all of it is gone soon anyway.
void GiveBack(Py_buffer* view) {
  if (!Py_IsInitialized()) return;
  const PyGILState_STATE gil = EnsureGil();
  PyBuffer_Release(view);
  delete view;
  PyGILState_Release(gil);
}

}  // namespace

absl::StatusOr<Tensor> TensorFromArray(PyObject* array) {
  auto* view = new Py_buffer;
  if (PyObject_GetBuffer(array, view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) < 0) {
    PyErr_Clear();
    delete view;
    return StringsFromArray(array);
  }
  const DType dtype = DTypeOfFormat(view->format, view->itemsize);
  if (dtype == DType::kInvalid) {
    PyBuffer_Release(view);
    delete view;
    return StringsFromArray(array);
  }
  absl::StatusOr<Shape> shape = Shape::Create(std::span<const int64_t>(
      reinterpret_cast<const int64_t*>(view->shape), view->ndim));
  if (!shape.ok()) {
    PyBuffer_Release(view);
    delete view;
    return shape.status();
  }
  // Small things are copied: that is cheaper than giving them back later.
  constexpr Py_ssize_t kCopyBelow = 512;
  if (view->len <= kCopyBelow ||
      reinterpret_cast<uintptr_t>(view->buf) % 16 != 0) {
    Tensor tensor(dtype, *shape);
    if (tensor.bytes() > 0)
      std::memcpy(tensor.mutable_raw(), view->buf, view->len);
    PyBuffer_Release(view);
    delete view;
    return tensor;
  }
  return Tensor::FromBuffer(
      dtype, *shape,
      Buffer::Borrow(view->buf, view->len, [view] { GiveBack(view); }));
}

PyObject* ArrayFromTensorAlways(Tensor tensor) {
  if (!tensor.initialized()) Py_RETURN_NONE;
  if (tensor.dtype() == DType::kString) return StringArray(tensor);
  if (tensor.dtype() == DType::kResource) {
    const ResourceHandle& handle = tensor.data<ResourceHandle>()[0];
    return PyUnicode_FromFormat("<resource %s/%s on %s>",
                                handle.container.c_str(), handle.name.c_str(),
                                handle.device.c_str());
  }
  return NumberArray(std::move(tensor));
}

PyObject* ArrayFromTensor(Tensor tensor) {
  if (tensor.initialized() && tensor.rank() == 0) {
    if (PyObject* scalar = Scalar(tensor)) return scalar;
    if (PyErr_Occurred()) return nullptr;
    PyObject* array = ArrayFromTensorAlways(tensor);
    if (array == nullptr || tensor.dtype() == DType::kResource) return array;
    // Rarer types: the array's own scalar, array[()].
    PyObject* empty = PyTuple_New(0);
    PyObject* item = PyObject_GetItem(array, empty);
    Py_DECREF(empty);
    Py_DECREF(array);
    return item;
  }
  return ArrayFromTensorAlways(std::move(tensor));
}

void BindTensor(py::module_& m) {
  py::class_<Tensor>(m, "TensorValue")
      .def_property_readonly(
          "dtype", [](const Tensor& t) { return static_cast<int>(t.dtype()); })
      .def_property_readonly(
          "shape",
          [](const Tensor& t) {
            return py::reinterpret_steal<py::tuple>(ShapeTuple(t.shape()));
          })
      .def("numpy", [](const Tensor& t) {
        PyObject* array = ArrayFromTensorAlways(t);
        if (array == nullptr) throw py::error_already_set();
        return py::reinterpret_steal<py::object>(array);
      });
  // `array` as a tensor of its own memory; dtype (a number, 0: the array's) re-
  // labels bytes, for bfloat16 and the quantised types.
  m.def(
      "tensor_from_array",
      [](py::object array, int dtype) {
        Tensor tensor = Check(TensorFromArray(array.ptr())).Clone();
        if (dtype != 0 &&
            ElementSize(static_cast<DType>(dtype)) ==
                ElementSize(tensor.dtype()) &&
            tensor.dtype() != DType::kString) {
          tensor = tensor.Bitcast(static_cast<DType>(dtype));
        }
        return tensor;
      },
      py::arg("array"), py::arg("dtype") = 0);
  m.def("tensor_from_proto", [](py::bytes proto) {
    pb::TensorProto message;
    if (!message.ParseFromString(proto)) {
      throw StatusException(InvalidArgument("These bytes are no TensorProto"));
    }
    return Check(TensorFromProto(message));
  });
  m.def(
      "tensor_to_proto",
      [](const Tensor& tensor, bool typed) {
        pb::TensorProto message;
        if (typed) {
          TensorToTypedProto(tensor, &message);
        } else {
          TensorToProto(tensor, &message);
        }
        return py::bytes(message.SerializeAsString());
      },
      py::arg("tensor"), py::arg("typed") = true);
}

}  // namespace sluice::python
