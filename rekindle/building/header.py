"""Write the C header of a library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from rekindle.building.result_classes import Classes
from rekindle.building.runtime.objects import ErrorCode

_TEXT = """\
/* {name}: built by rekindle. Include this header in C or C++, and link with lib{name}.so.

   A function returns {NAME}_OK or an error code; {name}_error says more. An instance may be used by one thread at a
   time; instances are independent of each other. Tensors among the arguments are borrowed for the time of the call.
   Results belong to the caller: {name}_free frees what a value holds. */

#ifndef {NAME}_H
#define {NAME}_H

#include <stdint.h>
#include <string.h>

#if !defined(DLPACK_DLPACK_H_) && !defined(REKINDLE_DLTENSOR)
#define REKINDLE_DLTENSOR
/* What the library uses of DLPack (https://github.com/dmlc/dlpack). Include dlpack.h first to have all of it. */
typedef struct {{ int32_t device_type; int32_t device_id; }} DLDevice; /* 1: the CPU */
typedef struct {{ uint8_t code; uint8_t bits; uint16_t lanes; }} DLDataType;
/* Codes: 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool. */
typedef struct {{
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: contiguous */
  uint64_t byte_offset;
}} DLTensor;
#endif

#ifdef __cplusplus
extern "C" {{
#endif

typedef struct {name}_instance {name}_instance;

typedef enum {{
{codes}
}} {name}_code;

typedef enum {{
  {NAME}_NONE, {NAME}_INT, {NAME}_FLOAT, {NAME}_BOOL, {NAME}_STRING, {NAME}_TENSOR, {NAME}_LIST, {NAME}_TUPLE,
  {NAME}_DICT, {NAME}_COMPLEX, {NAME}_OBJECT
}} {name}_kind;

typedef struct {name}_value {{
  int64_t kind; /* a {name}_kind */
  union {{
    int64_t i; /* an int, a bool, an object */
    double f;
    const char *s; /* UTF-8 */
    DLTensor *t;
    struct {name}_value *items; /* of a dict: a key, its value, the next key, ... */
  }};
  /* The bytes of a string, the items of a list or a tuple, the pairs of a dict. Of a complex number, f is the real
     part, and {name}_imaginary returns the other one. Of an object, the instance that it belongs to. */
  int64_t count;
}} {name}_value;

/* Open an instance; `weights` is the path of {name}.weights, or NULL if they are embedded in the library. *instance is
   set even if the code is not {NAME}_OK, so that {name}_error can be asked; it is NULL only if there is no memory. */
int32_t {name}_open(const char *weights, {name}_instance **instance);
void {name}_close({name}_instance *instance);
/* What the last error of an instance was, with its place in the program. */
const char *{name}_error(const {name}_instance *instance);
void {name}_free({name}_value *value);
{objects}
{methods}

static inline {name}_value {name}_int(int64_t i) {{ {name}_value v = {{{NAME}_INT, {{0}}, 1}}; v.i = i; return v; }}
static inline {name}_value {name}_float(double f) {{
  {name}_value v = {{{NAME}_FLOAT, {{0}}, 1}}; v.f = f; return v;
}}
static inline {name}_value {name}_bool(int b) {{
  {name}_value v = {{{NAME}_BOOL, {{0}}, 1}}; v.i = b != 0; return v;
}}
static inline {name}_value {name}_tensor(DLTensor *t) {{
  {name}_value v = {{{NAME}_TENSOR, {{0}}, 1}}; v.t = t; return v;
}}
static inline {name}_value {name}_string(const char *s, int64_t bytes) {{
  {name}_value v = {{{NAME}_STRING, {{0}}, 0}}; v.s = s; v.count = bytes; return v;
}}
static inline {name}_value {name}_list({name}_value *items, int64_t count) {{
  {name}_value v = {{{NAME}_LIST, {{0}}, 0}}; v.items = items; v.count = count; return v;
}}
static inline {name}_value {name}_complex(double real, double imaginary) {{
  {name}_value v = {{{NAME}_COMPLEX, {{0}}, 0}}; v.f = real; memcpy(&v.count, &imaginary, 8); return v;
}}
static inline double {name}_imaginary(const {name}_value *v) {{
  double imaginary; memcpy(&imaginary, &v->count, 8); return imaginary;
}}
static inline {name}_value {name}_none(void) {{ {name}_value v = {{{NAME}_NONE, {{0}}, 0}}; return v; }}

#ifdef __cplusplus
}}
#endif
#endif
"""


_OBJECTS: Final = """
/* Instances of classes are objects of the library: a value of kind {NAME}_OBJECT refers to one. It is an argument of
   any method of the instance that returned it, and {name}_free frees it. An object lives as long as a value or another
   object refers to it, and no longer than the instance. A value that was freed, or belongs to another instance, is
   {NAME}_ARGUMENT_ERROR. An argument may also be a tuple of attributes, of which the library makes a new object.

{classes} */

/* Return the attributes of an object as a tuple, in this order. */
int32_t {name}_unpack({name}_instance *instance, const {name}_value *object, {name}_value *result);
"""


class Class(NamedTuple):
    """A class whose instances are objects of a library: its name, and the types of its attributes in Python."""

    name: str
    attributes: Mapping[str, str]


class Method(NamedTuple):
    """A method of a library: its name, its signature in Python, the number of its parameters, the default values of its
    last parameters, and the classes of the sequences in its result."""

    name: str
    signature: str
    parameters: int
    defaults: tuple[object, ...]
    result: Classes = None


class Interface(NamedTuple):
    """The methods and classes that the headers of a library declare."""

    methods: Sequence[Method]
    classes: Sequence[Class]


def header_text(name: str, interface: Interface) -> str:
    """Return the C header of the library ``name``."""
    upper = name.upper()
    codes = ",\n".join(f"  {upper}_{'OK' if each == 0 else each.name} = {int(each)}" for each in ErrorCode)
    declared = "\n\n".join(
        f"/* {method.signature} */\n"
        f"int32_t {name}_{method.name}({name}_instance *instance, const {name}_value *arguments, int64_t count,\n"
        f"    {name}_value *result);"
        for method in interface.methods
    )
    objects = ""
    if interface.classes:
        classes = "\n".join(map(_class_text, interface.classes))
        objects = _OBJECTS.format(name=name, NAME=upper, classes=classes)
    return _TEXT.format(name=name, NAME=upper, codes=codes, methods=declared, objects=objects)


def _class_text(each: Class) -> str:
    """Return a line that lists the attributes of a class."""
    return f"     {each.name}({', '.join(f'{name}: {type}' for name, type in each.attributes.items())})"
