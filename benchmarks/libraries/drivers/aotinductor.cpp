/* A package of AOTInductor. ARTIFACT is the package. */
#include <c10/core/InferenceMode.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include "torch_values.h"

static torch::inductor::AOTIModelPackageLoader *loader;
static std::vector<at::Tensor> arguments;

static void call(void *) { loader->run(arguments); }

int main(int argc, char **argv) {
  if (argc != 6) return 2;
  c10::InferenceMode guard;
  try {
    loader = new torch::inductor::AOTIModelPackageLoader(argv[1]);
    read_arguments(argv[2]);
    for (int64_t i = 0; i < given_count; i++) arguments.push_back(tensor_of(given_arguments[i]));
    std::vector<at::Tensor> results = loader->run(arguments);
    note_first(argv[5]);
    FILE *file = fopen(argv[3], "wb");
    for (auto &each : results) write_tensor(file, each);
    fclose(file);
    report(call, nullptr, atof(argv[4]));
    delete loader;
  } catch (const std::exception &error) {
    fprintf(stderr, "%s\n", error.what());
    return 5;
  }
  return 0;
}
