/* What the drivers share: arguments from a file, clocks, and the report. The arguments of a driver are

     driver ARTIFACT ARGUMENTS RESULTS SECONDS STARTED

   STARTED is the parent's CLOCK_MONOTONIC when it started the process. ARGUMENTS holds a count, and for each argument
   its kind, its dtype, its rank or length, its sizes, and its bytes; RESULTS gets the leaves of the result in the same
   form. A report is a line of JSON. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GIVEN_TENSOR = 0, GIVEN_STRING = 1, GIVEN_INT = 2 };
enum { OF_FLOAT = 0, OF_INT64 = 1 };

typedef struct { int64_t kind, dtype, rank, sizes[8], bytes; char *data; } given;

static given *given_arguments;
static int64_t given_count;

static int64_t get(FILE *file) { int64_t n = 0; if (fread(&n, 8, 1, file) != 1) exit(3); return n; }

static void read_arguments(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) exit(3);
  given_count = get(file);
  given_arguments = (given *)calloc(given_count + 1, sizeof(given));
  for (int64_t i = 0; i < given_count; i++) {
    given *each = given_arguments + i;
    each->kind = get(file), each->dtype = get(file), each->rank = get(file);
    if (each->rank > 8) exit(3);
    for (int64_t k = 0; k < each->rank; k++) each->sizes[k] = get(file);
    each->bytes = get(file);
    each->data = (char *)aligned_alloc(64, (each->bytes + 64) / 64 * 64);
    memset(each->data, 0, (each->bytes + 64) / 64 * 64);
    if (each->bytes && fread(each->data, each->bytes, 1, file) != 1) exit(3);
  }
  fclose(file);
}

static void put(FILE *file, int64_t n) { fwrite(&n, 8, 1, file); }

static void write_leaf(FILE *file, int64_t kind, int64_t dtype, int64_t rank, const int64_t *sizes, int64_t bytes,
                       const void *data) {
  put(file, kind), put(file, dtype), put(file, rank);
  for (int64_t k = 0; k < rank; k++) put(file, sizes[k]);
  put(file, bytes);
  fwrite(data, 1, bytes, file);
}

static double seconds_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double started_at, first_wall, first_cpu;
static char first_status[3][64];

/* Note what was needed for the first result: time from the start of the process, and memory. */
static void note_first(const char *started) {
  started_at = atof(started);
  first_wall = seconds_of(CLOCK_MONOTONIC) - started_at;
  first_cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  const char *wanted[3] = {"VmRSS:", "RssAnon:", "VmHWM:"};
  char line[4096];
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status))
    for (int i = 0; i < 3; i++)
      if (!strncmp(line, wanted[i], strlen(wanted[i]))) snprintf(first_status[i], 64, "%ld", atol(line + strlen(wanted[i])));
  if (status) fclose(status);
}

/* Call for some seconds, and print the report: the median over batches of the CPU time of a call. */
static void report(void (*call)(void *), void *data, double seconds) {
  double begun = seconds_of(CLOCK_PROCESS_CPUTIME_ID), batch = 1, times[4096];
  int count = 0;
  for (int i = 0; i < 3; i++) call(data);
  for (;;) {  /* as many calls as take a millisecond */
    double start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < batch; i++) call(data);
    if (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - start >= 1e-3 || batch > 1e6) break;
    batch *= 2;
  }
  do {
    double start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < batch; i++) call(data);
    times[count++] = (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - start) / batch;
  } while (count < 4096 && seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begun < seconds);
  qsort(times, count, sizeof *times, ascending);
  printf("{\"start_wall\": %.9f, \"start_cpu\": %.9f, \"resident\": %s, \"anonymous\": %s, \"peak\": %s, \"call\": %.9f, \"mapped\": [",
         first_wall, first_cpu, first_status[0], first_status[1], first_status[2], times[count / 2]);
  char line[4096], last[4096] = "";
  FILE *maps = fopen("/proc/self/maps", "r");
  int is_first = 1;
  while (maps && fgets(line, sizeof line, maps)) {
    char *path = strchr(line, '/');
    if (!path) continue;
    path[strcspn(path, "\n")] = 0;
    if (strcmp(path, last)) printf("%s\"%s\"", is_first ? "" : ", ", path), is_first = 0;
    strcpy(last, path);
  }
  if (maps) fclose(maps);
  printf("]}\n");
}
