/* Calls a method of a native library with values from a file, in a process without Python.

     driver libnet.so net net.weights method calls.bin results.bin

   net.weights is - if the weights are embedded in the library.

   calls.bin holds the number of calls, and for each the number of arguments and the arguments; results.bin gets the
   code, the message and the result of each call, objects as the tuples of their attributes. Values are written as their kind, their count, and then a number, the
   bytes of a string, the items, or dtype, rank, sizes and elements of a tensor. Numbers are int64. */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { void *data; int32_t type, id, ndim; uint8_t code, bits; uint16_t lanes; int64_t *shape, *strides; uint64_t offset; } tensor;
typedef struct value { int64_t kind; union { int64_t i; double f; char *s; tensor *t; struct value *items; }; int64_t count; } value;
enum { NONE, INT, FLOAT, BOOL, STRING, TENSOR, LIST, TUPLE, DICT, COMPLEX, OBJECT };

static FILE *in, *out;
static void *net;
static int32_t (*unpack)(void *, const value *, value *);
static void (*release)(value *);

static int64_t get(void) { int64_t n = 0; if (fread(&n, 8, 1, in) != 1) exit(3); return n; }
static void put(int64_t n) { fwrite(&n, 8, 1, out); }

static void read_value(value *v) {
  v->kind = get();
  v->count = get();
  if (v->kind == STRING) {
    v->s = calloc(v->count + 1, 1);
    if (v->count && fread(v->s, v->count, 1, in) != 1) exit(3);
  } else if (v->kind == TENSOR) {
    tensor *t = calloc(1, sizeof *t);
    int64_t dtype = get(), count = 1;
    t->type = 1, t->code = dtype & 255, t->bits = dtype >> 8, t->lanes = 1, t->ndim = get();
    t->shape = calloc(t->ndim + 1, 8);
    for (int i = 0; i < t->ndim; i++) count *= t->shape[i] = get();
    t->data = malloc(count * (t->bits / 8) + 1);
    if (count && fread(t->data, t->bits / 8, count, in) != (size_t)count) exit(3);
    v->t = t;
  } else if (v->kind >= LIST && v->kind <= DICT) {
    int64_t items = v->kind == DICT ? 2 * v->count : v->count;
    v->items = calloc(items + 1, sizeof *v);
    for (int64_t i = 0; i < items; i++) read_value(v->items + i);
  } else v->i = get();
}

static void drop_value(value *v) {
  if (v->kind == STRING) free(v->s);
  else if (v->kind == TENSOR) free(v->t->data), free(v->t->shape), free(v->t);
  else if (v->kind >= LIST && v->kind <= DICT) {
    int64_t items = v->kind == DICT ? 2 * v->count : v->count;
    for (int64_t i = 0; i < items; i++) drop_value(v->items + i);
    free(v->items);
  }
}

static void write_elements(const tensor *t, int dim, const char *at) {
  if (dim == t->ndim) fwrite(at, t->bits / 8, 1, out);
  else for (int64_t i = 0; i < t->shape[dim]; i++) write_elements(t, dim + 1, at + i * t->strides[dim] * (t->bits / 8));
}

static void write_value(const value *v) {
  if (v->kind == OBJECT) {
    value attributes;
    if (!unpack || unpack(net, v, &attributes)) exit(7);
    write_value(&attributes);
    release(&attributes);
    return;
  }
  put(v->kind);
  put(v->count);
  if (v->kind == STRING) fwrite(v->s, v->count, 1, out);
  else if (v->kind == TENSOR) {
    put(v->t->code | v->t->bits << 8), put(v->t->ndim);
    for (int i = 0; i < v->t->ndim; i++) put(v->t->shape[i]);
    write_elements(v->t, 0, (char *)v->t->data + v->t->offset);
  } else if (v->kind >= LIST && v->kind <= DICT) {
    int64_t items = v->kind == DICT ? 2 * v->count : v->count;
    for (int64_t i = 0; i < items; i++) write_value(v->items + i);
  } else put(v->i);
}

static void *symbol(void *library, const char *name, const char *part) {
  char text[512];
  snprintf(text, sizeof text, "%s_%s", name, part);
  void *found = dlsym(library, text);
  if (!found) { fprintf(stderr, "%s\n", dlerror()); exit(4); }
  return found;
}

int main(int argc, char **argv) {
  if (argc != 7) return 2;
  void *library = dlopen(argv[1], RTLD_NOW);
  if (!library) { fprintf(stderr, "%s\n", dlerror()); return 4; }
  int32_t (*open)(const char *, void **) = symbol(library, argv[2], "open");
  int32_t (*call)(void *, value *, int64_t, value *) = symbol(library, argv[2], argv[4]);
  const char *(*error)(void *) = symbol(library, argv[2], "error");
  release = symbol(library, argv[2], "free");
  char text[512];
  snprintf(text, sizeof text, "%s_unpack", argv[2]);
  unpack = dlsym(library, text); /* only libraries with objects have it */
  void (*close)(void *) = symbol(library, argv[2], "close");
  in = fopen(argv[5], "rb"), out = fopen(argv[6], "wb");
  if (!in || !out) return 2;
  if (open(strcmp(argv[3], "-") ? argv[3] : NULL, &net)) { fprintf(stderr, "%s\n", error(net)); close(net); return 5; }
  for (int64_t calls = get(); calls > 0; calls--) {
    int64_t count = get();
    value *arguments = calloc(count + 1, sizeof *arguments), result = {0};
    for (int64_t i = 0; i < count; i++) read_value(arguments + i);
    int32_t code = call(net, arguments, count, &result);
    const char *message = code ? error(net) : "";
    put(code), put(strlen(message)), fwrite(message, strlen(message), 1, out);
    if (!code) write_value(&result), release(&result);
    for (int64_t i = 0; i < count; i++) drop_value(arguments + i);
    free(arguments);
  }
  close(net);
  fclose(in), fclose(out);
  char line[4096];
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps))
    if (strstr(line, "libpython") || strstr(line, "libtorch_python")) { fprintf(stderr, "Python is in the process\n"); return 6; }
  if (maps) fclose(maps);
  return 0;
}
