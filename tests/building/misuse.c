/* Calls the library of tests/building/test_c_api.py wrongly, and prints the code and the message of each call. */

#include "net.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static net_instance *net;

static void show(const char *what, int32_t code) {
  const char *message = net_error(net);
  printf("%s: %d %.*s\n", what, code, (int)strcspn(message, "\n"), message);
}

static int32_t call(net_value x, net_value table, int64_t count) {
  net_value arguments[2] = {x, table}, result = {77, {-1}, -1};
  int32_t code = net_call(net, arguments, count, &result);
  if (code && (count == 2) && (result.kind || result.count)) printf("a result in spite of an error\n");
  if (!code) net_free(&result);
  if (!code && (result.kind || result.count)) printf("a result after net_free\n");
  if (!code) net_free(&result);
  return code;
}

int main(int argc, char **argv) {
  net_instance *bad = 0;
  if (argc != 2 || net_open("missing", &bad) != NET_ARGUMENT_ERROR) return 1;
  net = bad;
  float data[6] = {1, 2, 3, 4, 5, 6};
  int64_t shape[33] = {2, 3}, strides[33] = {3, 1}, big[3] = {1LL << 40, 1LL << 40, 3};
  DLTensor good = {data, {1, 0}, 2, {2, 32, 1}, shape, 0, 0}, t = good;
  net_value keys[4] = {net_string("a", 1), net_int(1), net_string("b", 1), net_int(2)}, table = net_list(keys, 2);
  table.kind = NET_DICT;
  show("an instance that is not open", call(net_tensor(&t), table, 2));
  net_close(bad);
  if (net_open(argv[1], &net)) return 1;
  show("good", call(net_tensor(&t), table, 2));
  net_value result = net_none();
  show("no arguments", net_call(net, 0, 0, &result));
  show("null arguments", net_call(net, 0, 2, &result));
  show("null result", net_call(net, keys, 2, 0));
  int64_t counts[] = {-1, -(1LL << 62), 0, 1, 3, 1000, 1LL << 61};
  for (int i = 0; i < 7; i++) {
    net_value *many = calloc(1001, sizeof *many);
    many[0] = net_tensor(&t), many[1] = table;
    show("count", net_call(net, many, counts[i], &result));
    free(many);
  }
  for (int64_t kind = -2; kind < 12; kind++) {
    net_value wrong = net_int(1);
    wrong.kind = kind, wrong.i = 0, wrong.count = kind == NET_LIST ? 0 : 1;
    show("kind of a tensor", call(wrong, table, 2));
    net_value inner[2] = {net_string("k", 1), wrong}, nested = net_list(inner, 1);
    nested.kind = NET_DICT;
    if (kind != NET_INT) show("kind in a dict", call(net_tensor(&t), nested, 2));
    inner[0] = wrong, inner[1] = net_int(1);
    show("kind of a key", call(net_tensor(&t), nested, 2));
  }
  net_value sizes[] = {table, table, table};
  sizes[0].count = -1, sizes[1].count = INT64_MAX, sizes[2].items = 0;
  for (int i = 0; i < 3; i++) show("dict", call(net_tensor(&t), sizes[i], 2));
  keys[2].count = -5;
  show("a string of -5 bytes", call(net_tensor(&t), table, 2));
  keys[2].count = 1, keys[2].s = 0;
  show("a string without bytes", call(net_tensor(&t), table, 2));
  keys[2].s = "\xf0\x9f"; keys[2].count = 2;
  show("a string with invalid UTF-8", call(net_tensor(&t), table, 2));
  keys[2] = net_string("b", 1);
  t.ndim = -1, show("rank -1", call(net_tensor(&t), table, 2));
  t.ndim = 33, show("rank 33", call(net_tensor(&t), table, 2));
  t.ndim = 1, show("rank 1", call(net_tensor(&t), table, 2));
  t = good, t.shape = 0, show("no sizes", call(net_tensor(&t), table, 2));
  t = good, t.ndim = 0, t.shape = 0, show("rank 0", call(net_tensor(&t), table, 2));
  t = good, t.data = 0, show("no memory", call(net_tensor(&t), table, 2));
  t.shape = big, show("no memory, large", call(net_tensor(&t), table, 2));
  t = good, t.device.device_type = 2, show("device", call(net_tensor(&t), table, 2));
  t = good, t.dtype.bits = 64, show("dtype", call(net_tensor(&t), table, 2));
  t = good, t.dtype.bits = 8, show("unknown dtype", call(net_tensor(&t), table, 2));
  t = good, t.dtype.lanes = 4, show("lanes", call(net_tensor(&t), table, 2));
  shape[0] = -2, t = good, show("a negative size", call(net_tensor(&t), table, 2)), shape[0] = 2;
  t.strides = strides, show("strides", call(net_tensor(&t), table, 2));
  strides[0] = 0, show("strides of 0", call(net_tensor(&t), table, 2));
  strides[0] = -3, show("a negative stride", call(net_tensor(&t), table, 2));
  t = good, t.data = (char *)data - 24, t.byte_offset = 24, show("an offset", call(net_tensor(&t), table, 2));
  t = good, shape[0] = shape[1] = 1LL << 32, show("2 to the 64 elements", call(net_tensor(&t), table, 2));
  shape[0] = 1LL << 62, shape[1] = 0, show("no element, and a size of 2 to the 62", call(net_tensor(&t), table, 2));
  shape[0] = 2, shape[1] = 3, t.strides = strides, strides[0] = INT64_MAX;
  show("the largest stride", call(net_tensor(&t), table, 2));
  shape[0] = 1LL << 51, strides[0] = strides[1] = 0;
  show("many elements that are one", call(net_tensor(&t), table, 2)), shape[0] = 2;
  t = good, t.ndim = INT32_MAX, show("the largest rank", call(net_tensor(&t), table, 2));
  t.ndim = INT32_MIN, show("the smallest rank", call(net_tensor(&t), table, 2));
  char *bytes = malloc(sizeof data + 3);
  memcpy(bytes + 3, data, sizeof data);
  t = good, t.data = bytes, t.byte_offset = 3, show("an odd offset", call(net_tensor(&t), table, 2));
  free(bytes);
  t = good, show("good again", call(net_tensor(&t), table, 2));
  net_close(net);
  return 0;
}
