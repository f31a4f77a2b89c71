/* Classifies two flowers with the library that build.py wrote. */
#include <stdio.h>
#include "net/net.h"

int main(void) {
  net_instance *net;
  if (net_open("net/net.weights", &net) != NET_OK) {
    fprintf(stderr, "%s\n", net_error(net));
    return 1;
  }
  float flowers[2][4] = {{5.1f, 3.5f, 1.4f, 0.2f}, {6.7f, 3.0f, 5.2f, 2.3f}};
  int64_t shape[2] = {2, 4};
  DLTensor x = {flowers, {1, 0}, 2, {2, 32, 1}, shape, NULL, 0};
  net_value argument = net_tensor(&x), result;
  if (net_forward(net, &argument, 1, &result) != NET_OK) {
    fprintf(stderr, "%s\n", net_error(net));
    return 1;
  }
  const float *probabilities = result.items[0].t->data;
  for (int row = 0; row < 2; row++)
    printf("%s (%.3f %.3f %.3f)\n", result.items[1].items[row].s, probabilities[3 * row], probabilities[3 * row + 1],
           probabilities[3 * row + 2]);
  net_free(&result);
  net_close(net);
  return 0;
}
