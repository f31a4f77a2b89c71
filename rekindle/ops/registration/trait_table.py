"""The table of operator traits: one line an operator, with the words of :class:`~rekindle.ir.operators.traits.Trait`.

What PyTorch specifies itself is not listed here: :func:`rekindle.ops.registration.traits.traits_of_overload` reads
whether an operator is pointwise or data-dependent from its tags, and whether it is a view from its schema. A pointwise
operator accepts any layout. A name without a namespace is one of ``aten``.
"""

from __future__ import annotations

from typing import Final

TABLE: Final = """
Bool                                     data_dependent
Complex                                  data_dependent
ComplexImplicit                          data_dependent
Delete                                   carries_elements
Float                                    data_dependent
FloatImplicit                            data_dependent
Int                                      data_dependent
IntImplicit                              data_dependent
ScalarImplicit                           data_dependent
__and__                                  commutative fresh
__contains__                             carries_elements
__getitem__                              carries_elements
__is__                                   reads_identity total
__isnot__                                reads_identity total
__or__                                   commutative fresh
__xor__                                  commutative fresh
_coalesce                                about_as_large
_convolution                             fresh library
_grad_sum_to_size                        view_or_copy
_indices                                 about_as_large
_local_scalar_dense                      about_as_large
_make_per_tensor_quantized_tensor        about_as_large
_nested_tensor_from_tensor_list          aliases_operands
_resize_output                           aliases_operands
_resize_output_                          reshapes
_set_item                                carries_elements
_sparse_compressed_tensor_with_dims      aliases_operands
_sparse_coo_tensor_with_dims_and_tensors aliases_operands
_to_copy                                 converts linear_cost
_to_dense                                about_as_large
_unique2                                 about_as_large
_unsafe_view                             aliases_operands
_values                                  about_as_large
abs                                      same_rank makes_real promoting_gradient recomputable
absolute                                 fresh makes_real
adaptive_avg_pool1d                      fresh same_rank
adaptive_avg_pool2d                      fresh same_rank any_layout
adaptive_avg_pool3d                      fresh same_rank
add                                      promoting_gradient recomputable
add_                                     carries_elements
addbmm                                   one_dtype library
addbmm_                                  reshapes
addcdiv                                  recomputable
addcmul                                  recomputable
addmm                                    one_dtype matrix_product library
addmv                                    one_dtype matrix_product library
adjoint                                  moves_data
alias                                    about_as_large
all                                      linear_cost
alpha_dropout                            same_rank
amax                                     linear_cost
amin                                     linear_cost
angle                                    makes_real
any                                      linear_cost
append                                   carries_elements
arange                                   linear_cost
argmax                                   linear_cost
argmin                                   linear_cost
as_strided                               addresses_storage
as_strided_                              reshapes addresses_storage
as_strided_copy                          addresses_storage
as_strided_scatter                       addresses_storage
as_tensor                                inspects_elements
avg_pool1d                               fresh same_rank
avg_pool2d                               same_rank any_layout
avg_pool3d                               same_rank
baddbmm                                  one_dtype matrix_product library
batch_norm                               fresh same_rank any_layout
bilinear                                 fresh one_dtype library
bitwise_and                              commutative
bitwise_not                              recomputable
bitwise_or                               commutative
bitwise_xor                              commutative
bmm                                      one_dtype matrix_product library
broadcast_tensors                        moves_data
broadcast_to                             moves_data
cat                                      linear_cost any_layout
cdist                                    fresh one_dtype
ceil                                     same_dtype recomputable
celu                                     same_rank same_dtype
chain_matmul                             one_dtype
chalf                                    makes_complex
channel_shuffle                          same_rank
chunk                                    view moves_data
clamp                                    same_rank recomputable
clamp_max                                same_rank recomputable
clamp_min                                same_rank recomputable
clear                                    carries_elements
clone                                    moves_data same_rank promoting_gradient linear_cost about_as_large
coalesce                                 about_as_large
complex                                  makes_complex
conj_physical                            same_dtype
constant_pad_nd                          same_rank linear_cost
contiguous                               view_or_copy moves_data same_rank
conv1d                                   fresh same_rank one_dtype library
conv2d                                   fresh same_rank one_dtype library
conv3d                                   fresh same_rank one_dtype library
conv_transpose1d                         fresh same_rank one_dtype library
conv_transpose2d                         fresh same_rank one_dtype library
conv_transpose3d                         fresh same_rank one_dtype library
convolution                              one_dtype library
convolution_backward                     library
copy                                     carries_elements
copy_                                    linear_cost about_as_large
copy_sparse_to_sparse_                   reshapes
cos                                      promoting_gradient recomputable
cross                                    fresh one_dtype
cumprod                                  linear_cost
cumsum                                   linear_cost
dequantize                               about_as_large
detach                                   same_rank about_as_large
dict                                     carries_elements
dim                                      reads_rank total
div                                      promoting_gradient recomputable
dot                                      one_dtype matrix_product library
dropout                                  same_rank
dsplit                                   moves_data
einsum                                   one_dtype
element_size                             reads_dtype total
elu                                      same_rank same_dtype recomputable
embedding                                one_dtype linear_cost
embedding_bag                            fresh one_dtype
empty                                    linear_cost
empty_like                               linear_cost
empty_strided                            linear_cost
eq                                       commutative recomputable
equal                                    about_as_large
erf                                      recomputable
exp                                      same_rank promoting_gradient recomputable
expand_as                                view moves_data
expm1                                    promoting_gradient recomputable
extend                                   carries_elements
eye                                      linear_cost
feature_alpha_dropout                    same_rank
feature_dropout                          same_rank
fft_fft                                  fresh makes_complex
fft_fft2                                 makes_complex
fft_fftn                                 makes_complex
fft_hfft                                 fresh makes_real
fft_hfft2                                makes_real
fft_hfftn                                makes_real
fft_ifft                                 fresh makes_complex
fft_ifft2                                makes_complex
fft_ifftn                                makes_complex
fft_ihfft                                fresh makes_complex
fft_ihfft2                               makes_complex
fft_ihfftn                               makes_complex
fft_irfft                                fresh makes_real
fft_irfft2                               makes_real
fft_irfftn                               makes_real
fft_rfft                                 fresh makes_complex
fft_rfft2                                makes_complex
fft_rfftn                                makes_complex
fill_                                    linear_cost
flatten                                  view view_or_copy moves_data
flip                                     linear_cost
floor                                    same_dtype recomputable
floor_divide                             pointwise
fmax                                     commutative
fmin                                     commutative
full                                     linear_cost
full_like                                linear_cost
gather                                   one_dtype linear_cost
ge                                       recomputable
gelu                                     same_rank same_dtype recomputable
ger                                      fresh one_dtype
get                                      carries_elements
get_device                               reads_device total
grid_sampler                             fresh one_dtype
group_norm                               fresh same_rank any_layout
gru                                      fresh one_dtype
gru_cell                                 fresh one_dtype
gt                                       recomputable
hardsigmoid                              same_rank same_dtype promoting_gradient recomputable
hardswish                                pointwise same_rank same_dtype promoting_gradient recomputable any_layout
hardswish_                               any_layout
hardtanh                                 same_rank same_dtype promoting_gradient recomputable
hash                                     inspects_elements
histc                                    data_dependent
hsplit                                   moves_data
imag                                     makes_real
index                                    one_dtype linear_cost
index_add                                one_dtype
index_copy                               one_dtype
index_put_                               linear_cost
index_select                             one_dtype linear_cost
indices                                  about_as_large
inner                                    fresh one_dtype
insert                                   carries_elements
instance_norm                            fresh same_rank
int_repr                                 about_as_large
is_complex                               reads_dtype total
is_conj                                  reads_layout total
is_contiguous                            reads_strides
is_floating_point                        reads_dtype total
is_neg                                   reads_layout total
is_non_overlapping_and_dense             reads_strides
is_nonzero                               data_dependent about_as_large
is_same_size                             reads_sizes
is_signed                                reads_dtype
is_strides_like_format                   reads_strides
istft                                    fresh makes_real
items                                    carries_elements
keys                                     carries_elements
kron                                     fresh one_dtype
layer_norm                               fresh same_rank
le                                       recomputable
leaky_relu                               same_rank same_dtype promoting_gradient recomputable
len                                      reads_sizes carries_elements
lerp                                     recomputable
lift                                     aliases_operands
lift_fresh                               aliases_operands about_as_large
linalg_eig                               makes_complex
linalg_eigvals                           makes_complex
linalg_eigvalsh                          makes_real
linalg_matrix_norm                       fresh makes_real
linalg_multi_dot                         one_dtype
linalg_norm                              fresh makes_real
linalg_vector_norm                       makes_real
linear                                   fresh one_dtype matrix_product library
linspace                                 linear_cost
list                                     carries_elements
log                                      same_rank promoting_gradient recomputable
log1p                                    promoting_gradient recomputable
log_softmax                              fresh same_rank
logical_and                              commutative recomputable
logical_not                              recomputable
logical_or                               commutative recomputable
logical_xor                              commutative
lstm                                     fresh one_dtype
lstm_cell                                fresh one_dtype
lt                                       recomputable
mH                                       moves_data
mT                                       moves_data
masked_fill                              recomputable linear_cost
masked_fill_                             linear_cost
masked_select                            one_dtype about_as_large
matmul                                   fresh one_dtype matrix_product library
max                                      fresh linear_cost
max_pool1d                               fresh same_rank
max_pool2d                               fresh same_rank any_layout
max_pool3d                               fresh same_rank
maximum                                  commutative promoting_gradient recomputable
mean                                     promoting_gradient linear_cost
meshgrid                                 moves_data
min                                      fresh linear_cost
minimum                                  commutative promoting_gradient recomputable
mish                                     same_rank same_dtype recomputable
mish_                                    any_layout
mm                                       one_dtype matrix_product library
moveaxis                                 moves_data
movedim                                  view moves_data
mul                                      commutative promoting_gradient recomputable
mv                                       one_dtype matrix_product library
narrow                                   view moves_data
native_dropout                           aliases_operands
ne                                       commutative recomputable
neg                                      same_rank same_dtype promoting_gradient recomputable
new_empty                                linear_cost
new_full                                 linear_cost
new_ones                                 linear_cost
new_zeros                                linear_cost
nonzero                                  about_as_large
norm                                     makes_real linear_cost
normal_                                  linear_cost
numel                                    reads_sizes total
numpy_T                                  moves_data
ones                                     linear_cost
ones_like                                linear_cost
outer                                    fresh one_dtype matrix_product
pad                                      same_rank any_layout
permute                                  about_as_large
pixel_shuffle                            same_rank
polar                                    makes_complex
pop                                      carries_elements
popitem                                  carries_elements
pow                                      promoting_gradient recomputable
prelu                                    fresh same_rank one_dtype
prod                                     linear_cost
q_per_channel_axis                       about_as_large
q_per_channel_scales                     about_as_large
q_per_channel_zero_points                about_as_large
q_scale                                  about_as_large
q_zero_point                             about_as_large
qscheme                                  about_as_large
quantize_per_channel                     about_as_large
quantize_per_tensor                      about_as_large
quantize_per_tensor_dynamic              about_as_large
rand                                     linear_cost
randint                                  linear_cost
randn                                    linear_cost
ravel                                    moves_data
real                                     makes_real
reciprocal                               same_rank promoting_gradient recomputable
reflection_pad2d                         same_rank
relu                                     same_rank same_dtype promoting_gradient recomputable
relu6                                    fresh same_rank same_dtype promoting_gradient
repeat                                   linear_cost
reshape                                  view view_or_copy moves_data
reshape_as                               view_or_copy moves_data
resize_                                  reshapes
resize_as_                               reshapes
result_type                              reads_dtype reads_rank
reverse                                  carries_elements
rms_norm                                 fresh one_dtype
rnn_relu                                 fresh one_dtype
rnn_tanh                                 fresh one_dtype
roll                                     linear_cost
rsqrt                                    same_rank promoting_gradient recomputable
rsub                                     promoting_gradient recomputable
save                                     inspects_elements
scalar_tensor                            linear_cost
scaled_dot_product_attention             fresh one_dtype library
scatter                                  one_dtype linear_cost
scatter_                                 linear_cost
scatter_add                              one_dtype
selu                                     fresh same_rank same_dtype
set_                                     reshapes
set_data                                 reshapes
setdefault                               carries_elements
sigmoid                                  same_rank promoting_gradient recomputable
sign                                     same_dtype recomputable
silu                                     same_rank same_dtype promoting_gradient recomputable
sin                                      promoting_gradient recomputable
size                                     reads_sizes
slice                                    carries_elements
softmax                                  fresh same_rank
softplus                                 same_rank promoting_gradient recomputable
sort                                     linear_cost inspects_elements
sorted                                   inspects_elements
sparse_resize_                           reshapes
sparse_resize_and_clear_                 reshapes
split                                    moves_data
sqrt                                     same_rank promoting_gradient recomputable
square                                   fresh promoting_gradient recomputable
squeeze                                  moves_data about_as_large
squeeze_                                 reshapes
stack                                    linear_cost
std                                      fresh makes_real linear_cost
stft                                     fresh makes_complex
storage_offset                           reads_strides addresses_storage
str                                      inspects_elements
stride                                   reads_strides
sub                                      promoting_gradient recomputable
sum                                      promoting_gradient linear_cost
sum_to_size                              view_or_copy
swapaxes                                 moves_data
swapaxes_                                reshapes
swapdims                                 moves_data
swapdims_                                reshapes
sym_is_contiguous                        reads_strides
sym_numel                                reads_sizes
sym_size                                 reads_sizes
sym_storage_offset                       reads_strides addresses_storage
sym_stride                               reads_strides
t                                        about_as_large
t_                                       reshapes
take                                     one_dtype
take_along_dim                           fresh one_dtype
tanh                                     same_rank promoting_gradient recomputable
tensor                                   inspects_elements
tensor_split                             moves_data data_dependent
tensordot                                fresh one_dtype
threshold                                same_rank same_dtype
to                                       view_or_copy moves_data same_rank converts
to_dense                                 about_as_large
topk                                     linear_cost
transpose                                about_as_large
transpose_                               reshapes
tril                                     same_sizes linear_cost same_dtype
triu                                     same_sizes linear_cost same_dtype
trunc                                    same_dtype
type_as                                  view_or_copy moves_data converts
unflatten                                view moves_data
uniform_                                 linear_cost
unique_consecutive                       about_as_large
unique_dim                               about_as_large
unsafe_chunk                             view
unsafe_split                             view aliases_operands
unsafe_split_with_sizes                  aliases_operands
unsqueeze                                about_as_large
unsqueeze_                               reshapes
update                                   carries_elements
upsample_bicubic2d                       fresh any_layout
upsample_bilinear2d                      fresh any_layout
upsample_nearest2d                       fresh any_layout
values                                   about_as_large carries_elements
var                                      fresh makes_real linear_cost
vdot                                     one_dtype
view                                     about_as_large
view_as                                  view moves_data
view_as_complex                          makes_complex
view_as_complex_copy                     makes_complex
view_as_real                             makes_real
view_as_real_copy                        makes_real
vsplit                                   moves_data
where                                    fresh promoting_gradient recomputable linear_cost
zero_                                    linear_cost
zeros                                    linear_cost
zeros_like                               linear_cost
archive::str                             inspects_elements
autodiff::added                          inspects_elements
autodiff::dtype_of                       reads_dtype total
autodiff::head_size                      reads_sizes
autodiff::matmul_other                   library
autodiff::matmul_self                    library
autodiff::size_unless_equal              reads_sizes
autodiff::sizes_of                       reads_sizes
autodiff::variance_factor                reads_sizes
prim::attention                          library
prim::device                             reads_device total
prim::dtype                              reads_dtype total
prim::id                                 reads_identity total
prim::is_cpu                             reads_device total
prim::is_cuda                            reads_device total
prim::is_ipu                             reads_device total
prim::is_maia                            reads_device total
prim::is_meta                            reads_device total
prim::is_mkldnn                          reads_layout total
prim::is_mps                             reads_device total
prim::is_mtia                            reads_device total
prim::is_nested                          reads_layout total
prim::is_quantized                       reads_dtype total
prim::is_sparse                          reads_layout total
prim::is_sparse_csr                      reads_layout total
prim::is_vulkan                          reads_device total
prim::is_xla                             reads_device total
prim::is_xpu                             reads_device total
prim::itemsize                           reads_dtype total
prim::layout                             reads_layout total
prim::name                               reads_layout total
prim::nbytes                             reads_dtype reads_sizes
prim::packed_convolution                 library any_layout
prim::packed_convolution_add             library any_layout
prim::packed_linear                      library
prim::packed_transposed_convolution      library any_layout
prim::requires_grad                      reads_requires_grad total
prim::written_attention                  library
python::__contains__                     inspects_elements
python::all                              inspects_elements
python::any                              inspects_elements
python::count                            inspects_elements
python::eq                               inspects_elements
python::index                            inspects_elements
python::ne                               inspects_elements
python::remove                           inspects_elements
"""

