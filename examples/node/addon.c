/* An add-on of Node that calls the library net: a class Classifier with a method forward. An error of the library is
   thrown with its code. */
#include <node_api.h>
#include <stdio.h>
#include <stdlib.h>
#include "net/net.h"

static napi_value raise(napi_env env, int32_t code, const char *message) {
  char text[16];
  snprintf(text, sizeof text, "%d", code);
  napi_throw_error(env, text, message);
  return NULL;
}

static void close_net(napi_env env, void *net, void *unused) {
  (void)env, (void)unused;
  net_close(net);
}

/* new Classifier(weights) */
static napi_value construct(napi_env env, napi_callback_info info) {
  napi_value argument, self;
  size_t count = 1, length;
  char path[4096];
  net_instance *net = NULL;
  napi_get_cb_info(env, info, &count, &argument, &self, NULL);
  if (count < 1 || napi_get_value_string_utf8(env, argument, path, sizeof path, &length) != napi_ok)
    return raise(env, NET_ARGUMENT_ERROR, "the argument is the path of the weights");
  int32_t code = net_open(path, &net);
  if (code != NET_OK) {
    raise(env, code, net_error(net));
    net_close(net);
    return NULL;
  }
  napi_wrap(env, self, net, close_net, NULL, NULL);
  return self;
}

/* forward(features, width): an object with a name and probabilities for each row of a Float32Array */
static napi_value forward(napi_env env, napi_callback_info info) {
  napi_value arguments[2], self, rows, row, name, buffer, probabilities;
  size_t count = 2, length;
  napi_typedarray_type type;
  void *data, *net;
  int64_t width;
  napi_get_cb_info(env, info, &count, arguments, &self, NULL);
  if (napi_unwrap(env, self, &net) != napi_ok) return raise(env, NET_ARGUMENT_ERROR, "this is not a Classifier");
  if (count < 2 || napi_get_typedarray_info(env, arguments[0], &type, &length, &data, NULL, NULL) != napi_ok ||
      type != napi_float32_array || napi_get_value_int64(env, arguments[1], &width) != napi_ok || width < 1)
    return raise(env, NET_ARGUMENT_ERROR, "the arguments are a Float32Array and the length of its rows");
  int64_t shape[2] = {(int64_t)length / width, width};
  DLTensor x = {data, {1, 0}, 2, {2, 32, 1}, shape, NULL, 0};
  net_value argument = net_tensor(&x), result;
  int32_t code = net_forward(net, &argument, 1, &result);
  if (code != NET_OK) return raise(env, code, net_error(net));
  const DLTensor *found = result.items[0].t;
  const net_value *names = &result.items[1];
  size_t classes = (size_t)found->shape[1];
  napi_create_array_with_length(env, (size_t)names->count, &rows);
  for (int64_t i = 0; i < names->count; i++) {
    napi_create_arraybuffer(env, classes * sizeof(float), &data, &buffer);
    memcpy(data, (const float *)found->data + i * found->strides[0], classes * sizeof(float));
    napi_create_typedarray(env, napi_float32_array, classes, buffer, 0, &probabilities);
    napi_create_string_utf8(env, names->items[i].s, (size_t)names->items[i].count, &name);
    napi_create_object(env, &row);
    napi_set_named_property(env, row, "name", name);
    napi_set_named_property(env, row, "probabilities", probabilities);
    napi_set_element(env, rows, (uint32_t)i, row);
  }
  net_free(&result);
  return rows;
}

NAPI_MODULE_INIT() {
  napi_property_descriptor method = {"forward", NULL, forward, NULL, NULL, NULL, napi_default_method, NULL};
  napi_value classifier;
  napi_define_class(env, "Classifier", NAPI_AUTO_LENGTH, construct, NULL, 1, &method, &classifier);
  napi_set_named_property(env, exports, "Classifier", classifier);
  return exports;
}
