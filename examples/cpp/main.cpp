// Classifies two flowers with the library that ../c/build.py wrote.
#include <cstdio>
#include "net/net.hpp"

int main() {
  try {
    net::instance classifier("net/net.weights");
    const float flowers[2][4] = {{5.1f, 3.5f, 1.4f, 0.2f}, {6.7f, 3.0f, 5.2f, 2.3f}};
    const net::value result = classifier.forward(net::tensor(flowers[0], {2, 4}));
    const float *probabilities = result[0].data<float>();
    for (int row = 0; row < 2; row++)
      std::printf("%s (%.3f %.3f %.3f)\n", std::string(result[1][row].as_string()).c_str(), probabilities[3 * row],
                  probabilities[3 * row + 1], probabilities[3 * row + 2]);
  } catch (const net::error &failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
