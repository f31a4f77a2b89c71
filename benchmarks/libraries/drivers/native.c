/* A native library of rekindle. ARTIFACT is the folder of the library net. */
#include <dlfcn.h>
#include "driver.h"

typedef struct { void *data; int32_t type, id, ndim; uint8_t code, bits; uint16_t lanes; int64_t *shape, *strides; uint64_t offset; } tensor;
typedef struct value { int64_t kind; union { int64_t i; double f; const char *s; tensor *t; struct value *items; }; int64_t count; } value;
enum { NONE, INT, FLOAT, BOOL, STRING, TENSOR, LIST, TUPLE, DICT, COMPLEX };

static void *net;
static int32_t (*net_call)(void *, const value *, int64_t, value *);
static void (*net_free)(value *);
static value arguments[16];

static void call(void *unused) {
  value result;
  (void)unused;
  if (net_call(net, arguments, given_count, &result)) exit(5);
  net_free(&result);
}

static void write_result(FILE *file, const value *v) {
  if (v->kind == INT) write_leaf(file, GIVEN_INT, OF_INT64, 0, NULL, 8, &v->i);
  else if (v->kind == TUPLE || v->kind == LIST) for (int64_t i = 0; i < v->count; i++) write_result(file, v->items + i);
  else {
    int64_t bytes = v->t->bits / 8;
    for (int i = 0; i < v->t->ndim; i++) bytes *= v->t->shape[i];
    write_leaf(file, GIVEN_TENSOR, v->t->code == 2 ? OF_FLOAT : OF_INT64, v->t->ndim, v->t->shape, bytes, v->t->data);
  }
}

int main(int argc, char **argv) {
  if (argc != 6) return 2;
  char path[4096];
  snprintf(path, sizeof path, "%s/libnet.so", argv[1]);
  void *library = dlopen(path, RTLD_NOW);
  if (!library) { fprintf(stderr, "%s\n", dlerror()); return 4; }
  int32_t (*net_open)(const char *, void **) = dlsym(library, "net_open");
  const char *(*net_error)(const void *) = dlsym(library, "net_error");
  net_free = dlsym(library, "net_free");
  net_call = dlsym(library, "net_forward");
  snprintf(path, sizeof path, "%s/net.weights", argv[1]);
  if (net_open(path, &net)) { fprintf(stderr, "%s\n", net_error(net)); return 4; }
  read_arguments(argv[2]);
  for (int64_t i = 0; i < given_count; i++) {
    given *each = given_arguments + i;
    if (each->kind == GIVEN_STRING) arguments[i].kind = STRING, arguments[i].s = each->data, arguments[i].count = each->bytes;
    else {
      tensor *t = calloc(1, sizeof *t);
      *t = (tensor){each->data, 1, 0, each->rank, each->dtype == OF_FLOAT ? 2 : 0, each->dtype == OF_FLOAT ? 32 : 64, 1, each->sizes, NULL, 0};
      arguments[i].kind = TENSOR, arguments[i].t = t, arguments[i].count = 1;
    }
  }
  value result;
  if (net_call(net, arguments, given_count, &result)) { fprintf(stderr, "%s\n", net_error(net)); return 5; }
  note_first(argv[5]);
  FILE *file = fopen(argv[3], "wb");
  write_result(file, &result);
  fclose(file);
  net_free(&result);
  report(call, NULL, atof(argv[4]));
  return 0;
}
