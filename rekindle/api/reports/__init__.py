"""Reports on compiled programs: kernels, measurements, and unfused operators."""
