"""Objects of Python's and PyTorch's libraries that programs name: functions, context managers, dtypes' limits, and
objects that are known at compile time or cannot be used.
"""
