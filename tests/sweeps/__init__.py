"""Sweeps over PyTorch's own databases of operators and modules: does what torch.jit.script compiles compile here, and
answer as eager does?"""
