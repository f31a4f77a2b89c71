"""ATen's C++ functions: the address and the C++ types of ``at::_ops::<op>::call`` for an overload of the dispatcher.

Machine code calls an operator through that function without Python. It dispatches as a call from C++ does: autograd,
autocast and modes see it. PyTorch promises nothing about these functions; therefore each one is found by its mangled
name, which spells the types of the parameters (Itanium C++ ABI): a function whose parameters differ has another name.

``signatures`` maps the types of a schema to those of C++, ``mangling`` spells the name, and ``functions`` finds its
address in the libraries of this process. No header is read and no compiler is needed.
"""
