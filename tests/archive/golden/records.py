"""Values as plain JSON, exactly: what an archive was given, and what its release answered.

This file runs under every Python from 3.6 and every PyTorch from 1.0, so it is written for the oldest.
"""

import torch

NUMBERS = (torch.float16, torch.float32, torch.float64)


def encode(value):
    """``value`` as lists, dicts, numbers and strings. JSON's are exact: Python writes floats to be read back."""
    if isinstance(value, torch.Tensor):
        return encode_tensor(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return {"float": value}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, tuple):
        return {"tuple": [encode(item) for item in value]}
    if isinstance(value, list):
        return {"list": [encode(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(item)] for key, item in value.items()]}
    raise TypeError("cannot record a {}".format(type(value).__name__))


def encode_tensor(tensor):
    """Dtype, shape and elements of a dense tensor."""
    name = str(tensor.dtype)[len("torch.") :]
    flat = tensor.detach().contiguous().view(-1)
    if name.startswith("complex"):
        values = [[number.real, number.imag] for number in flat.tolist()]
    elif name in ("float16", "bfloat16"):
        values = flat.float().tolist()
    else:
        values = flat.tolist()
    return {"tensor": name, "shape": list(tensor.shape), "values": values}


def decode(record):
    """The value that :func:`encode` made ``record`` of."""
    if not isinstance(record, dict):
        return record
    ((kind, content), *others) = record.items()
    if kind == "tensor":
        return decode_tensor(content, dict(others))
    if kind == "float":
        return float(content)
    if kind == "complex":
        return complex(*content)
    if kind == "tuple":
        return tuple(decode(item) for item in content)
    if kind == "list":
        return [decode(item) for item in content]
    if kind == "dict":
        return {decode(key): decode(item) for key, item in content}
    raise ValueError("no such record: {}".format(kind))


def decode_tensor(name, others):
    """The tensor of a record."""
    values = others["values"]
    if name.startswith("complex"):
        values = [complex(*pair) for pair in values]
    return torch.tensor(values, dtype=getattr(torch, name)).reshape(others["shape"])
