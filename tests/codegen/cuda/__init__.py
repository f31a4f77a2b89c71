"""Kernels for GPUs, emulated on the host; on a GPU where there is one."""
