/* An archive of torch.jit in LibTorch. ARTIFACT is the archive. */
#include <torch/script.h>
#include "torch_values.h"

static torch::jit::Module *module;
static std::vector<c10::IValue> arguments;

static void call(void *) { module->forward(arguments); }

static void write_result(FILE *file, const c10::IValue &v) {
  if (v.isInt()) { int64_t n = v.toInt(); write_leaf(file, GIVEN_INT, OF_INT64, 0, nullptr, 8, &n); }
  else if (v.isTuple()) for (auto &each : v.toTuple()->elements()) write_result(file, each);
  else write_tensor(file, v.toTensor());
}

int main(int argc, char **argv) {
  if (argc != 6) return 2;
  c10::InferenceMode guard;
  try {
    module = new torch::jit::Module(torch::jit::load(argv[1]));
    read_arguments(argv[2]);
    for (int64_t i = 0; i < given_count; i++) {
      given &each = given_arguments[i];
      if (each.kind == GIVEN_STRING) arguments.emplace_back(std::string(each.data, each.bytes));
      else arguments.emplace_back(tensor_of(each));
    }
    c10::IValue result = module->forward(arguments);
    note_first(argv[5]);
    FILE *file = fopen(argv[3], "wb");
    write_result(file, result);
    fclose(file);
    report(call, nullptr, atof(argv[4]));
  } catch (const std::exception &error) {
    fprintf(stderr, "%s\n", error.what());
    return 5;
  }
  return 0;
}
