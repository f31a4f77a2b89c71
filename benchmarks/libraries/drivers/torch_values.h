/* Arguments and results as PyTorch's tensors. */
#include <ATen/ATen.h>
#include "driver.h"

static at::Tensor tensor_of(const given &each) {
  auto dtype = each.dtype == OF_FLOAT ? at::kFloat : at::kLong;
  return at::from_blob(each.data, at::IntArrayRef(each.sizes, each.rank), at::TensorOptions().dtype(dtype));
}

static void write_tensor(FILE *file, at::Tensor t) {
  t = t.contiguous();
  write_leaf(file, GIVEN_TENSOR, t.scalar_type() == at::kFloat ? OF_FLOAT : OF_INT64, t.dim(), t.sizes().data(),
             t.nbytes(), t.data_ptr());
}
