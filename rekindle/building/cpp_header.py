"""Write the C++ header of a library, on top of the C header."""

from __future__ import annotations

from typing import Final

from rekindle.building.header import Interface, Method

_TEXT = """\
/* {name}: the library of {name}.h for C++17. Link with lib{name}.so.

   {name}::instance opens and closes an instance. Its methods take and return values, and throw {name}::error.
   Arguments are numbers, strings, nullptr, tensors, vectors of these, and results; tensors refer to memory of the
   caller.
   Results own their memory. An instance may be used by one thread at a time. */

#ifndef {NAME}_HPP
#define {NAME}_HPP

#include <complex>
#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "{name}.h"

namespace {name} {{

class error : public std::runtime_error {{
 public:
  error(int32_t code, const std::string &message) : std::runtime_error(message), code(code) {{}}
  int32_t code; /* a {name}_code */
}};

template <class T>
constexpr DLDataType dtype_of() {{
  static_assert(std::is_arithmetic_v<T>, "the elements of a tensor are numbers");
  constexpr int code = std::is_same_v<T, bool> ? 6 : std::is_floating_point_v<T> ? 2 : std::is_signed_v<T> ? 0 : 1;
  return {{code, 8 * sizeof(T), 1}};
}}

/* A tensor of the caller: its elements follow each other, the last dimension fastest. */
class tensor {{
 public:
  template <class T>
  tensor(T *data, std::vector<int64_t> shape) : shape_(std::move(shape)) {{
    using element = std::remove_const_t<T>;
    dl_ = {{const_cast<element *>(data), {{decltype(DLDevice::device_type)(1), 0}}, int32_t(shape_.size()),
           dtype_of<element>(), shape_.data(), nullptr, 0}};
  }}
  tensor(const tensor &) = delete;
  DLTensor *get() const {{ return const_cast<DLTensor *>(&dl_); }}

 private:
  std::vector<int64_t> shape_;
  DLTensor dl_;
}};

/* A part of a result, which the result owns. */
class value_view {{
 public:
  explicit value_view(const {name}_value *value) : value_(value) {{}}
  const {name}_value &get() const {{ return *value_; }}
  {name}_kind kind() const {{ return static_cast<{name}_kind>(value_->kind); }}
  bool is_object() const {{ return kind() == {NAME}_OBJECT; }}
  bool is_none() const {{ return kind() == {NAME}_NONE; }}
  int64_t as_int() const {{ return checked({NAME}_INT).i; }}
  double as_float() const {{ return checked({NAME}_FLOAT).f; }}
  bool as_bool() const {{ return checked({NAME}_BOOL).i != 0; }}
  std::complex<double> as_complex() const {{
    const {name}_value &found = checked({NAME}_COMPLEX);
    return {{found.f, {name}_imaginary(&found)}};
  }}
  std::string_view as_string() const {{ return {{checked({NAME}_STRING).s, std::size_t(value_->count)}}; }}
  const DLTensor &as_tensor() const {{ return *checked({NAME}_TENSOR).t; }}
  std::vector<int64_t> shape() const {{ return {{as_tensor().shape, as_tensor().shape + as_tensor().ndim}}; }}
  /* The elements of a tensor, which are contiguous unless as_tensor().strides says otherwise. */
  template <class T>
  const T *data() const {{
    const DLTensor &found = as_tensor();
    const DLDataType wanted = dtype_of<T>();
    if (found.dtype.code != wanted.code || found.dtype.bits != wanted.bits)
      throw error({NAME}_TYPE_ERROR, "the tensor has elements of another type");
    return reinterpret_cast<const T *>(static_cast<const char *>(found.data) + found.byte_offset);
  }}
  /* The items of a list or a tuple; of a dict, its pairs: a key, its value, the next key. */
  std::size_t size() const {{ return std::size_t(kind() == {NAME}_DICT ? 2 * value_->count : items().count); }}
  value_view operator[](std::size_t index) const {{
    if (index >= size()) throw error({NAME}_INDEX_ERROR, "the index is out of range");
    return value_view(items().items + index);
  }}

 private:
  const {name}_value &checked({name}_kind wanted) const {{
    if (kind() != wanted) throw error({NAME}_TYPE_ERROR, "the value is of another kind");
    return *value_;
  }}
  const {name}_value &items() const {{
    return kind() == {NAME}_TUPLE || kind() == {NAME}_DICT ? *value_ : checked({NAME}_LIST);
  }}
  const {name}_value *value_;
}};

/* What a method takes. */
class argument {{
 public:
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  argument(T number) {{
    if constexpr (std::is_same_v<T, bool>) value_ = {name}_bool(number);
    else if constexpr (std::is_floating_point_v<T>) value_ = {name}_float(number);
    else value_ = {name}_int(static_cast<int64_t>(number));
  }}
  argument(std::complex<double> number) : value_({name}_complex(number.real(), number.imag())) {{}}
  argument(std::nullptr_t) : value_({name}_none()) {{}}
  argument(std::string_view text) : value_({name}_string(text.data(), int64_t(text.size()))) {{}}
  argument(const std::string &text) : argument(std::string_view(text)) {{}}
  argument(const char *text) : argument(std::string_view(text)) {{}}
  argument(const tensor &given) : value_({name}_tensor(given.get())) {{}}
  argument(const value_view &given) : value_(given.get()) {{}}
  template <class T>
  argument(const std::vector<T> &items) {{
    for (const auto &each : items) parts_.emplace_back(static_cast<const T &>(each));
    for (const auto &each : parts_) values_.push_back(each.value_);
    value_ = {name}_list(values_.data(), int64_t(values_.size()));
  }}
  argument(argument &&) = default;
  const {name}_value &get() const {{ return value_; }}

 private:
  {name}_value value_;
  std::vector<argument> parts_;
  std::vector<{name}_value> values_;
}};

/* A result. */
class value : public value_view {{
 public:
  explicit value({name}_value given) : value_view(&value_), value_(given) {{}}
  value(value &&other) noexcept : value_view(&value_), value_(std::exchange(other.value_, {name}_none())) {{}}
  value &operator=(value &&other) noexcept {{ std::swap(value_, other.value_); return *this; }}
  ~value() {{ {name}_free(&value_); }}

 private:
  {name}_value value_;
}};

class instance {{
 public:
  explicit instance(const std::string &weights) : instance(weights.c_str()) {{}}
  // The weights that are embedded in the library, or those of a file.
  explicit instance(const char *weights = nullptr) {{
    const int32_t code = {name}_open(weights, &handle_);
    if (code != {NAME}_OK) {{
      const std::string message = {name}_error(handle_);
      {name}_close(std::exchange(handle_, nullptr));
      throw error(code, message);
    }}
  }}
  instance(instance &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {{}}
  instance &operator=(instance &&other) noexcept {{ std::swap(handle_, other.handle_); return *this; }}
  ~instance() {{ {name}_close(handle_); }}

{methods}

 private:
  template <class Function, class... Arguments>
  value invoke_(Function function, const Arguments &...given) {{
    const std::vector<{name}_value> values{{given.get()...}};
    {name}_value result = {name}_none();
    const int32_t code = function(handle_, values.data(), int64_t(values.size()), &result);
    if (code != {NAME}_OK) throw error(code, {name}_error(handle_));
    return value(result);
  }}
  {name}_instance *handle_ = nullptr;
}};

}}  // namespace {name}

#endif
"""