FRESH_COMPOSITES: Final = """
_shape_as_tensor _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d _upsample_nearest_exact2d
_upsample_nearest_exact3d adaptive_max_pool1d arccos arccosh arcsin arcsinh arctan arctan2 arctanh argsort argwhere
clip column_stack concat concatenate corrcoef cosine_embedding_loss cosine_similarity cov cross_entropy_loss ctc_loss
cumulative_trapezoid det diff divide dstack fix fliplr flipud float_power frobenius_norm greater greater_equal
hinge_embedding_loss hstack index_select_backward inverse isclose isfinite isreal kl_div l1_loss less less_equal
linalg_cond linalg_det linalg_inv linalg_matmul linalg_pinv linalg_solve linalg_vecdot log_sigmoid logdet
margin_ranking_loss max_pool1d_with_indices msort multilabel_margin_loss multiply nanmean negative nll_loss nll_loss2d
nll_loss_nd not_equal nuclear_norm one_hot pad_sequence pairwise_distance pdist pinverse poisson_nll_loss qr
rnn_relu_cell rnn_tanh_cell row_stack slogdet special_digamma special_erf special_erfc special_erfinv special_exp2
special_expit special_expm1 special_gammainc special_gammaincc special_gammaln special_i0 special_log1p
special_log_softmax special_logit special_logsumexp special_multigammaln special_ndtr special_polygamma special_psi
special_round special_sinc special_softmax special_xlogy std_mean subtract svd trapezoid trapz triplet_margin_loss
true_divide upsample_linear1d upsample_nearest1d upsample_nearest3d upsample_trilinear3d vander var_mean vstack
"""
"""Operators of which nothing but :attr:`~rekindle.ir.operators.traits.Trait.FRESH` is known."""
