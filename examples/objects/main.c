/* Computes the means of rows with objects of the library that build.py wrote. */
#include <stdio.h>
#include "means/means.h"

static int failed(means_instance *means) {
  fprintf(stderr, "%s\n", means_error(means));
  return 1;
}

int main(void) {
  means_instance *means;
  if (means_open("means/means.weights", &means) != MEANS_OK) return failed(means);
  means_value size = means_int(3), arguments[2], result;
  if (means_start(means, &size, 1, &arguments[0]) != MEANS_OK) return failed(means);
  float rows[2][3] = {{1, 2, 3}, {3, 4, 8}};
  int64_t shape[1] = {3};
  for (int i = 0; i < 2; i++) {
    DLTensor row = {rows[i], {1, 0}, 1, {2, 32, 1}, shape, NULL, 0};
    arguments[1] = means_tensor(&row);
    if (means_add(means, arguments, 2, &result) != MEANS_OK) return failed(means);
  }
  if (means_mean(means, arguments, 1, &result) != MEANS_OK) return failed(means);
  const float *mean = result.t->data;
  printf("mean %g %g %g\n", mean[0], mean[1], mean[2]);
  means_free(&result);
  means_value copy = arguments[0];
  means_free(&arguments[0]);
  if (means_mean(means, &copy, 1, &result) == MEANS_ARGUMENT_ERROR) printf("%s\n", means_error(means));
  means_close(means);
  return 0;
}