CPP_KEYWORDS: Final = frozenset(
    {
        *("alignas", "alignof", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "case", "catch", "char", "char8_t"),
        *("char16_t", "char32_t", "compl", "concept", "const", "consteval", "constexpr", "constinit", "const_cast"),
        *("co_await", "co_return", "co_yield", "decltype", "default", "delete", "do", "double", "dynamic_cast", "enum"),
        *("explicit", "export", "extern", "false", "float", "friend", "goto", "inline", "int", "long", "mutable"),
        *("namespace", "new", "noexcept", "not_eq", "nullptr", "operator", "or_eq", "private", "protected", "public"),
        *("register", "reinterpret_cast", "requires", "short", "signed", "sizeof", "static", "static_assert"),
        *("static_cast", "struct", "switch", "template", "this", "thread_local", "throw", "true", "typedef", "typeid"),
        *("typename", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "xor", "xor_eq"),
    }
)
"""Keywords of C++20 that are not keywords of Python. An underscore is appended to methods with such a name."""


def cpp_header_text(name: str, interface: Interface) -> str:
    """Return the C++ header of the library ``name``."""
    methods = [_method(name, method) for method in interface.methods]
    if interface.classes:
        methods.append(_UNPACK.format(name=name, NAME=name.upper()))
    return _TEXT.format(name=name, NAME=name.upper(), methods="\n".join(methods))


_UNPACK: Final = """\
  /* The attributes of an object, in the order of {name}.h. */
  value unpack(const value_view &object) {{
    {name}_value result = {name}_none();
    const int32_t code = {name}_unpack(handle_, &object.get(), &result);
    if (code != {NAME}_OK) throw error(code, {name}_error(handle_));
    return value(result);
  }}"""


def _method(name: str, method: Method) -> str:
    """Return a member function for a method, with an overload for each number of defaults that are left out."""
    member = f"{method.name}_" if method.name in CPP_KEYWORDS else method.name
    lines = [f"  /* {method.signature} */"]
    for count in range(method.parameters - len(method.defaults), method.parameters + 1):
        parameters = ", ".join(f"argument a{index}" for index in range(count))
        given = "".join(f", a{index}" for index in range(count))
        defaults = "".join(
            f", argument({_literal(each)})"
            for each in method.defaults[count - method.parameters + len(method.defaults) :]
        )
        lines.append(f"  value {member}({parameters}) {{ return invoke_({name}_{method.name}{given}{defaults}); }}")
    return "\n".join(lines)


def _literal(default: object) -> str:
    """Return a default value in C++."""
    match default:
        case None:
            return "nullptr"
        case bool():
            return "true" if default else "false"
        case int():
            return f"int64_t({default}LL)" if default != -(2**63) else "INT64_MIN"
        case float():
            return float.hex(default) if default - default == 0 else _SPECIAL[repr(default)]
        case _:
            text = "".join(f"\\{byte:03o}" for byte in str(default).encode())
            return f'std::string_view("{text}", {len(str(default).encode())})'


_SPECIAL: Final = {"inf": "1.0 / 0.0", "-inf": "-1.0 / 0.0", "nan": "0.0 / 0.0"}
