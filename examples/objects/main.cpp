// Computes the means of rows with objects of the library that build.py wrote.
#include <cstdio>
#include "means/means.hpp"

int main() {
  try {
    means::instance library("means/means.weights");
    const means::value first = library.start(3), second = library.start(3);
    const float rows[2][3] = {{1, 2, 3}, {3, 4, 8}};
    for (const auto &row : rows) library.add(first, means::tensor(row, {3}));
    const means::value mean = library.mean(first);
    std::printf("mean %g %g %g\n", mean.data<float>()[0], mean.data<float>()[1], mean.data<float>()[2]);
    std::printf("%lld rows\n", static_cast<long long>(library.unpack(first)[0].as_int()));
    library.mean(second);
  } catch (const means::error &failure) {
    std::printf("%s\n", failure.what());
  }
}
