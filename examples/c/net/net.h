/* net: built by rekindle. Include this header in C or C++, and link with libnet.so.

   A function returns NET_OK or an error code; net_error says more. An instance may be used by one thread at a
   time; instances are independent of each other. Tensors among the arguments are borrowed for the time of the call.
   Results belong to the caller: net_free frees what a value holds. */

#ifndef NET_H
#define NET_H

#include <stdint.h>

#ifndef DLPACK_DLPACK_H_
/* What the library uses of DLPack (https://github.com/dmlc/dlpack). Include dlpack.h first to have all of it. */
typedef struct { int32_t device_type; int32_t device_id; } DLDevice; /* 1: the CPU */
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType; /* codes: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool */
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: contiguous */
  uint64_t byte_offset;
} DLTensor;
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct net_instance net_instance;

typedef enum {
  NET_OK = 0,
  NET_RUNTIME_ERROR = 1,
  NET_INDEX_ERROR = 2,
  NET_KEY_ERROR = 3,
  NET_VALUE_ERROR = 4,
  NET_TYPE_ERROR = 5,
  NET_ZERO_DIVISION_ERROR = 6,
  NET_OVERFLOW_ERROR = 7,
  NET_ASSERTION_ERROR = 8,
  NET_MEMORY_ERROR = 9,
  NET_ARGUMENT_ERROR = 10,
  NET_NOT_BUILT = 11,
  NET_BUSY = 12,
  NET_NOT_IMPLEMENTED_ERROR = 13
} net_code;

typedef enum {
  NET_NONE, NET_INT, NET_FLOAT, NET_BOOL, NET_STRING, NET_TENSOR, NET_LIST, NET_TUPLE, NET_DICT
} net_kind;

typedef struct net_value {
  int64_t kind; /* a net_kind */
  union {
    int64_t i; /* an int, a bool */
    double f;
    const char *s; /* UTF-8 */
    DLTensor *t;
    struct net_value *items; /* of a dict: a key, its value, the next key, ... */
  };
  int64_t count; /* the bytes of a string, the items of a list or a tuple, the pairs of a dict */
} net_value;

/* Open an instance; `weights` is the path of net.weights. *instance is set even if the code is not NET_OK, so that
   net_error can be asked; it is NULL only if there is no memory. */
int32_t net_open(const char *weights, net_instance **instance);
void net_close(net_instance *instance);
/* What the last error of an instance was, with its place in the program. */
const char *net_error(const net_instance *instance);
void net_free(net_value *value);

/* forward(x: Tensor) -> Tuple[Tensor, List[str]] */
int32_t net_forward(net_instance *instance, const net_value *arguments, int64_t count,
    net_value *result);

static inline net_value net_int(int64_t i) { net_value v = {NET_INT, {0}, 1}; v.i = i; return v; }
static inline net_value net_float(double f) { net_value v = {NET_FLOAT, {0}, 1}; v.f = f; return v; }
static inline net_value net_bool(int b) { net_value v = {NET_BOOL, {0}, 1}; v.i = b != 0; return v; }
static inline net_value net_tensor(DLTensor *t) { net_value v = {NET_TENSOR, {0}, 1}; v.t = t; return v; }
static inline net_value net_string(const char *s, int64_t bytes) {
  net_value v = {NET_STRING, {0}, 0}; v.s = s; v.count = bytes; return v;
}
static inline net_value net_list(net_value *items, int64_t count) {
  net_value v = {NET_LIST, {0}, 0}; v.items = items; v.count = count; return v;
}
static inline net_value net_none(void) { net_value v = {NET_NONE, {0}, 0}; return v; }

#ifdef __cplusplus
}
#endif
#endif
