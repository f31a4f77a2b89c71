"""Subjects that answer otherwise when they are optimised, with the reason. The list is strict."""

_EMPTY_BATCH = (
    "batch_norm takes a batch of no examples while training; native_batch_norm, of which its formula is made, does not"
)

KNOWN_DIFFERENCES: dict[str, str] = {
    "model.resnet": _EMPTY_BATCH,
}
